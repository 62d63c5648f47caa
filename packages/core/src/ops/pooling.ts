/**
 * Pooling: the largest or the mean value of sliding windows over the spatial axes.
 *
 * Windows are given as a size or as options: `maxPool2d(x, 2)`, `maxPool2d(x, 3, { stride: 2, padding: 1 })`,
 * `maxPool2d(x, { kernelSize: 2 })`. The stride is the window's size unless given. Of equal maxima the first takes the gradient.
 */
import { makeNode } from '../graph/build.ts';
import { dilated } from '../graph/infer-conv.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { compose } from '../graph/scope.ts';
import { perAxis } from '../shape/axes.ts';
import { type DType, isFloat } from '../shape/dtype.ts';
import { ShapeError, showShape } from '../shape/errors.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { floatOperand } from '../tensor/operand.ts';
import type { Tensor } from '../tensor/types.ts';
import {
  type Layout,
  type Padding,
  type PerAxis,
  fromChannelsFirst,
  readPadding,
  toChannelsFirst,
} from './convolution.ts';

export interface PoolSettings {
  /** Default: the window's size. */
  readonly stride?: PerAxis;
  /** Default 0. */
  readonly padding?: Padding;
  /** Distance between the elements of a window; max pooling only. Default 1. */
  readonly dilation?: PerAxis;
  /** Let a last window reach over the edge, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
  /** Average pooling: divide by the window's size where padding is inside it (default true), or by the number of real elements. */
  readonly countIncludePad?: boolean;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

export interface PoolOptions extends PoolSettings {
  readonly kernelSize: PerAxis;
}

/** A window: its size, or options that contain it. */
export type PoolWindow = PerAxis | PoolOptions;

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
  readonly options: PoolSettings;
}

function geometry(op: string, rank: number, x: Node, window: PoolWindow, settings: PoolSettings): Geometry {
  const given = typeof window === 'object' && 'kernelSize' in window;
  const options: PoolSettings = given ? { ...window, ...settings } : settings;
  const layout = options.layout ?? 'nchw';
  if (x.shape.length !== rank + 2)
    throw new ShapeError(op, `shape ${showShape(x.shape)} has ${x.shape.length} axes: needs ${rank + 2}`, [x.shape]);
  const image = toChannelsFirst(x, layout);
  const spatial = image.shape.slice(2);
  const size = perAxis(op, 'kernelSize', given ? window.kernelSize : window, rank, 1);
  const stride = perAxis(op, 'stride', options.stride ?? size, rank, 1);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, rank, 1);
  const { low, high } = readPadding(op, options.padding ?? 0, spatial, size, stride, dilation);
  const over = spatial.map((n, i) => {
    const [step, before] = [stride[i] as number, low[i] as number];
    const room = n + before + (high[i] as number) - dilated(size[i] as number, dilation[i] as number);
    if (room < 0)
      throw new ShapeError(
        op,
        `window too large: ${size[i]} for axis ${i + 2} of ${showShape(image.shape)}; add padding or shrink it`,
        [x.shape],
      );
    if (!options.ceilMode || room % step === 0) return 0;
    // A window that would start in the padding behind the input is left out.
    const starts = (Math.floor(room / step) + 1) * step;
    return starts >= n + before ? 0 : step - (room % step);
  });
  return { layout, size, stride, dilation, low, high, over, image, options };
}

/** Windows of the padded image: [N, C, ...out, ...size]. */
function windows(image: Node, g: Geometry, value: number): Node {
  const padded = p.pad(image, [0, 0, ...g.low], [0, 0, ...g.high.map((n, i) => n + (g.over[i] as number))], value);
  return makeNode('window', [padded], { size: g.size, stride: g.stride, dilation: g.dilation });
}

function lowest(dtype: DType): number {
  if (isFloat(dtype)) return Number.NEGATIVE_INFINITY;
  if (dtype.startsWith('u')) return 0;
  return -(2 ** (Number(dtype.slice(3)) - 1));
}

const windowAxes = (rank: number): number[] => Array.from({ length: rank }, (_, i) => i + 2 + rank);

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
    const view = windows(g.image, g, lowest(node.dtype));
    const values = wrap(fromChannelsFirst(p.reduce(view, 'max', windowAxes(rank), 'first'), g.layout));
    const wanted =
      settings.returnIndices ||
      (typeof window === 'object' && 'returnIndices' in window && window.returnIndices === true);
    return wanted ? [values, wrap(fromChannelsFirst(positions(view, g, rank), g.layout))] : values;
  });
}

/** Row-major position of each maximum in its image (int32), from its position in the window. */
function positions(view: Node, g: Geometry, rank: number): Node {
  const number = (value: number): Node => p.constant(value, 'int32');
  let inside = p.argReduce(view, 'max', windowAxes(rank));
  const spatial = g.image.shape.slice(2);
  let total: Node | null = null;
  let scale = 1;
  for (let i = rank - 1; i >= 0; i--) {
    const size = number(g.size[i] as number);
    const tap = p.binary('irem', inside, size);
    inside = p.binary('idiv', inside, size);
    const out = inside.shape[i + 2] as number;
    const start = p.reshape(
      p.iota(out),
      inside.shape.map((_, axis) => (axis === i + 2 ? out : 1)),
    );
    const first = p.sub(p.mul(start, number(g.stride[i] as number)), number(g.low[i] as number));
    const at = p.mul(p.add(first, p.mul(tap, number(g.dilation[i] as number))), number(scale));
    total = total === null ? at : p.add(total, at);
    scale *= spatial[i] as number;
  }
  return total as Node;
}

function averagePool(op: string, rank: number, x: Tensor, window: PoolWindow, settings: PoolSettings): Tensor {
  return compose(op, () => {
    const node = floatOperand(x);
    const g = geometry(op, rank, node, window, settings);
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
 * The largest element of each window over one spatial axis; NaN wins. Source: PyTorch `max_pool1d`.
 *
 * @param x shape [N, C, L]
 * @param window its size, or options with kernelSize
 * @param settings stride, padding, dilation, ceilMode, layout; returnIndices: also the positions (int32) in the input
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

/**
 * The mean of each window over one spatial axis. Source: PyTorch `avg_pool1d`.
 *
 * @param x shape [N, C, L]
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
 * @param settings stride, padding, ceilMode, countIncludePad, layout
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
 *
 * @example
 * avgPool3d(ones([1, 1, 2, 2, 2]), 2).shape; // [1, 1, 1, 1, 1]
 */
export function avgPool3d(x: Tensor, window: PoolWindow, settings: PoolSettings = {}): Tensor {
  return averagePool('avgPool3d', 3, x, window, settings);
}

/**
 * The mean of each channel over its image. Source: Lin et al., "Network in Network" (2014).
 *
 * @param options keepDims (false), layout
 * @returns shape [N, C], or with axes of size 1 for the spatial ones
 *
 * @example
 * globalAvgPool2d(ones([2, 3, 4, 4])).shape; // [2, 3]
 */
export function globalAvgPool2d(
  x: Tensor,
  options: { readonly keepDims?: boolean; readonly layout?: Layout } = {},
): Tensor {
  return compose('globalAvgPool2d', () => {
    const node = floatOperand(x);
    if (node.shape.length !== 4)
      throw new ShapeError('globalAvgPool2d', `shape ${showShape(node.shape)} has ${node.shape.length} axes: needs 4`, [
        node.shape,
      ]);
    const axes = options.layout === 'nhwc' ? [1, 2] : [2, 3];
    const count = (node.shape[axes[0] as number] as number) * (node.shape[axes[1] as number] as number);
    const average = p.div(p.reduce(node, 'sum', axes), p.like(node, count));
    return wrap(options.keepDims ? p.insertAxes(average, axes) : average);
  });
}
