/**
 * What operations on images share: the order of their axes, padding (by zeros, or by an axis' own elements), the checks of both, and weights of cubic
 * interpolation.
 *
 * Inside, images are [N, C, ...spatial]; for 'nhwc' the axes are permuted on the way in and out, which is index arithmetic and
 * moves no element.
 */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { checkList, dilated, mostAxes, perAxis } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { isList, say } from '@polygrad/compiler/shape/shown';

/** Order of the axes of images. */
export type Layout = 'nchw' | 'nhwc';

/** A number for all spatial axes, or one per axis. */
export type PerAxis = number | readonly number[];

/** Zeros around the input: per axis, pairs of before and after, 'valid' (none), or 'same' (output size = input size / stride, rounded up). */
export type Padding = PerAxis | readonly (readonly [number, number])[] | 'same' | 'valid';

/** The layout of an option, or 'nchw'. */
export function readLayout(op: string, layout: Layout | undefined): Layout {
  if (layout === undefined || layout === 'nchw' || layout === 'nhwc') return layout ?? 'nchw';
  throw new ArgumentError(op, say`unknown layout: ${shown(layout)}; must be 'nchw' or 'nhwc'`);
}

/** Throws unless x has a batch axis, a channel axis and `rank` spatial axes. */
export function checkImage(op: string, x: Node, rank: number): void {
  if (x.shape.length === rank + 2) return;
  throw new ShapeError(
    op,
    say`shape ${showShape(x.shape)} has ${x.shape.length} axes: needs ${rank + 2}, batch, channels and ${rank} spatial; add axes with unsqueeze()`,
    [x.shape],
  );
}

/** Throws unless a window of these extents fits the padded image at least once along every axis. */
export function checkFits(
  op: string,
  what: string,
  image: readonly number[],
  extents: readonly number[],
  low: readonly number[],
  high: readonly number[],
): void {
  image.slice(2).forEach((n, i) => {
    const size = n + low[i]! + high[i]!;
    if (extents[i]! <= size) return;
    throw new ShapeError(
      op,
      say`${what} too large: ${extents[i]} elements along spatial axis ${i} of ${showShape(image)} ([N, C, ...]), which has ${size} with its padding; add padding or shrink it`,
      [image],
    );
  });
}

/** Zeros before and after each axis. */
export function readPadding(
  op: string,
  padding: Padding,
  input: readonly number[],
  kernel: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): { low: number[]; high: number[] } {
  const rank = input.length;
  if (padding === 'valid') return { low: input.map(() => 0), high: input.map(() => 0) };
  if (padding === 'same') {
    const total = input.map((n, i) => {
      const s = stride[i]!;
      return Math.max(0, (Math.ceil(n / s) - 1) * s + dilated(kernel[i]!, dilation[i]!) - n);
    });
    return { low: total.map((n) => Math.floor(n / 2)), high: total.map((n) => Math.ceil(n / 2)) };
  }
  if (typeof padding === 'string')
    throw new ArgumentError(op, say`bad padding: ${shown(padding)}; must be numbers, pairs, 'same' or 'valid'`);
  if (isList(padding) && isList(padding[0])) {
    const pairs = padding as readonly (readonly [number, number])[];
    checkList(op, 'padding', pairs, '[[1, 1], [0, 2]]', mostAxes);
    pairs.forEach((pair, axis) => {
      checkList(op, `padding of axis ${axis}`, pair, '[1, 1]');
      if (pair.length !== 2)
        throw new ArgumentError(
          op,
          say`bad padding: ${showShape(pair)} for axis ${axis}; must be a pair, before and after`,
        );
    });
    const side = (at: 0 | 1): number[] => {
      const numbers = pairs.map((pair) => pair[at]);
      return perAxis(op, 'padding', numbers, rank, 0);
    };
    return { low: side(0), high: side(1) };
  }
  const both = perAxis(op, 'padding', padding as PerAxis, rank, 0);
  return { low: both, high: [...both] };
}

/** Image axes in the order [N, C, ...spatial]. */
export function toChannelsFirst(x: Node, layout: Layout): Node {
  const rank = x.shape.length;
  return layout === 'nhwc' ? p.permute(x, [0, rank - 1, ...Array.from({ length: rank - 2 }, (_, i) => i + 1)]) : x;
}

/** Back to the order of the layout. */
export function fromChannelsFirst(x: Node, layout: Layout): Node {
  const rank = x.shape.length;
  return layout === 'nhwc' ? p.permute(x, [0, ...Array.from({ length: rank - 2 }, (_, i) => i + 2), 1]) : x;
}

// Weights of cubic convolution (Keys, 1981), with the slope -3/4 that image libraries use.

const slope = -0.75;

/** Weights of the neighbours at -1, 0, 1 and 2 for a position at `part` (0 .. 1) behind neighbour 0. They add up to 1. */
export function cubicWeights(part: Node): Node[] {
  const number = (value: number): Node => p.like(part, value);
  const polynomial = (t: Node, ...coefficients: readonly number[]): Node =>
    coefficients.slice(1).reduce((sum, c) => p.add(p.mul(sum, t), number(c)), number(coefficients[0]!));
  const near = (t: Node): Node => polynomial(t, slope + 2, -(slope + 3), 0, 1);
  const far = (t: Node): Node => polynomial(t, slope, -5 * slope, 8 * slope, -4 * slope);
  const rest = p.sub(number(1), part);
  return [far(p.add(part, number(1))), near(part), near(rest), far(p.add(rest, number(1)))];
}

// Padding of an axis by its own elements: reflection, edge, other end. Padding by a number is the primitive `pad`.

/** The mirrored inside without or (symmetric) with the edge, the edge, the other end. */
export type FilledFrom = 'reflect' | 'symmetric' | 'replicate' | 'circular';

/** Elements `start` to before `stop` along an axis. */
export function partOf(node: Node, axis: number, start: number, stop: number): Node {
  const { shape } = node;
  return p.slice(
    node,
    shape.map((_, i) => (i === axis ? start : 0)),
    shape.map((size, i) => (i === axis ? stop - start : size)),
    shape.map(() => 1),
  );
}

/** A node with `before` and `after` elements put around an axis; negative numbers cut, no more than the axis has. */
export function extended(op: string, node: Node, axis: number, before: number, after: number, mode: FilledFrom): Node {
  const n = node.shape[axis]!;
  // The part of the axis that stays. Reflections are about the edges of the whole axis and may take cut elements; 'circular' wraps what stays.
  const [first, end] = [Math.max(0, -before), n - Math.max(0, -after)];
  const most = { reflect: n - 1, symmetric: n, replicate: n > 0 ? Number.POSITIVE_INFINITY : 0, circular: end - first }[
    mode
  ];
  if (Math.max(before, after) > most) {
    throw new ShapeError(
      op,
      say`width too large for mode '${mode}': [${before}, ${after}] for axis ${axis} of size ${n}; at most ${Math.max(0, most)}`,
      [node.shape],
    );
  }
  const part = (start: number, stop: number): Node => partOf(node, axis, start, stop);
  const skipped = mode === 'reflect' ? 1 : 0;
  /** Elements of one end. The numbers say where they are taken from: the edge, the other end, or mirrored. */
  const around = (count: number, edge: number, wrapped: number, mirrored: number): Node[] => {
    if (count <= 0) return [];
    if (mode === 'circular') return [part(wrapped, wrapped + count)];
    if (mode !== 'replicate') return [p.flip(part(mirrored, mirrored + count), [axis])];
    const shape = node.shape.map((size, i) => (i === axis ? count : size));
    return [p.expand(part(edge, edge + 1), shape)];
  };
  const low = around(before, 0, end - before, skipped);
  const inside = part(first, end);
  return p.concat([...low, inside, ...around(after, n - 1, first, n - after - skipped)], axis);
}
