/** Rounding. Integers stay as they are; the gradient is 0 everywhere. */
import type { UnaryOperation } from '../../graph/definition.ts';
import { ceilPrimitive, roundPrimitive, truncPrimitive } from '../../primitives/rounding.ts';
import { makeNode } from '../../graph/build.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { isFloat } from '../../shape/dtype.ts';
import { wrap } from '../../tensor/handle.ts';
import { operand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { sub } from './arithmetic.ts';

function rounded(op: string, primitive: UnaryOperation, x: TensorLike): Tensor {
  beginOp(op);
  const node = operand(x);
  return wrap(isFloat(node.dtype) ? makeNode(primitive, [node], null) : node);
}

/**
 * The largest integer not above x. Source: Array API `floor`.
 *
 * @example
 * floor(tensor([1.5, -1.5])); // [1, -2]
 */
export function floor(x: TensorLike): Tensor {
  return rounded('floor', 'floor', x);
}

/**
 * The smallest integer not below x. Source: Array API `ceil`.
 *
 * @example
 * ceil(tensor([1.5, -1.5])); // [2, -1]
 */
export function ceil(x: TensorLike): Tensor {
  return rounded('ceil', ceilPrimitive, x);
}

/**
 * x without its fraction. Source: Array API `trunc`.
 *
 * @example
 * trunc(tensor([1.5, -1.5])); // [1, -1]
 */
export function trunc(x: TensorLike): Tensor {
  return rounded('trunc', truncPrimitive, x);
}

/**
 * The nearest integer, halves to even. Source: Array API `round`.
 *
 * @example
 * round(tensor([0.5, 1.5, 2.5])); // [0, 2, 2]
 */
export function round(x: TensorLike): Tensor {
  return rounded('round', roundPrimitive, x);
}

/**
 * x - trunc(x): the fraction, with the sign of x. Source: PyTorch `torch.frac`. The gradient is that of x.
 *
 * @example
 * frac(tensor([1.5, -1.5])); // [0.5, -0.5]
 */
export function frac(x: TensorLike): Tensor {
  return compose('frac', () => sub(x, trunc(x)));
}
