/** Bitwise operations on integers (on bool they are the logical ones). No gradients. Floats are refused with DTypeError. */
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { binaryOp, unaryOp } from './recording.ts';

/**
 * Bits set in both. Source: Array API `bitwise_and`.
 *
 * @example
 * bitwiseAnd(tensor([6], { dtype: 'int32' }), 3); // [2]
 */
export function bitwiseAnd(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('bitwiseAnd', 'and', a, b);
}

/**
 * Bits set in either. Source: Array API `bitwise_or`.
 *
 * @example
 * bitwiseOr(tensor([6], { dtype: 'int32' }), 3); // [7]
 */
export function bitwiseOr(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('bitwiseOr', 'or', a, b);
}

/**
 * Bits set in exactly one. Source: Array API `bitwise_xor`.
 *
 * @example
 * bitwiseXor(tensor([6], { dtype: 'int32' }), 3); // [5]
 */
export function bitwiseXor(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('bitwiseXor', 'xor', a, b);
}

/**
 * Bits moved b places up, zeros from below; b is 0 .. bits - 1. Source: Array API `bitwise_left_shift`.
 *
 * @example
 * leftShift(tensor([1], { dtype: 'int32' }), 4); // [16]
 */
export function leftShift(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('leftShift', 'shl', a, b);
}

/**
 * Bits moved b places down: copies of the sign come in for signed integers, zeros for unsigned ones. Source: Array API `bitwise_right_shift`.
 *
 * @example
 * rightShift(tensor([-8], { dtype: 'int32' }), 1); // [-4]
 */
export function rightShift(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('rightShift', 'shr', a, b);
}

/**
 * Every bit inverted. Source: Array API `bitwise_invert`.
 *
 * @example
 * bitwiseNot(tensor([0], { dtype: 'int32' })); // [-1]
 */
export function bitwiseNot(x: TensorLike): Tensor {
  return unaryOp('bitwiseNot', 'not', x);
}
