/** Means, p-norms and largest values of sliding windows. max-unpooling.ts puts the largest values back where they came from. */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { largestAmong } from '../../primitives/reduction.ts';
import { dilated, perAxis } from '@polygrad/compiler/shape/axes';
import { type DType, lowest } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { abs, pow, reciprocal, square } from '../elementwise/arithmetic.ts';
import { sqrt } from '../elementwise/transcendental.ts';
import {
  checkFits,
  checkImage,
  fromChannelsFirst,
  type Layout,
  type Padding,
  type PerAxis,
  readLayout,
  readPadding,
  toChannelsFirst,
} from '../images/image.ts';

// Windows of pooling: their size, stride, padding and what is left over at the edge, read from the arguments once.
//
// Windows are given as a size or as options: `maxPool2d(x, 2)`, `maxPool2d(x, 3, { stride: 2, padding: 1 })`,
// `maxPool2d(x, { kernelSize: 2 })`. The stride is the window's size unless given.

/** Options of pooling besides the size of the window. */
export interface PoolSettings {
  /** Default: the window's size. */
  readonly stride?: PerAxis;
  /** Default 0. */
  readonly padding?: Padding;
  /** Distance between the elements of a window. Default 1. */
  readonly dilation?: PerAxis;
  /** Let a last window reach over the edge, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
  /** Average pooling: divide by the window's size where padding is inside it (default true), or by the number of real elements. */
  readonly countIncludePad?: boolean;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/** Options of pooling with the size of the window. */
export interface PoolOptions extends PoolSettings {
  readonly kernelSize: PerAxis;
}

/** A window: its size, or options that contain it. */
export type PoolWindow = PerAxis | PoolOptions;

/** A pooling, read and checked. */
interface Geometry {
  readonly layout: Layout;
  readonly size: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
  /** Added after `high` so that the last window fits, with ceilMode. */
  readonly over: readonly number[];
  /** The input as [N, C, ...spatial]. */
  readonly image: Node;
  readonly options: Partial<PoolOptions>;
}

/** Reads the arguments of a pooling; throws in the name of `op`. */
function geometry(op: string, rank: number, x: Node, window: PoolWindow, settings: PoolSettings): Geometry {
  const given = typeof window === 'object' && window !== null && 'kernelSize' in window;
  const options: Partial<PoolOptions> & { readonly returnIndices?: true } = given
    ? { ...window, ...settings }
    : settings;
  checkNames(op, options, 'kernelSize stride padding dilation ceilMode? countIncludePad? layout returnIndices?');
  const layout = readLayout(op, options.layout);
  checkImage(op, x, rank);
  const image = toChannelsFirst(x, layout);
  const spatial = image.shape.slice(2);
  const size = perAxis(op, 'kernelSize', given ? window.kernelSize : window, rank, 1);
  const stride = perAxis(op, 'stride', options.stride ?? size, rank, 1);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, rank, 1);
  const { low, high } = readPadding(op, options.padding ?? 0, spatial, size, stride, dilation);
  const extents = size.map((n, i) => dilated(n, dilation[i]!));
  checkFits(op, 'window', image.shape, extents, low, high);
  [...low, ...high].forEach((n, i) => {
    const extent = extents[i % rank]!;
    if (n > extent / 2)
      throw new ArgumentError(
        op,
        say`padding too large: ${n} for a window over ${extent} elements; at most half of it`,
      );
  });
  const over = spatial.map((n, i) => {
    const [step, before] = [stride[i]!, low[i]!];
    const room = n + before + high[i]! - extents[i]!;
    if (!options.ceilMode || room % step === 0) return 0;
    // A window that would start in the padding behind the input is left out.
    const starts = (Math.floor(room / step) + 1) * step;
    return starts >= n + before ? 0 : step - (room % step);
  });
  return { layout, size, stride, dilation, low, high, over, image, options };
}

/** Windows of the padded image: [N, C, ...out, ...size]. */
function windows(image: Node, g: Geometry, value: number): Node {
  const padded = p.pad(image, [0, 0, ...g.low], [0, 0, ...g.high.map((n, i) => n + g.over[i]!)], value);
  return makeNode('window', [padded], { size: g.size, stride: g.stride, dilation: g.dilation });
}

/** Axes of the elements of each window. */
const windowAxes = (rank: number): number[] => Array.from({ length: rank }, (_, i) => i + 2 + rank);

/** `geometry` for means and norms. They have no positions, so `returnIndices` is refused. */
function geometryOfMeans(op: string, rank: number, x: Node, window: PoolWindow, settings: PoolSettings): Geometry {
  const g = geometry(op, rank, x, window, settings);
  checkNames(op, g.options, 'kernelSize stride padding dilation ceilMode? countIncludePad? layout');
  return g;
}

function averagePool(op: string, rank: number, x: Tensor, window: PoolWindow, settings: PoolSettings): Tensor {
  return compose(op, () => {
    const node = floatOperand(x);
    const g = geometryOfMeans(op, rank, node, window, settings);
    const total = p.reduce(windows(g.image, g, 0), 'sum', windowAxes(rank));
    const includePad = g.options.countIncludePad ?? true;
    const whole = g.over.every((n) => n === 0) && (includePad || [...g.low, ...g.high].every((n) => n === 0));
    const size = g.size.reduce((a, b) => a * b, 1);
    const divisor = whole ? p.like(node, size) : counts(g, node.dtype, includePad, rank);
    return wrap(fromChannelsFirst(p.div(total, divisor), g.layout));
  });
}

/** How many elements of each window count: [1, 1, ...out]. */
function counts(g: Geometry, dtype: DType, includePad: boolean, rank: number): Node {
  const spatial = g.image.shape.slice(2);
  const real = p.constant(1, dtype, [1, 1, ...spatial]);
  const around = includePad ? p.pad(real, [0, 0, ...g.low], [0, 0, ...g.high], 1) : real;
  const rest: Geometry = includePad ? { ...g, low: g.low.map(() => 0), high: g.high.map(() => 0) } : g;
  return p.reduce(windows(around, rest, 0), 'sum', windowAxes(rank));
}

/**
 * The mean of each window over one spatial axis. Source: PyTorch `avg_pool1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, countIncludePad, layout
 * @returns shape [N, C, L'], L' = floor((L + padding - dilation (size - 1) - 1) / stride) + 1, or rounded up with ceilMode,
 *   of the dtype of the input; integers become float32
 * @throws ShapeError where the window is larger than the padded input; ArgumentError for a padding above half of the window
 *
 * @example
 * avgPool1d(tensor([[[1, 5, 2, 4]]]), 2); // [[[3, 3]]]
 */
export function avgPool1d(x: Tensor, window: PoolWindow, settings: PoolSettings = {}): Tensor {
  return averagePool('avgPool1d', 1, x, window, settings);
}

/**
 * The mean of each window over two spatial axes. Source: PyTorch `avg_pool2d`.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, countIncludePad, layout
 * @returns shape [N, C, H', W'] or [N, H', W', C], sizes and errors as of avgPool1d, of the dtype of the input; integers become float32
 *
 * @example
 * avgPool2d(tensor([[[[1, 2], [3, 4]]]]), 2); // [[[[2.5]]]]
 */
export function avgPool2d(x: Tensor, window: PoolWindow, settings: PoolSettings = {}): Tensor {
  return averagePool('avgPool2d', 2, x, window, settings);
}

/**
 * The mean of each window over three spatial axes. Source: PyTorch `avg_pool3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, countIncludePad, layout
 * @returns shape [N, C, D', H', W'] or [N, D', H', W', C], sizes and errors as of avgPool1d, of the dtype of the input; integers become float32
 *
 * @example
 * avgPool3d(ones([1, 1, 2, 2, 2]), 2).shape; // [1, 1, 1, 1, 1]
 */
export function avgPool3d(x: Tensor, window: PoolWindow, settings: PoolSettings = {}): Tensor {
  return averagePool('avgPool3d', 3, x, window, settings);
}

function lpPool(
  op: string,
  rank: number,
  x: Tensor,
  order: number,
  window: PoolWindow,
  settings: PoolSettings,
): Tensor {
  return compose(op, () => {
    const t = wrap(floatOperand(x));
    if (typeof order !== 'number' || !(order >= 1 && order < Number.POSITIVE_INFINITY))
      throw new ArgumentError(
        op,
        say`bad order: ${order}; must be a number of at least 1; use maxPool2d of abs() for infinity`,
      );
    const g = geometryOfMeans(op, rank, nodeOf(t), window, settings);
    const view = wrap(windows(g.image, g, 0));
    const exponent = given(order, t);
    const powers = order === 1 ? abs(view) : order === 2 ? square(view) : pow(abs(view), exponent);
    const total = p.reduce(nodeOf(powers), 'sum', windowAxes(rank));
    // The slope of the root is infinite at 0. So there the root of 1 is taken, and replaced by 0.
    const none = p.eq(total, p.like(total, 0));
    const safe = wrap(p.where(none, p.like(total, 1), total));
    const root = order === 1 ? safe : order === 2 ? sqrt(safe) : pow(safe, reciprocal(exponent));
    return wrap(fromChannelsFirst(p.where(none, p.like(total, 0), nodeOf(root)), g.layout));
  });
}

/**
 * The p-norm of each window over one spatial axis: the p-th root of the sum of |x|^p. Source: ONNX `LpPool`; PyTorch `lp_pool1d`, which leaves
 * the magnitude out and is NaN for odd p and negative sums.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param order p, at least 1
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, layout
 * @returns the shape of avgPool1d; a window of zeros passes no gradient
 *
 * @example
 * lpPool1d(tensor([[[3, -4]]]), 2, 2); // [[[5]]]
 */
export function lpPool1d(x: Tensor, order: number, window: PoolWindow, settings: PoolSettings = {}): Tensor {
  return lpPool('lpPool1d', 1, x, order, window, settings);
}

/**
 * The p-norm of each window over two spatial axes: the p-th root of the sum of |x|^p. Source: ONNX `LpPool`; PyTorch `lp_pool2d`, which leaves
 * the magnitude out and is NaN for odd p and negative sums.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param order p, at least 1
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, layout
 * @returns the shape of avgPool2d; a window of zeros passes no gradient
 *
 * @example
 * lpPool2d(tensor([[[[3, 0], [-4, 0]]]]), 2, 2); // [[[[5]]]]
 */
export function lpPool2d(x: Tensor, order: number, window: PoolWindow, settings: PoolSettings = {}): Tensor {
  return lpPool('lpPool2d', 2, x, order, window, settings);
}

// The largest value of sliding windows, and its place. Of equal maxima the first one counts; NaN wins.

/** Options that ask for the positions of the maxima too. */
export interface WithIndices {
  readonly returnIndices: true;
}

function maxPool(
  op: string,
  rank: number,
  x: Tensor,
  window: PoolWindow,
  settings: PoolSettings & Partial<WithIndices>,
): Tensor | [Tensor, Tensor] {
  return compose(op, () => {
    const node = nodeOf(x);
    const g = geometry(op, rank, node, window, settings);
    const view = windows(g.image, g, Number(lowest(node.dtype)));
    const values = wrap(fromChannelsFirst(maxima(view, g, rank), g.layout));
    const wanted =
      settings.returnIndices ||
      (typeof window === 'object' && 'returnIndices' in window && window.returnIndices === true);
    return wanted ? [values, wrap(fromChannelsFirst(positions(view, g, rank), g.layout))] : values;
  });
}

const isPadded = (g: Geometry): boolean => g.low.some((n) => n > 0);

/** The largest element of each window. Its gradient goes to the first of equals in the image. */
function maxima(view: Node, g: Geometry, rank: number): Node {
  const axes = windowAxes(rank);
  return isPadded(g) ? largestAmong(view, axes, [], (x) => winners(x, g, rank)) : p.reduce(view, 'max', axes, 'first');
}

/**
 * Row-major position of each maximum in its window (int32). Padding holds the least value there is, so it is the first of equals where a window holds
 * nothing greater. No element of the image stands before the first one in it: so the larger of the two positions is in the image.
 */
function winners(view: Node, g: Geometry, rank: number): Node {
  const found = p.argReduce(view, 'max', windowAxes(rank));
  if (!isPadded(g)) return found;
  const number = (value: number): Node => p.constant(value, 'int32');
  const out = found.shape.slice(-rank);
  let first = number(0);
  g.size.forEach((n, i) => {
    const start = p.mul(p.iota(out[i]!), number(g.stride[i]!));
    const missing = p.binary('maximum', p.sub(number(g.low[i]!), start), number(0));
    const step = g.dilation[i]!;
    const tap = p.binary('idiv', p.add(missing, number(step - 1)), number(step));
    const placed = p.reshape(
      p.binary('minimum', tap, number(n - 1)),
      out.map((count, axis) => (axis === i ? count : 1)),
    );
    first = p.add(p.mul(first, number(n)), placed);
  });
  return p.binary('maximum', found, first);
}

/** Row-major position of each maximum in its image (int32), from its position in the window. */
function positions(view: Node, g: Geometry, rank: number): Node {
  const number = (value: number): Node => p.constant(value, 'int32');
  let inside = winners(view, g, rank);
  const spatial = g.image.shape.slice(2);
  let total: Node | null = null;
  let scale = 1;
  for (let i = rank - 1; i >= 0; i--) {
    const size = number(g.size[i]!);
    const tap = p.binary('irem', inside, size);
    inside = p.binary('idiv', inside, size);
    const out = inside.shape[i + 2]!;
    const start = p.reshape(
      p.iota(out),
      inside.shape.map((_, axis) => (axis === i + 2 ? out : 1)),
    );
    const first = p.sub(p.mul(start, number(g.stride[i]!)), number(g.low[i]!));
    let place = p.add(first, p.mul(tap, number(g.dilation[i]!)));
    // Where all of a window lies around the image: the image's last.
    if (isPadded(g)) place = p.binary('minimum', place, number(spatial[i]! - 1));
    const at = p.mul(place, number(scale));
    total = total === null ? at : p.add(total, at);
    scale *= spatial[i]!;
  }
  return total!;
}

/**
 * The largest element of each window over one spatial axis; NaN wins. Source: PyTorch `max_pool1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, layout; returnIndices: also the positions (int32) in the input
 * @returns the shape of avgPool1d, and its errors; with returnIndices [values, positions]
 *
 * @example
 * maxPool1d(tensor([[[1, 5, 2, 3]]]), 2); // [[[5, 3]]]
 */
export function maxPool1d(x: Tensor, window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
export function maxPool1d(x: Tensor, window: PoolWindow, settings?: PoolSettings): Tensor;
export function maxPool1d(
  x: Tensor,
  window: PoolWindow,
  settings: PoolSettings & Partial<WithIndices> = {},
): Tensor | [Tensor, Tensor] {
  return maxPool('maxPool1d', 1, x, window, settings);
}

/**
 * The largest element of each window over two spatial axes; NaN wins. Source: PyTorch `max_pool2d`.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, layout; returnIndices: also the positions (int32) in each image
 * @returns the shape of avgPool2d, and its errors; with returnIndices [values, positions]
 *
 * @example
 * maxPool2d(tensor([[[[1, 2], [3, 4]]]]), 2); // [[[[4]]]]
 */
export function maxPool2d(x: Tensor, window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
export function maxPool2d(x: Tensor, window: PoolWindow, settings?: PoolSettings): Tensor;
export function maxPool2d(
  x: Tensor,
  window: PoolWindow,
  settings: PoolSettings & Partial<WithIndices> = {},
): Tensor | [Tensor, Tensor] {
  return maxPool('maxPool2d', 2, x, window, settings);
}

/**
 * The largest element of each window over three spatial axes; NaN wins. Source: PyTorch `max_pool3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, layout; returnIndices: also the positions (int32) in each image
 * @returns the shape of avgPool3d, and its errors; with returnIndices [values, positions]
 *
 * @example
 * maxPool3d(ones([1, 1, 2, 2, 2]), 2).shape; // [1, 1, 1, 1, 1]
 */
export function maxPool3d(x: Tensor, window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
export function maxPool3d(x: Tensor, window: PoolWindow, settings?: PoolSettings): Tensor;
export function maxPool3d(
  x: Tensor,
  window: PoolWindow,
  settings: PoolSettings & Partial<WithIndices> = {},
): Tensor | [Tensor, Tensor] {
  return maxPool('maxPool3d', 3, x, window, settings);
}
