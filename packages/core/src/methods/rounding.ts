/** Methods of Tensors: rounding. Details, shapes and errors are told with the functions. */
import { ceil, floor, frac, round, trunc } from '../ops/rounding.ts';
import type { Tensor } from '../tensor/types.ts';

export interface RoundingMethods {
  /** The largest integer not above x. */
  floor(): Tensor;
  /** The smallest integer not below x. */
  ceil(): Tensor;
  /** x without its fraction. */
  trunc(): Tensor;
  /** The nearest integer, halves to even. */
  round(): Tensor;
  /** x - trunc(x): the fraction, with the sign of x. */
  frac(): Tensor;
}

export const roundingMethods: RoundingMethods & ThisType<Tensor> = {
  floor() {
    return floor(this);
  },
  ceil() {
    return ceil(this);
  },
  trunc() {
    return trunc(this);
  },
  round() {
    return round(this);
  },
  frac() {
    return frac(this);
  },
};
