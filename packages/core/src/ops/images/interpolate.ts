/**
 * Images at other sizes: nearest elements, and weighted sums of neighbours, one spatial axis after the other.
 *
 * Positions follow PyTorch 1.13. Output i of an axis lies at (i + 1/2) scale - 1/2 in the input, or with aligned corners at i scale, where
 * scale is input size / output size, or 1 / scaleFactor where that is given.
 */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { gatherPrimitive } from '../../primitives/indexing.ts';
import type { DType } from '../../shape/dtype.ts';
import { checkList, checkOptions, checkShape, mostOnHost } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames, shown } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { cubicWeights, type Layout, readLayout } from './image.ts';
import { say } from '../../shape/shown.ts';

export type InterpolateMode = 'nearest' | 'nearestExact' | 'linear' | 'bilinear' | 'trilinear' | 'bicubic';

export interface InterpolateOptions {
  /** Sizes of the spatial axes of the result: a number for all, or one per axis. This or scaleFactor. */
  readonly size?: number | readonly number[];
  /** Output size / input size, rounded down: a number for all axes, or one per axis. */
  readonly scaleFactor?: number | readonly number[];
  /** Default 'nearest'. */
  readonly mode?: InterpolateMode;
  /** Put the first and last elements of input and output at the same places, instead of their outer edges. Default false. */
  readonly alignCorners?: boolean;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/** Numbers of spatial axes each mode is for. */
const ranks: Readonly<Record<InterpolateMode, readonly number[]>> = {
  nearest: [1, 2, 3],
  nearestExact: [1, 2, 3],
  linear: [1],
  bilinear: [2],
  trilinear: [3],
  bicubic: [2],
};

interface AxisScale {
  readonly n: number;
  readonly m: number;
  /** Input elements per output element. */
  readonly scale: number;
  readonly align: boolean;
}

/**
 * An image at another size. Source: PyTorch `interpolate`, version 1.13.
 *
 * @param x shape [N, C, ...] with one to three spatial axes, or [N, ..., C] with layout 'nhwc'
 * @param options size or scaleFactor; mode: 'nearest' (the default) and 'nearestExact' (from the middle of each element) for any number of axes,
 *   'linear' for one, 'bilinear' and 'bicubic' for two, 'trilinear' for three; alignCorners (false); layout
 * @returns shape [N, C, ...size]
 * @throws ArgumentError for modes and sizes that do not fit
 *
 * @example
 * interpolate(tensor([[[1, 2]]]), { scaleFactor: 2 }); // [[[1, 1, 2, 2]]]
 * interpolate(tensor([[[0, 2]]]), { size: 3, mode: 'linear', alignCorners: true }); // [[[0, 1, 2]]]
 */
export function interpolate(x: Tensor, options: InterpolateOptions): Tensor {
  checkNames('interpolate', options, 'size scaleFactor mode alignCorners? layout');
  const op = 'interpolate';
  return compose(op, () => {
    checkOptions(op, options, '{ scale: 2 }');
    const mode = options.mode ?? 'nearest';
    if (typeof mode !== 'string' || !Object.hasOwn(ranks, mode))
      throw new ArgumentError(op, say`unknown mode: ${shown(mode)}; must be one of ${Object.keys(ranks).join(', ')}`);
    const nearest = mode === 'nearest' || mode === 'nearestExact';
    const given = nodeOf(x);
    const rank = given.shape.length - 2;
    if (!ranks[mode].includes(rank))
      throw new ShapeError(
        op,
        say`mode '${mode}' is for ${ranks[mode].join(', ')} spatial axes: shape ${showShape(given.shape)} has ${rank}; choose another mode`,
        [given.shape],
      );
    if (nearest && options.alignCorners)
      throw new ArgumentError(op, say`alignCorners has no meaning for mode '${mode}'; leave it out`);
    const first = readLayout(op, options.layout) === 'nhwc' ? 1 : 2;
    const scales = readScales(op, given.shape.slice(first, first + rank), options);
    checkShape(
      op,
      given.shape.map((n, axis) => scales[axis - first]?.m ?? n),
    );
    // 16-bit floats are weighed in 32 bits.
    const wide: DType = given.dtype === 'float64' ? 'float64' : 'float32';
    let node = nearest ? given : p.cast(floatOperand(x), wide);
    scales.forEach((axis, i) => {
      if (axis.n === axis.m && axis.scale === 1) return;
      node = nearest ? nearestAlong(node, first + i, axis, mode) : weighedAlong(node, first + i, axis, mode);
    });
    return wrap(nearest ? node : p.cast(node, floatOperand(x).dtype));
  });
}

function readScales(op: string, spatial: readonly number[], options: InterpolateOptions): AxisScale[] {
  const { size, scaleFactor, alignCorners = false } = options;
  if ((size === undefined) === (scaleFactor === undefined))
    throw new ArgumentError(
      op,
      say`size is ${size === undefined ? 'missing' : 'given'} and scaleFactor too: give exactly one of them`,
    );
  const what = size === undefined ? 'scaleFactor' : 'size';
  const value = options[what]!;
  if (typeof value !== 'number') checkList(op, what, value, '[2, 2]');
  const list = typeof value === 'number' ? spatial.map(() => value) : value;
  if (list.length !== spatial.length)
    throw new ArgumentError(
      op,
      say`wrong number of entries in ${what}: ${list.length} for ${spatial.length} spatial axes`,
    );
  return spatial.map((n, i) => {
    const entry = list[i]!;
    if (!Number.isFinite(entry) || entry <= 0 || (size !== undefined && !Number.isInteger(entry)))
      throw new ArgumentError(
        op,
        say`bad ${what}: ${entry}; must be ${size === undefined ? 'above 0' : 'an integer above 0'}`,
      );
    const m = size === undefined ? Math.floor(n * entry) : entry;
    if (m < 1 || n < 1)
      throw new ArgumentError(op, say`nothing left: ${n} elements times ${entry}; both sizes must be at least 1`);
    if (alignCorners) return { n, m, scale: m > 1 ? (n - 1) / (m - 1) : 0, align: true };
    return { n, m, scale: size === undefined ? 1 / entry : n / m, align: false };
  });
}

/** Whether a test holds for each of 0 .. count-1; false where there are too many to try. */
function each(count: number, holds: (i: number) => boolean): boolean {
  if (count > mostOnHost) return false;
  for (let i = 0; i < count; i++) if (!holds(i)) return false;
  return true;
}

function nearestAlong(x: Node, axis: number, { n, m, scale }: AxisScale, mode: InterpolateMode): Node {
  // In float32, as PyTorch has it for all dtypes.
  const step = Math.fround(scale);
  const shift = mode === 'nearestExact' ? 0.5 : 0;
  const place = (i: number): number => Math.min(n - 1, Math.floor(Math.fround((i + shift) * step)));
  const replaced = (size: readonly number[]): number[] => [
    ...x.shape.slice(0, axis),
    ...size,
    ...x.shape.slice(axis + 1),
  ];
  const times = m / n;
  // Places never go back: those between the first and the last of a repeated element are its own too.
  if (Number.isInteger(times) && each(n, (k) => place(k * times) === k && place((k + 1) * times - 1) === k))
    return p.reshape(p.expand(p.insertAxes(x, [axis + 1]), replaced([n, times])), replaced([m]));
  const [first, stride] = [place(0), m > 1 ? place(1) - place(0) : 1];
  if (stride > 0 && each(m, (i) => place(i) === first + i * stride)) {
    const only = (value: number, other: number): number[] => x.shape.map((_, i) => (i === axis ? value : other));
    return p.slice(x, only(first, 0), replaced([m]), only(stride, 1));
  }
  const at = p.mul(p.add(p.cast(p.iota(m), 'float32'), p.constant(shift, 'float32')), p.constant(step, 'float32'));
  const index = p.binary('minimum', p.cast(p.unary('floor', at), 'int32'), p.constant(n - 1, 'int32'));
  return makeNode(gatherPrimitive, [x, index], { axis });
}

/** Along one axis, the sum of weights times neighbours; those beyond the edge are the edge. */
function weighedAlong(x: Node, axis: number, { n, m, scale, align }: AxisScale, mode: InterpolateMode): Node {
  const cubic = mode === 'bicubic';
  const number = (value: number): Node => p.constant(value, x.dtype);
  const i = p.cast(p.iota(m), x.dtype);
  let at = p.mul(i, number(scale));
  if (!align) {
    at = p.sub(p.mul(p.add(i, number(0.5)), number(scale)), number(0.5));
    if (!cubic) at = p.binary('maximum', at, number(0));
  }
  const base = p.unary('floor', at);
  const part = p.sub(at, base);
  const weights = cubic ? cubicWeights(part) : [p.sub(number(1), part), part];
  const first = p.cast(base, 'int32');
  const terms = weights.map((weight, k) => {
    const index = clamped(p.add(first, p.constant(cubic ? k - 1 : k, 'int32')), n);
    const beside = p.reshape(weight, [m, ...x.shape.slice(axis + 1).map(() => 1)]);
    return p.mul(makeNode(gatherPrimitive, [x, index], { axis }), beside);
  });
  return terms.reduce(p.add);
}

/** Index moved into 0 .. n-1. */
function clamped(index: Node, n: number): Node {
  return p.binary('minimum', p.binary('maximum', index, p.constant(0, 'int32')), p.constant(n - 1, 'int32'));
}
