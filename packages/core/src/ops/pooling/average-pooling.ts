/** Means and p-norms of sliding windows. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import type { DType } from '../../shape/dtype.ts';
import { ArgumentError } from '../../shape/errors.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { abs, pow, reciprocal, square } from '../elementwise/arithmetic.ts';
import { sqrt } from '../elementwise/exponential.ts';
import { fromChannelsFirst } from '../images/image.ts';
import { type Geometry, geometry, type PoolSettings, type PoolWindow, windowAxes, windows } from './pool-window.ts';
import { say } from '../../shape/shown.ts';

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
  return compose('lpPool2d', () => {
    const t = wrap(floatOperand(x));
    if (typeof order !== 'number' || !(order >= 1 && order < Number.POSITIVE_INFINITY))
      throw new ArgumentError(
        'lpPool2d',
        say`bad order: ${order}; must be a number of at least 1; use maxPool2d of abs() for infinity`,
      );
    const g = geometry('lpPool2d', 2, nodeOf(t), window, settings);
    const view = wrap(windows(g.image, g, 0));
    const exponent = given(order, t);
    const powers = order === 1 ? abs(view) : order === 2 ? square(view) : pow(abs(view), exponent);
    const total = p.reduce(nodeOf(powers), 'sum', windowAxes(2));
    // The root of zero has no slope: it is taken of 1 there, and left out.
    const none = p.eq(total, p.like(total, 0));
    const safe = wrap(p.where(none, p.like(total, 1), total));
    const root = order === 1 ? safe : order === 2 ? sqrt(safe) : pow(safe, reciprocal(exponent));
    return wrap(fromChannelsFirst(p.where(none, p.like(total, 0), nodeOf(root)), g.layout));
  });
}
