/** Methods of Tensors: special functions. Details and errors are told with the functions. */
import { erfc, erfinv } from '../ops/error-function.ts';
import { digamma, lgamma, polygamma } from '../ops/gamma.ts';
import type { Tensor } from '../tensor/types.ts';

export interface SpecialMethods {
  /** 1 - erf(x), accurate for large x too. */
  erfc(): Tensor;
  /** The inverse of the error function. */
  erfinv(): Tensor;
  /** The logarithm of the absolute value of the gamma function. */
  lgamma(): Tensor;
  /** The derivative of lgamma. */
  digamma(): Tensor;
  /** The n-th derivative of digamma. */
  polygamma(order: number): Tensor;
}

export const specialMethods: SpecialMethods & ThisType<Tensor> = {
  erfc() {
    return erfc(this);
  },
  erfinv() {
    return erfinv(this);
  },
  lgamma() {
    return lgamma(this);
  },
  digamma() {
    return digamma(this);
  },
  polygamma(order) {
    return polygamma(order, this);
  },
};
