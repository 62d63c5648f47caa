/** Methods of Tensors: arithmetic, element by element, and casts. Details, shapes and errors are told with the functions. */
import {
  abs,
  cast,
  floorDivide,
  fmod,
  maximum,
  minimum,
  neg,
  pow,
  reciprocal,
  remainder,
  sign,
  square,
} from '../ops/arithmetic.ts';
import { addcdiv, addcmul, clip, copysign, fma, heaviside, hypot, lerp } from '../ops/compound.ts';
import type { DType } from '../shape/dtype.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface ArithmeticMethods {
  /** a + b. */
  add(b: TensorLike): Tensor;
  /** a - b. */
  sub(b: TensorLike): Tensor;
  /** a * b. */
  mul(b: TensorLike): Tensor;
  /** a / b, as a floating-point number: integers become float32. */
  div(b: TensorLike): Tensor;
  /** The largest integer not above a / b. */
  floorDivide(b: TensorLike): Tensor;
  /** a - b * floor(a / b): the rest with the sign of b. */
  remainder(b: TensorLike): Tensor;
  /** The rest of a / b with the sign of a. */
  fmod(b: TensorLike): Tensor;
  /** a to the power b. */
  pow(b: TensorLike): Tensor;
  /** -x. */
  neg(): Tensor;
  /** 1 / x. Integers become float32. */
  reciprocal(): Tensor;
  /** The magnitude of x. */
  abs(): Tensor;
  /** -1, 0 or 1; NaN for NaN. */
  sign(): Tensor;
  /** x * x. */
  square(): Tensor;
  /** The larger of a and b; NaN if either is NaN. */
  maximum(b: TensorLike): Tensor;
  /** The smaller of a and b; NaN if either is NaN. */
  minimum(b: TensorLike): Tensor;
  /** x limited to low .. high; NaN stays. */
  clip(low: TensorLike | null, high: TensorLike | null): Tensor;
  /** a + weight * (b - a): a at weight 0, b at weight 1. */
  lerp(b: TensorLike, weight: TensorLike): Tensor;
  /** The length of the hypotenuse, without overflow on the way. */
  hypot(b: TensorLike): Tensor;
  /** The magnitude of a with the sign of b, the sign of zero included. */
  copysign(b: TensorLike): Tensor;
  /** a * b + c, rounded once. */
  fma(b: TensorLike, c: TensorLike): Tensor;
  /** input + value * a * b. */
  addcmul(a: TensorLike, b: TensorLike, options?: { readonly value?: TensorLike }): Tensor;
  /** input + value * a / b. */
  addcdiv(a: TensorLike, b: TensorLike, options?: { readonly value?: TensorLike }): Tensor;
  /** 0 below zero, `value` at zero, 1 above. */
  heaviside(value: TensorLike): Tensor;
  /** x in another dtype. Fractions are cut off for integers, which saturate, NaN becomes 0; bool is true where x is not 0. int32 and uint32 wrap into each other. The gradient is cast back. */
  cast(dtype: DType): Tensor;
}

/** The functions, but for the four that own-methods.ts has. */
export const arithmeticMethods: Omit<ArithmeticMethods, 'add' | 'sub' | 'mul' | 'div'> & ThisType<Tensor> = {
  floorDivide(b) {
    return floorDivide(this, b);
  },
  remainder(b) {
    return remainder(this, b);
  },
  fmod(b) {
    return fmod(this, b);
  },
  pow(b) {
    return pow(this, b);
  },
  neg() {
    return neg(this);
  },
  reciprocal() {
    return reciprocal(this);
  },
  abs() {
    return abs(this);
  },
  sign() {
    return sign(this);
  },
  square() {
    return square(this);
  },
  maximum(b) {
    return maximum(this, b);
  },
  minimum(b) {
    return minimum(this, b);
  },
  clip(low, high) {
    return clip(this, low, high);
  },
  lerp(b, weight) {
    return lerp(this, b, weight);
  },
  hypot(b) {
    return hypot(this, b);
  },
  copysign(b) {
    return copysign(this, b);
  },
  fma(b, c) {
    return fma(this, b, c);
  },
  addcmul(a, b, options) {
    return addcmul(this, a, b, options);
  },
  addcdiv(a, b, options) {
    return addcdiv(this, a, b, options);
  },
  heaviside(value) {
    return heaviside(this, value);
  },
  cast(dtype) {
    return cast(this, dtype);
  },
};
