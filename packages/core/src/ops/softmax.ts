/**
 * Softmax and its relatives: exponentials normalised along one axis.
 *
 * Written so that a row is one kernel: maximum, shifted exponentials, their sum, division. The maximum cancels, so it carries
 * no gradient. Scalars count as one element.
 */
import { reduce, reshape, stopGradient } from '../graph/primitives.ts';
import { compose } from '../graph/scope.ts';
import { keepAxes } from '../shape/axes.ts';
import { wrap } from '../tensor/handle.ts';
import { floatOperand } from '../tensor/operand.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';
import { div, neg, sub } from './arithmetic.ts';
import { readAxis } from './axis-argument.ts';
import { exp, log } from './exponential.ts';
import { sum } from './reduction.ts';

/** One axis, by itself or in options; the last one if left out. */
export type OneAxis = number | { readonly axis?: number };

/** x minus its maximum along the axis, and the axes argument for sums over it. */
function shifted(
  op: string,
  x: TensorLike,
  argument: OneAxis | undefined,
): { t: Tensor; over: { axis: number[]; keepDims: true } } {
  const node = floatOperand(x);
  const axis = readAxis(op, argument, -1, node.shape.length);
  const axes = node.shape.length === 0 ? [] : [axis];
  // Nothing to subtract where there is nothing.
  if (node.shape.includes(0)) return { t: wrap(node), over: { axis: axes, keepDims: true } };
  const largest = reshape(reduce(stopGradient(node), 'max', axes), keepAxes(node.shape, axes));
  return { t: sub(wrap(node), wrap(largest)), over: { axis: axes, keepDims: true } };
}

/**
 * exp(x) / sum(exp(x)) along an axis. Source: PyTorch `softmax`.
 *
 * @param axis one axis, or { axis }; -1
 * @returns the shape of x
 *
 * @example
 * softmax(tensor([0, 0])); // [0.5, 0.5]
 */
export function softmax(x: TensorLike, axis?: OneAxis): Tensor {
  return compose('softmax', () => {
    const { t, over } = shifted('softmax', x, axis);
    const e = exp(t);
    return div(e, sum(e, over));
  });
}

/**
 * softmax(-x). Source: PyTorch `softmin`.
 *
 * @example
 * softmin(tensor([0, 0])); // [0.5, 0.5]
 */
export function softmin(x: TensorLike, axis?: OneAxis): Tensor {
  return compose('softmin', () => softmax(neg(x), axis));
}

/**
 * log(softmax(x)), without underflow. Source: PyTorch `log_softmax`.
 *
 * @param axis one axis, or { axis }; -1
 * @returns the shape of x
 *
 * @example
 * logSoftmax(tensor([0, 0])); // [-0.6931472, -0.6931472]
 */
export function logSoftmax(x: TensorLike, axis?: OneAxis): Tensor {
  return compose('logSoftmax', () => {
    const { t, over } = shifted('logSoftmax', x, axis);
    return sub(t, log(sum(exp(t), over)));
  });
}
