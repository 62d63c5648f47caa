/**
 * Pooling to a given size. The windows follow from the sizes: the i-th of m windows over n elements goes from floor(i n / m) to ceil((i + 1) n / m).
 * So windows may overlap, and their sizes differ by at most one. Source: PyTorch `adaptive_avg_pool2d`.
 */
import { lowest } from '@polygrad/compiler/shape/dtype';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { customRules } from '../../graph/definition.ts';
import { compose } from '../../graph/scope.ts';
import { gatherPrimitive, scatterAddPrimitive } from '../../primitives/indexing.ts';
import { checkList, checkShape, mostAxes } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { checkImage, fromChannelsFirst, type Layout, readLayout, toChannelsFirst } from '../images/image.ts';
import { say } from '@polygrad/compiler/shape/shown';
import type { WithIndices } from './pooling.ts';

/** Size of the result: a number for all spatial axes, or one per axis; null keeps the input's. */
export type AdaptiveSize = number | readonly (number | null)[];

/** Options of adaptive pooling. */
export interface AdaptiveSettings {
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

interface Adaptive {
  readonly image: Node;
  readonly layout: Layout;
  /** Windows of an image: [N, C, ...out, ...longest window], with what lies outside a window replaced. */
  readonly windows: (image: Node, outside: number) => Node;
  /** True where the windows lie side by side along all axes: no element is in two of them. */
  readonly even: boolean;
  /** Position in its image of an element of each window, given by its row-major position in the window. */
  readonly positions: (inside: Node) => Node;
  /** Elements of each window: broadcasts with [...out]. */
  readonly counts: Node;
}

const int = (value: number): Node => p.constant(value, 'int32');

function adaptive(op: string, rank: number, x: Node, size: AdaptiveSize, settings: AdaptiveSettings): Adaptive {
  checkImage(op, x, rank);
  const layout = readLayout(op, settings.layout);
  const image = toChannelsFirst(x, layout);
  const spatial = image.shape.slice(2);
  if (typeof size !== 'number') checkList(op, 'size', size, '[2, 2]', mostAxes);
  const wanted = typeof size === 'number' ? spatial.map(() => size) : [...size];
  if (wanted.length !== rank)
    throw new ArgumentError(
      op,
      say`wrong number of sizes: ${wanted.length} for ${rank} axes; give a number or one per axis`,
    );
  const out = wanted.map((n, i) => n ?? spatial[i]!);
  out.forEach((n, i) => {
    if (!Number.isInteger(n) || n < 1)
      throw new ArgumentError(op, say`bad size: ${n}; must be an integer of at least 1, or null for the input's`);
    if (spatial[i] === 0)
      throw new ShapeError(op, say`nothing to pool: spatial axis ${i} of ${showShape(x.shape)} is empty`, [x.shape]);
  });
  checkShape(op, [...image.shape.slice(0, 2), ...out]);
  const axes = spatial.map((n, i) => axisWindows(n, out[i]!));
  const longest = axes.map(({ longest }) => longest);
  // Along axis i: positions of windows at i, elements of a window at rank + i.
  const placed = (node: Node, axis: number): Node =>
    p.reshape(
      node,
      [...out, ...longest].map((n, i) => (i === axis || i === rank + axis ? n : 1)),
    );
  const scale = (i: number): number => sizeOf(spatial.slice(i + 1));
  const combined = (parts: readonly Node[], combine: (a: Node, b: Node) => Node): Node => parts.reduce(combine);
  const taps = combined(
    axes.map(({ index }, i) => p.mul(placed(index, i), int(scale(i)))),
    p.add,
  );
  const masks = axes.flatMap(({ inside }, i) => (inside === null ? [] : [placed(inside, i)]));
  const along = (node: Node, axis: number): Node =>
    p.reshape(
      node,
      out.map((n, i) => (i === axis ? n : 1)),
    );
  const counts = combined(
    axes.map(({ length }, i) => along(length, i)),
    p.mul,
  );
  const positions = (inside: Node): Node => {
    let left = inside;
    const parts = axes.map(() => inside);
    for (let i = rank - 1; i >= 0; i--) {
      const tap = p.binary('irem', left, int(longest[i]!));
      left = p.binary('idiv', left, int(longest[i]!));
      parts[i] = p.mul(p.add(tap, along(axes[i]!.start, i)), int(scale(i)));
    }
    return combined(parts, p.add);
  };
  const even = axes.every((axis) => axis.even);
  const windows = (image: Node, outside: number): Node => {
    let view: Node;
    if (even) {
      // Windows side by side: a reshape.
      const split = p.reshape(image, [...image.shape.slice(0, 2), ...out.flatMap((n, i) => [n, longest[i]!])]);
      const order = out.map((_, i) => 2 + 2 * i);
      view = p.permute(split, [0, 1, ...order, ...order.map((axis) => axis + 1)]);
    } else {
      const flat = p.reshape(image, [...image.shape.slice(0, 2), sizeOf(spatial)]);
      view = makeNode(gatherPrimitive, [flat, p.broadcastTo(taps, [...out, ...longest])], { axis: 2 });
    }
    return masks.length === 0
      ? view
      : p.where(
          combined(masks, (a, b) => p.binary('and', a, b)),
          view,
          p.like(view, outside),
        );
  };
  return { image, layout, windows, even, positions, counts };
}

interface AxisWindows {
  readonly longest: number;
  /** True if the windows lie side by side. */
  readonly even: boolean;
  /** Where window i begins, [m]. */
  readonly start: Node;
  /** Position of element k of window i, [m, longest]; those beyond the window's end are moved inside. */
  readonly index: Node;
  /** Whether element k belongs to window i; null if all do. */
  readonly inside: Node | null;
  /** Elements of window i, [m]. */
  readonly length: Node;
}

/** The greatest common divisor. */
function gcd(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return x;
}

function axisWindows(n: number, m: number): AxisWindows {
  // Window i has floor(n / m) elements. Where m does not divide n, it has one more for each of its ends that lies inside an element. The first
  // window has one such end. Some other has two, unless every window begins or ends between elements.
  const shortest = Math.ceil(n / m);
  const longest = n % m > gcd(n, m) ? shortest + 1 : shortest;
  const i = p.iota(m);
  const start = p.binary('idiv', p.mul(i, int(n)), int(m));
  const end = p.binary('idiv', p.add(p.mul(p.add(i, int(1)), int(n)), int(m - 1)), int(m));
  const at = p.add(p.reshape(start, [m, 1]), p.iota(longest));
  return {
    longest,
    even: n % m === 0,
    start,
    index: p.binary('minimum', at, int(n - 1)),
    inside: longest === shortest ? null : p.lt(at, p.reshape(end, [m, 1])),
    length: p.sub(end, start),
  };
}

const innerAxes = (rank: number): number[] => Array.from({ length: rank }, (_, i) => 2 + rank + i);

function adaptiveAverage(op: string, rank: number, x: Tensor, size: AdaptiveSize, settings: AdaptiveSettings): Tensor {
  checkNames(op, settings, 'layout');
  return compose(op, () => {
    const a = adaptive(op, rank, floatOperand(x), size, settings);
    const total = p.reduce(a.windows(a.image, 0), 'sum', innerAxes(rank));
    return wrap(fromChannelsFirst(p.div(total, p.cast(a.counts, total.dtype)), a.layout));
  });
}

/**
 * Means of windows over one spatial axis, as many as asked for. Source: PyTorch `adaptive_avg_pool1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param size number of windows
 * @returns shape [N, C, size], of the dtype of the input; integers become float32
 * @throws ArgumentError for sizes below 1
 *
 * @example
 * adaptiveAvgPool1d(tensor([[[1, 2, 3]]]), 2); // [[[1.5, 2.5]]]
 */
export function adaptiveAvgPool1d(x: Tensor, size: AdaptiveSize, settings: AdaptiveSettings = {}): Tensor {
  return adaptiveAverage('adaptiveAvgPool1d', 1, x, size, settings);
}

/**
 * Means of windows over two spatial axes, as many as asked for. Source: PyTorch `adaptive_avg_pool2d`.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param size height and width of the result: a number, or a pair, in which null keeps the input's
 * @returns shape [N, C, height, width] or [N, height, width, C], of the dtype of the input; integers become float32
 * @throws ArgumentError for sizes below 1
 *
 * @example
 * adaptiveAvgPool2d(tensor([[[[1, 2], [3, 4]]]]), 1); // [[[[2.5]]]]
 */
export function adaptiveAvgPool2d(x: Tensor, size: AdaptiveSize, settings: AdaptiveSettings = {}): Tensor {
  return adaptiveAverage('adaptiveAvgPool2d', 2, x, size, settings);
}

/**
 * Means of windows over three spatial axes, as many as asked for. Source: PyTorch `adaptive_avg_pool3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param size sizes of the result: a number, or three, in which null keeps the input's
 * @returns shape [N, C, ...size] or [N, ...size, C], of the dtype of the input; integers become float32
 * @throws ArgumentError for sizes below 1
 *
 * @example
 * adaptiveAvgPool3d(tensor([[[[[1, 2], [3, 4]]]]]), [1, 2, 1]); // [[[[[1.5], [3.5]]]]]
 */
export function adaptiveAvgPool3d(x: Tensor, size: AdaptiveSize, settings: AdaptiveSettings = {}): Tensor {
  return adaptiveAverage('adaptiveAvgPool3d', 3, x, size, settings);
}

type MaxSettings = AdaptiveSettings & Partial<WithIndices>;

function adaptiveMaximum(
  op: string,
  rank: number,
  x: Tensor,
  size: AdaptiveSize,
  settings: MaxSettings,
): Tensor | [Tensor, Tensor] {
  checkNames(op, settings, 'layout returnIndices?');
  return compose(op, () => {
    const node = nodeOf(x);
    const a = adaptive(op, rank, node, size, settings);
    const values = wrap(fromChannelsFirst(largest(a, rank), a.layout));
    return settings.returnIndices ? [values, wrap(fromChannelsFirst(winners(a, a.image, rank), a.layout))] : values;
  });
}

const lowestOf = (image: Node): number => Number(lowest(image.dtype));

/** Position in its image of the largest element of each window, the first of equals. */
function winners(a: Adaptive, image: Node, rank: number): Node {
  return a.positions(p.argReduce(a.windows(image, lowestOf(image)), 'max', innerAxes(rank)));
}

/** The largest element of each window. Where windows share elements, gradients are added at the winners: other elements of windows get none. */
function largest(a: Adaptive, rank: number): Node {
  const top = p.reduce(a.windows(a.image, lowestOf(a.image)), 'max', innerAxes(rank), 'first');
  if (a.even) return top;
  const node = makeNode('stopGradient', [top, a.image], null);
  customRules.set(node, (grad, { src }) => {
    const image = src[1]!;
    const places = sizeOf(image.shape);
    const planes = image.shape[0]! * image.shape[1]!;
    const own = p.mul(p.iota(planes), int(sizeOf(image.shape.slice(2))));
    const found = p.add(
      winners(a, image, rank),
      p.reshape(own, [...image.shape.slice(0, 2), ...image.shape.slice(2).map(() => 1)]),
    );
    const updates = [p.reshape(found, [sizeOf(found.shape)]), p.reshape(grad, [sizeOf(found.shape)])];
    const sums = makeNode(scatterAddPrimitive, [p.constant(0, grad.dtype, [places]), ...updates], { axis: 0 });
    return [null, p.reshape(sums, image.shape)];
  });
  return node;
}

/**
 * The largest elements of windows over one spatial axis, as many as asked for; the first of equals, and NaN wins. Source: PyTorch
 * `adaptive_max_pool1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param size number of windows
 * @param settings layout; returnIndices: also the positions (int32) in each image
 * @returns the shape of adaptiveAvgPool1d
 * @throws ArgumentError for sizes below 1
 *
 * @example
 * adaptiveMaxPool1d(tensor([[[1, 3, 2]]]), 1); // [[[3]]]
 */
export function adaptiveMaxPool1d(
  x: Tensor,
  size: AdaptiveSize,
  settings: AdaptiveSettings & WithIndices,
): [Tensor, Tensor];
export function adaptiveMaxPool1d(x: Tensor, size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
export function adaptiveMaxPool1d(
  x: Tensor,
  size: AdaptiveSize,
  settings: MaxSettings = {},
): Tensor | [Tensor, Tensor] {
  return adaptiveMaximum('adaptiveMaxPool1d', 1, x, size, settings);
}

/**
 * The largest elements of windows over two spatial axes, as many as asked for; the first of equals, and NaN wins. Source: PyTorch
 * `adaptive_max_pool2d`.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param size height and width of the result: a number, or a pair, in which null keeps the input's
 * @param settings layout; returnIndices: also the positions (int32) in each image
 * @returns the shape of adaptiveAvgPool2d
 * @throws ArgumentError for sizes below 1
 *
 * @example
 * adaptiveMaxPool2d(tensor([[[[1, 2], [3, 4]]]]), [1, 2]); // [[[[3, 4]]]]
 */
export function adaptiveMaxPool2d(
  x: Tensor,
  size: AdaptiveSize,
  settings: AdaptiveSettings & WithIndices,
): [Tensor, Tensor];
export function adaptiveMaxPool2d(x: Tensor, size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
export function adaptiveMaxPool2d(
  x: Tensor,
  size: AdaptiveSize,
  settings: MaxSettings = {},
): Tensor | [Tensor, Tensor] {
  return adaptiveMaximum('adaptiveMaxPool2d', 2, x, size, settings);
}

/**
 * The largest elements of windows over three spatial axes, as many as asked for; the first of equals, and NaN wins. Source: PyTorch
 * `adaptive_max_pool3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param size sizes of the result: a number, or three, in which null keeps the input's
 * @param settings layout; returnIndices: also the positions (int32) in each image
 * @returns the shape of adaptiveAvgPool3d
 * @throws ArgumentError for sizes below 1
 *
 * @example
 * adaptiveMaxPool3d(tensor([[[[[1, 2], [3, 4]]]]]), 1); // [[[[[4]]]]]
 */
export function adaptiveMaxPool3d(
  x: Tensor,
  size: AdaptiveSize,
  settings: AdaptiveSettings & WithIndices,
): [Tensor, Tensor];
export function adaptiveMaxPool3d(x: Tensor, size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
export function adaptiveMaxPool3d(
  x: Tensor,
  size: AdaptiveSize,
  settings: MaxSettings = {},
): Tensor | [Tensor, Tensor] {
  return adaptiveMaximum('adaptiveMaxPool3d', 3, x, size, settings);
}

/**
 * The mean of each channel over its image. Source: Lin et al., "Network in Network" (2014).
 *
 * @param options keepDims (false), layout
 * @returns shape [N, C], or with axes of size 1 for the spatial ones, of the dtype of the input; integers become float32
 *
 * @example
 * globalAvgPool2d(ones([2, 3, 4, 4])).shape; // [2, 3]
 */
export function globalAvgPool2d(
  x: Tensor,
  options: { readonly keepDims?: boolean; readonly layout?: Layout } = {},
): Tensor {
  checkNames('globalAvgPool2d', options, 'keepDims? layout');
  return compose('globalAvgPool2d', () => {
    const node = floatOperand(x);
    checkImage('globalAvgPool2d', node, 2);
    const axes = readLayout('globalAvgPool2d', options.layout) === 'nhwc' ? [1, 2] : [2, 3];
    const count = node.shape[axes[0]!]! * node.shape[axes[1]!]!;
    const average = p.div(p.reduce(node, 'sum', axes), p.like(node, count));
    return wrap(options.keepDims ? p.insertAxes(average, axes) : average);
  });
}
