/** Methods of Tensors: exponentials, logarithms and roots. Details, shapes and errors are told with the functions. */
import { cbrt, exp, exp2, expm1, log, log10, log1p, log2, logAddExp, rsqrt, sqrt, xlogy } from '../ops/exponential.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface ExponentialMethods {
  /** The square root; NaN below zero. */
  sqrt(): Tensor;
  /** 1 / sqrt(x). */
  rsqrt(): Tensor;
  /** The cube root, of negative numbers too. */
  cbrt(): Tensor;
  /** e to the power x. */
  exp(): Tensor;
  /** 2 to the power x. */
  exp2(): Tensor;
  /** exp(x) - 1, accurate near zero. */
  expm1(): Tensor;
  /** The natural logarithm. */
  log(): Tensor;
  /** The logarithm to base 2. */
  log2(): Tensor;
  /** log(1 + x), accurate near zero. */
  log1p(): Tensor;
  /** The logarithm to base 10. */
  log10(): Tensor;
  /** log(exp(a) + exp(b)) without overflow. */
  logAddExp(b: TensorLike): Tensor;
  /** x * log(y), and 0 where x is 0. */
  xlogy(b: TensorLike): Tensor;
}

export const exponentialMethods: ExponentialMethods & ThisType<Tensor> = {
  sqrt() {
    return sqrt(this);
  },
  rsqrt() {
    return rsqrt(this);
  },
  cbrt() {
    return cbrt(this);
  },
  exp() {
    return exp(this);
  },
  exp2() {
    return exp2(this);
  },
  expm1() {
    return expm1(this);
  },
  log() {
    return log(this);
  },
  log2() {
    return log2(this);
  },
  log1p() {
    return log1p(this);
  },
  log10() {
    return log10(this);
  },
  logAddExp(b) {
    return logAddExp(this, b);
  },
  xlogy(b) {
    return xlogy(this, b);
  },
};
