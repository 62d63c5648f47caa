/**
 * Images at other sizes, images read at any positions, and the grids of positions that affine maps make.
 *
 * Other sizes take nearest elements, or weighted sums of neighbours, one spatial axis after the other. Positions follow PyTorch 1.13. Output i of
 * an axis lies at (i + 1/2) scale - 1/2 in the input. There scale is input size / output size, or 1 / scaleFactor where that is given. With
 * aligned corners it lies at i (n - 1) / (m - 1), for n elements in and m out.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { gatherPrimitive } from '../../primitives/indexing.ts';
import { fmodPrimitive, roundPrimitive } from '../../primitives/elementary.ts';
import { checkList, checkOptions, checkShape, mostOnHost } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, floatOperands } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { widened } from '../elementwise/recording.ts';
import { cubicWeights, type Layout, readLayout, toChannelsFirst } from './image.ts';

/** How `interpolate` takes an element from its neighbours. */
export type InterpolateMode = 'nearest' | 'nearestExact' | 'linear' | 'bilinear' | 'trilinear' | 'bicubic';

/** Options of `interpolate`. */
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
    checkOptions(op, options, '{ scaleFactor: 2 }');
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
  // Positions never decrease. So if the first and the last copy of an element are right, those between them are too.
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

// Images read at any positions, and the grids of positions that affine maps make.
//
// Positions run from -1 to 1 over each spatial axis, x (the last axis) first. Rows of channels are gathered from the image with the channels last,
// whatever its layout. So each neighbour is one gather with one weight per position.

/** Options of `gridSample`. */
export interface GridSampleOptions {
  /** Default 'bilinear', which is trilinear for three spatial axes. 'bicubic' is for two. */
  readonly mode?: 'bilinear' | 'nearest' | 'bicubic';
  /** What lies outside the image: zeros, its edge, or its mirror image. Default 'zeros'. */
  readonly paddingMode?: 'zeros' | 'border' | 'reflection';
  /** -1 and 1 are the centres of the first and last elements, instead of their outer edges. Default false. */
  readonly alignCorners?: boolean;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/** A neighbour of each position along one axis: where, its weight, and whether it is in the image. */
interface Neighbour {
  readonly index: Node;
  readonly weight: Node;
  readonly inside: Node;
}

type Settings = Required<Omit<GridSampleOptions, 'layout'>>;

/** Coordinate limited to low .. high; without slope outside and at the limits. NaN stays. */
function limited(at: Node, low: number, high: number): Node {
  const [bottom, top] = [p.like(at, low), p.like(at, high)];
  return p.where(p.le(at, bottom), bottom, p.where(p.le(top, at), top, at));
}

/** Coordinate mirrored at the edges of the image as often as it takes. */
function mirrored(at: Node, n: number, align: boolean): Node {
  const [low, span] = align ? [0, n - 1] : [-0.5, n];
  if (span === 0) return p.mul(at, p.like(at, 0));
  const away = p.unary('abs', p.sub(at, p.like(at, low)));
  const turns = p.unary('floor', p.div(away, p.like(at, span)));
  const rest = p.binary(fmodPrimitive, away, p.like(at, span));
  const odd = p.eq(p.binary(fmodPrimitive, turns, p.like(at, 2)), p.like(at, 1));
  const back = p.where(odd, p.sub(p.like(at, span), rest), rest);
  return limited(p.add(back, p.like(at, low)), 0, n - 1);
}

function padded(at: Node, n: number, { paddingMode, alignCorners }: Settings): Node {
  if (paddingMode === 'border') return limited(at, 0, n - 1);
  return paddingMode === 'reflection' ? mirrored(at, n, alignCorners) : at;
}

/** Neighbours of positions -1 .. 1 along an axis of n elements. */
function neighbours(position: Node, n: number, settings: Settings): Neighbour[] {
  const one = p.like(position, 1);
  const half = p.like(position, 0.5);
  const shifted = p.add(position, one);
  const centre = settings.alignCorners
    ? p.mul(p.mul(shifted, half), p.like(position, n - 1))
    : p.mul(p.sub(p.mul(shifted, p.like(position, n)), one), half);
  const cubic = settings.mode === 'bicubic';
  // Far outside is 0 like just outside, and infinity would have no neighbours.
  const near = settings.paddingMode === 'zeros' ? limited(centre, -4, n + 3) : centre;
  const at = cubic ? near : padded(near, n, settings);
  const neighbour = (place: Node, weight: Node): Neighbour => ({
    index: p.cast(limited(place, 0, n - 1), 'int32'),
    weight,
    inside: p.binary('and', p.le(p.like(place, 0), place), p.le(place, p.like(place, n - 1))),
  });
  if (settings.mode === 'nearest') {
    // No weight, but NaN stays.
    const still = p.stopGradient(at);
    return [neighbour(p.unary(roundPrimitive, still), p.where(p.unary('isNaN', still), still, one))];
  }
  const base = p.unary('floor', p.stopGradient(at));
  const part = p.sub(at, base);
  const weights = cubic ? cubicWeights(part) : [p.sub(one, part), part];
  return weights.map((weight, k) => {
    const place = p.add(base, p.like(base, cubic ? k - 1 : k));
    return neighbour(cubic ? padded(place, n, settings) : place, weight);
  });
}

function readSettings(op: string, options: GridSampleOptions, rank: number): Settings {
  const { mode = 'bilinear', paddingMode = 'zeros', alignCorners = false } = options;
  if (!['bilinear', 'nearest', 'bicubic'].includes(mode) || (mode === 'bicubic' && rank !== 2))
    throw new ArgumentError(
      op,
      say`mode ${shown(mode)} with ${rank} spatial axes: must be 'bilinear' or 'nearest', or 'bicubic' for two axes`,
    );
  if (!['zeros', 'border', 'reflection'].includes(paddingMode))
    throw new ArgumentError(
      op,
      say`unknown paddingMode: ${shown(paddingMode)}; must be 'zeros', 'border' or 'reflection'`,
    );
  return { mode, paddingMode, alignCorners };
}

/**
 * The image at the positions of a grid. Source: Jaderberg et al., "Spatial transformer networks" (2015); PyTorch `grid_sample`, version 1.13.
 *
 * @param x shape [N, C, H, W] or [N, C, D, H, W], or with the channels last and layout 'nhwc'
 * @param grid positions (x, y) or (x, y, z) from -1 to 1, shape [N, H', W', 2] or [N, D', H', W', 3]
 * @param options mode ('bilinear'), paddingMode ('zeros'), alignCorners (false), layout
 * @returns shape [N, C, H', W'] or [N, H', W', C]; gradients flow to image and grid, but none to the grid in mode 'nearest',
 *   of the dtype of the input; integers become float32
 * @throws ShapeError where image and grid do not fit
 *
 * @example
 * const image = tensor([[[[1, 2], [3, 4]]]]);
 * gridSample(image, tensor([[[[0, 0], [1, 1]]]]), { alignCorners: true }); // [[[[2.5, 4]]]]
 */
export function gridSample(x: Tensor, grid: Tensor, options: GridSampleOptions = {}): Tensor {
  checkNames('gridSample', options, 'mode paddingMode alignCorners? layout');
  const op = 'gridSample';
  return compose(op, () => {
    const [given, positions] = floatOperands(x, grid);
    const places = widened(positions);
    const rank = given.shape.length - 2;
    const out = places.shape.slice(1, -1);
    const batch = given.shape[0]!;
    if (
      (rank !== 2 && rank !== 3) ||
      places.shape.length !== rank + 2 ||
      places.shape[rank + 1] !== rank ||
      places.shape[0] !== batch
    ) {
      throw new ShapeError(
        op,
        say`image and grid do not fit: ${showShape(given.shape)} and ${showShape(places.shape)}; need [N, C, H, W] and [N, H', W', 2], or with a depth 5 axes each and 3`,
        [given.shape, places.shape],
      );
    }
    const settings = readSettings(op, options, rank);
    const layout = readLayout(op, options.layout);
    const image = toChannelsFirst(given, layout);
    const [channels, ...spatial] = image.shape.slice(1) as [number, ...number[]];
    const [pixels, points] = [sizeOf(spatial), sizeOf(out)];
    if (pixels === 0)
      throw new ShapeError(op, say`nothing to sample: image ${showShape(given.shape)} has no pixels`, [given.shape]);
    const rows = p.reshape(p.permute(image, [0, ...spatial.map((_, i) => i + 2), 1]), [batch * pixels, channels]);
    const flat = p.reshape(places, [batch, points, rank]);
    const coordinate = (i: number): Node =>
      p.reshape(p.slice(flat, [0, 0, i], [batch, points, 1], [1, 1, 1]), [batch, points]);
    // x is the last axis.
    const axes = spatial.map((n, i) => neighbours(coordinate(rank - 1 - i), n, settings));
    const start = p.mul(p.reshape(p.iota(batch), [batch, 1]), p.constant(pixels, 'int32'));
    const corners = axes.reduce<Neighbour[]>(
      (list, along, i) => {
        const scale = p.constant(sizeOf(spatial.slice(i + 1)), 'int32');
        return list.flatMap((corner) =>
          along.map((next) => ({
            index: p.add(corner.index, p.mul(next.index, scale)),
            weight: i === 0 ? next.weight : p.mul(corner.weight, next.weight),
            inside: i === 0 ? next.inside : p.binary('and', corner.inside, next.inside),
          })),
        );
      },
      [{ index: start, weight: flat, inside: flat }],
    );
    const beside = (node: Node): Node => p.insertAxes(node, [2]);
    const terms = corners.map(({ index, weight, inside }) => {
      const row = widened(makeNode(gatherPrimitive, [rows, index], { axis: 0 }));
      return p.mul(p.where(beside(inside), row, p.like(row, 0)), beside(weight));
    });
    const result = p.cast(p.reshape(terms.reduce(p.add), [batch, ...out, channels]), given.dtype);
    return wrap(layout === 'nhwc' ? result : p.permute(result, [0, rank + 1, ...out.map((_, i) => i + 1)]));
  });
}

/**
 * The grid of positions that an affine map makes of the positions of an image: gridSample with it moves, turns and scales images. Source:
 * Jaderberg et al. (2015); PyTorch `affine_grid`, version 1.13.
 *
 * @param theta maps from (x, y, 1) to (x, y), shape [N, 2, 3], or for three spatial axes [N, 3, 4]
 * @param size shape of the result of gridSample: [N, C, H, W] or [N, C, D, H, W], with the channels last for layout 'nhwc'
 * @param options alignCorners (false) as in gridSample; layout
 * @returns shape [N, H, W, 2] or [N, D, H, W, 3], of the dtype of the input; integers become float32
 * @throws ShapeError where theta and size do not fit
 *
 * @example
 * const mirror = tensor([[[-1, 0, 0], [0, 1, 0]]]);
 * affineGrid(mirror, [1, 1, 1, 2]); // [[[[0.5, 0], [-0.5, 0]]]]
 */
export function affineGrid(
  theta: Tensor,
  size: readonly number[],
  options: { readonly alignCorners?: boolean; readonly layout?: Layout } = {},
): Tensor {
  checkNames('affineGrid', options, 'alignCorners? layout');
  const op = 'affineGrid';
  return compose(op, () => {
    const given = floatOperand(theta);
    const map = widened(given);
    checkList(op, 'size', size, '[1, 3, 8, 8]');
    checkShape(op, size);
    const rank = size.length - 2;
    if (
      (rank !== 2 && rank !== 3) ||
      map.shape.length !== 3 ||
      map.shape[0] !== size[0] ||
      map.shape[1] !== rank ||
      map.shape[2] !== rank + 1
    ) {
      throw new ShapeError(
        op,
        say`theta and size do not fit: ${showShape(map.shape)} and ${showShape(size)}; need [N, 2, 3] and [N, C, H, W], or [N, 3, 4] and [N, C, D, H, W]`,
        [map.shape, size],
      );
    }
    const spatial = readLayout(op, options.layout) === 'nhwc' ? size.slice(1, -1) : size.slice(2);
    const batch = map.shape[0]!;
    const ones = spatial.map(() => 1);
    /** Entries of column `column` of all maps, for each position: [N, 1 ..., rank]. */
    const entries = (column: number): Node =>
      p.reshape(p.slice(map, [0, 0, column], [batch, rank, 1], [1, 1, 1]), [batch, ...ones, rank]);
    let grid = entries(rank);
    spatial.forEach((n, i) => {
      const step = p.cast(p.iota(n), map.dtype);
      const from = options.alignCorners ? -1 : 1 / n - 1;
      const by = options.alignCorners ? (n > 1 ? 2 / (n - 1) : 0) : 2 / n;
      const start = options.alignCorners && n === 1 ? 0 : from;
      const at = p.add(p.mul(step, p.like(map, by)), p.like(map, start));
      const along = p.reshape(at, [1, ...spatial.map((_, axis) => (axis === i ? n : 1)), 1]);
      grid = p.add(grid, p.mul(entries(rank - 1 - i), along));
    });
    return wrap(p.cast(p.broadcastTo(grid, [batch, ...spatial, rank]), given.dtype));
  });
}
