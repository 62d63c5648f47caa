/**
 * Softmax and its relatives: exponentials normalised along one axis.
 *
 * Written so that a row is one kernel: maximum, shifted exponentials, their sum, division. The maximum cancels, so it carries
 * no gradient. Scalars count as one element.
 */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { keepAxes } from '../../shape/axes.ts';
import type { DType } from '../../shape/dtype.ts';
import { wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { neg } from '../elementwise/arithmetic.ts';
import { readAxis } from '../reduction/axis-argument.ts';
import { widened } from '../elementwise/recording.ts';

/** One axis, by itself or in options; the last one if left out. */
export type OneAxis = number | { readonly axis?: number };

interface Shifted {
  /** x minus its maximum along the axis; 16-bit floats in float32. */
  readonly t: Node;
  /** Of the result. */
  readonly dtype: DType;
  /** Sum along the axis, which stays with size 1. */
  readonly total: (x: Node) => Node;
}

function shifted(op: string, x: TensorLike, argument: OneAxis | undefined): Shifted {
  beginOp(op);
  const operand = floatOperand(x);
  const node = widened(operand);
  const { shape } = node;
  const axis = readAxis(op, argument, -1, shape.length);
  const axes = shape.length === 0 ? [] : [axis];
  const kept = keepAxes(shape, axes);
  const total = (terms: Node): Node => p.reshape(p.reduce(terms, 'sum', axes), kept);
  // Nothing to subtract where there is nothing.
  const { dtype } = operand;
  if (shape.includes(0)) return { t: node, total, dtype };
  const largest = p.reshape(p.reduce(p.stopGradient(node), 'max', axes), kept);
  return { t: p.sub(node, largest), total, dtype };
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
  return shares('softmax', x, axis);
}

function shares(op: string, x: TensorLike, axis: OneAxis | undefined): Tensor {
  const { t, total, dtype } = shifted(op, x, axis);
  const e = p.unary('exp', t);
  return wrap(p.cast(p.div(e, total(e)), dtype));
}

/**
 * softmax(-x). Source: PyTorch `softmin`.
 *
 * @example
 * softmin(tensor([0, 0])); // [0.5, 0.5]
 */
export function softmin(x: TensorLike, axis?: OneAxis): Tensor {
  return compose('softmin', () => shares('softmin', neg(x), axis));
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
  const { t, total, dtype } = shifted('logSoftmax', x, axis);
  return wrap(p.cast(p.sub(t, p.unary('log', total(p.unary('exp', t)))), dtype));
}
