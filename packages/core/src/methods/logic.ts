/** Methods of Tensors: comparison, logic and tests for special values, element by element. Details, shapes and errors are told with the functions. */
import type { CloseOptions } from '../ops/close.ts';
import {
  equal,
  greater,
  greaterEqual,
  isClose,
  isFinite as areFinite,
  isInf,
  isNaN as areNaN,
  less,
  lessEqual,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  nanToNum,
  notEqual,
} from '../ops/logic.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface LogicMethods {
  /** a == b, element by element; false for NaN. */
  equal(b: TensorLike): Tensor;
  /** a != b, element by element; true for NaN. */
  notEqual(b: TensorLike): Tensor;
  /** a < b. */
  less(b: TensorLike): Tensor;
  /** a <= b. */
  lessEqual(b: TensorLike): Tensor;
  /** a > b. */
  greater(b: TensorLike): Tensor;
  /** a >= b. */
  greaterEqual(b: TensorLike): Tensor;
  /** True where both are (a number counts as true unless it is 0). */
  logicalAnd(b: TensorLike): Tensor;
  /** True where at least one is. */
  logicalOr(b: TensorLike): Tensor;
  /** True where exactly one is. */
  logicalXor(b: TensorLike): Tensor;
  /** True where x is not (is 0). */
  logicalNot(): Tensor;
  /** True where x is NaN; never for integers. */
  isNaN(): Tensor;
  /** True where x is infinite. */
  isInf(): Tensor;
  /** True where x is neither infinite nor NaN. */
  isFinite(): Tensor;
  /** True where |a - b| <= atol + rtol * |b|, or both are the same infinity. */
  isClose(b: TensorLike, options?: CloseOptions): Tensor;
  /** NaN and infinities replaced by numbers. */
  nanToNum(options?: { readonly nan?: number; readonly posInf?: number; readonly negInf?: number }): Tensor;
}

export const logicMethods: LogicMethods & ThisType<Tensor> = {
  equal(b) {
    return equal(this, b);
  },
  notEqual(b) {
    return notEqual(this, b);
  },
  less(b) {
    return less(this, b);
  },
  lessEqual(b) {
    return lessEqual(this, b);
  },
  greater(b) {
    return greater(this, b);
  },
  greaterEqual(b) {
    return greaterEqual(this, b);
  },
  logicalAnd(b) {
    return logicalAnd(this, b);
  },
  logicalOr(b) {
    return logicalOr(this, b);
  },
  logicalXor(b) {
    return logicalXor(this, b);
  },
  logicalNot() {
    return logicalNot(this);
  },
  isNaN() {
    return areNaN(this);
  },
  isInf() {
    return isInf(this);
  },
  isFinite() {
    return areFinite(this);
  },
  isClose(b, options) {
    return isClose(this, b, options);
  },
  nanToNum(options) {
    return nanToNum(this, options);
  },
};
