/** Methods of Tensors: trigonometric and hyperbolic functions, the error function. Details, shapes and errors are told with the functions. */
import {
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atan2,
  atanh,
  cos,
  cosh,
  erf,
  sin,
  sinc,
  sinh,
  tan,
  tanh,
} from '../ops/trigonometric.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface TrigonometricMethods {
  /** The sine. */
  sin(): Tensor;
  /** The cosine. */
  cos(): Tensor;
  /** The tangent. */
  tan(): Tensor;
  /** The arc sine, in -pi/2 .. pi/2. */
  asin(): Tensor;
  /** The arc cosine, in 0 .. pi. */
  acos(): Tensor;
  /** The arc tangent, in -pi/2 .. pi/2. */
  atan(): Tensor;
  /** The hyperbolic sine. */
  sinh(): Tensor;
  /** The hyperbolic cosine. */
  cosh(): Tensor;
  /** The hyperbolic tangent; 1 and -1 for large arguments. */
  tanh(): Tensor;
  /** The error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x. */
  erf(): Tensor;
  /** The angle of the point (x, y) = (b, a), in -pi .. pi. */
  atan2(b: TensorLike): Tensor;
  /** The inverse hyperbolic sine. */
  asinh(): Tensor;
  /** The inverse hyperbolic cosine, of x >= 1. */
  acosh(): Tensor;
  /** The inverse hyperbolic tangent, of x in -1 .. 1. */
  atanh(): Tensor;
  /** sin(pi x) / (pi x), and 1 at 0. */
  sinc(): Tensor;
}

export const trigonometricMethods: TrigonometricMethods & ThisType<Tensor> = {
  sin() {
    return sin(this);
  },
  cos() {
    return cos(this);
  },
  tan() {
    return tan(this);
  },
  asin() {
    return asin(this);
  },
  acos() {
    return acos(this);
  },
  atan() {
    return atan(this);
  },
  sinh() {
    return sinh(this);
  },
  cosh() {
    return cosh(this);
  },
  tanh() {
    return tanh(this);
  },
  erf() {
    return erf(this);
  },
  atan2(b) {
    return atan2(this, b);
  },
  asinh() {
    return asinh(this);
  },
  acosh() {
    return acosh(this);
  },
  atanh() {
    return atanh(this);
  },
  sinc() {
    return sinc(this);
  },
};
