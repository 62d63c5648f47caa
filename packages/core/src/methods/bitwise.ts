/** Methods of Tensors: bits of integers. Details, shapes and errors are told with the functions. */
import { bitwiseAnd, bitwiseNot, bitwiseOr, bitwiseXor, leftShift, rightShift } from '../ops/bitwise.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface BitwiseMethods {
  /** Bits set in both. */
  bitwiseAnd(b: TensorLike): Tensor;
  /** Bits set in either. */
  bitwiseOr(b: TensorLike): Tensor;
  /** Bits set in exactly one. */
  bitwiseXor(b: TensorLike): Tensor;
  /** Every bit inverted. */
  bitwiseNot(): Tensor;
  /** Bits moved b places up, zeros from below; b is 0 .. bits - 1. */
  leftShift(b: TensorLike): Tensor;
  /** Bits moved b places down: copies of the sign come in for signed integers, zeros for unsigned ones. */
  rightShift(b: TensorLike): Tensor;
}

export const bitwiseMethods: BitwiseMethods & ThisType<Tensor> = {
  bitwiseAnd(b) {
    return bitwiseAnd(this, b);
  },
  bitwiseOr(b) {
    return bitwiseOr(this, b);
  },
  bitwiseXor(b) {
    return bitwiseXor(this, b);
  },
  bitwiseNot() {
    return bitwiseNot(this);
  },
  leftShift(b) {
    return leftShift(this, b);
  },
  rightShift(b) {
    return rightShift(this, b);
  },
};
