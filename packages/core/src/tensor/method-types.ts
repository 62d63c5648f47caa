/**
 * The operations that Tensors have as methods: `a.add(b)` is `add(a, b)`. Details, shapes and errors are told with the functions.
 *
 * Types only. methods.ts puts the functions in place.
 */
import type { IndexAxis } from '../ops/indexing.ts';
import type { JoinAxis } from '../ops/joining.ts';
import type { GemmOptions } from '../ops/matmul.ts';
import type { PadOptions, PadWidths } from '../ops/padding.ts';
import type { SliceSpec } from '../ops/slicing.ts';
import type { OneAxis } from '../ops/softmax.ts';
import type { NormOptions, VarianceOptions } from '../ops/statistics.ts';
import type { DType } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';
import type { AxisArgument, Tensor, TensorLike } from './types.ts';

export interface TensorMethods {
  // Arithmetic
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
  /** a * b + c. */
  fma(b: TensorLike, c: TensorLike): Tensor;
  /** input + value * a * b. */
  addcmul(a: TensorLike, b: TensorLike, options?: { readonly value?: TensorLike }): Tensor;
  /** input + value * a / b. */
  addcdiv(a: TensorLike, b: TensorLike, options?: { readonly value?: TensorLike }): Tensor;
  /** 0 below zero, `value` at zero, 1 above. */
  heaviside(value: TensorLike): Tensor;
  /** x in another dtype. Fractions are cut off for integers, which saturate, NaN becomes 0; bool is true where x is not 0. int32 and uint32 wrap into each other. The gradient is cast back. */
  cast(dtype: DType): Tensor;

  // Comparison and logic
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
  isClose(
    b: TensorLike,
    options?: { readonly rtol?: number; readonly atol?: number; readonly equalNaN?: boolean },
  ): Tensor;
  /** NaN and infinities replaced by numbers. */
  nanToNum(options?: { readonly nan?: number; readonly posInf?: number; readonly negInf?: number }): Tensor;

  // Exponentials, logarithms, roots
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

  // Trigonometry
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
  /** 1 - erf(x). */
  erfc(): Tensor;
  /** sin(pi x) / (pi x), and 1 at 0. */
  sinc(): Tensor;

  // Rounding
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

  // Bits
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

  // Activations
  /** max(x, 0). The gradient at 0 is 0. */
  relu(): Tensor;
  /** x limited to 0 .. 6. */
  relu6(): Tensor;
  /** x above zero, slope * x below. */
  leakyRelu(options?: { readonly slope?: number }): Tensor;
  /** x above zero, weight * x below, with a learned weight. */
  prelu(weight: TensorLike): Tensor;
  /** x above zero, alpha * (exp(x) - 1) below. */
  elu(options?: { readonly alpha?: number }): Tensor;
  /** The self-normalising exponential unit: 1.0507 * elu(x, 1.6733). */
  selu(): Tensor;
  /** max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). */
  celu(options?: { readonly alpha?: number }): Tensor;
  /** 1 / (1 + exp(-x)), in 0 .. 1. */
  sigmoid(): Tensor;
  /** A sigmoid of three lines: x / 6 + 1 / 2, limited to 0 .. 1. */
  hardSigmoid(): Tensor;
  /** log(sigmoid(x)), without underflow. */
  logSigmoid(): Tensor;
  /** x limited to low .. high. */
  hardTanh(options?: { readonly low?: number; readonly high?: number }): Tensor;
  /** x - tanh(x). */
  tanhShrink(): Tensor;
  /** x moved towards zero by lambda, zero within it. */
  softShrink(options?: { readonly lambda?: number }): Tensor;
  /** x outside -lambda .. lambda, zero within. */
  hardShrink(options?: { readonly lambda?: number }): Tensor;
  /** x above the threshold, `value` elsewhere. */
  threshold(options: { readonly threshold: number; readonly value: number }): Tensor;
  /** log(1 + exp(x)), without overflow. */
  softplus(): Tensor;
  /** x / (1 + |x|). */
  softsign(): Tensor;
  /** x times the normal distribution function of x. */
  gelu(options?: { readonly approximate?: 'none' | 'tanh' }): Tensor;
  /** x * sigmoid(x), also called swish. */
  silu(): Tensor;
  /** x * tanh(softplus(x)). */
  mish(): Tensor;
  /** x * hardSigmoid(x). */
  hardSwish(): Tensor;
  /** The first half of an axis times the sigmoid of the second. */
  glu(options?: { readonly axis?: number }): Tensor;

  // Softmax
  /** exp(x) / sum(exp(x)) along an axis. */
  softmax(axis?: OneAxis): Tensor;
  /** softmax(-x). */
  softmin(axis?: OneAxis): Tensor;
  /** log(softmax(x)), without underflow. */
  logSoftmax(axis?: OneAxis): Tensor;

  // Reductions
  /** The sum of elements; 0 of none. bool and small integers are summed as int32 or uint32. */
  sum(axis?: AxisArgument): Tensor;
  /** The product of elements; 1 of none. Its gradient is exact with any number of zeros. */
  prod(axis?: AxisArgument): Tensor;
  /** The largest element; NaN if there is one. Equals share the gradient. */
  max(axis?: AxisArgument): Tensor;
  /** The smallest element; NaN if there is one. Equals share the gradient. */
  min(axis?: AxisArgument): Tensor;
  /** The position (int32) of the largest element along an axis, or in row-major order over several or all; the first of equals, the first NaN if there is one. */
  argMax(axis?: AxisArgument): Tensor;
  /** The position (int32) of the smallest element; see argMax. */
  argMin(axis?: AxisArgument): Tensor;
  /** True if any element is (is not 0); false of none. */
  any(axis?: AxisArgument): Tensor;
  /** True if all elements are (are not 0); true of none. */
  all(axis?: AxisArgument): Tensor;
  /** The number of elements that are not 0, int32. */
  countNonZero(axis?: AxisArgument): Tensor;

  // Statistics
  /** The mean; NaN of no elements. */
  mean(axis?: AxisArgument): Tensor;
  /** The mean squared distance from the mean, computed in two passes. */
  variance(options?: VarianceOptions | AxisArgument): Tensor;
  /** The square root of the variance. */
  std(options?: VarianceOptions | AxisArgument): Tensor;
  /** log(sum(exp(x))) without overflow; -infinity of rows that are all -infinity. */
  logSumExp(axis?: AxisArgument): Tensor;
  /** The p-norm of the elements as one vector. */
  norm(options?: NormOptions | AxisArgument): Tensor;
  /** The sum of the elements that are not NaN. */
  nanSum(axis?: AxisArgument): Tensor;
  /** The mean of the elements that are not NaN. */
  nanMean(axis?: AxisArgument): Tensor;

  // Products
  /** The matrix product. */
  matmul(b: Tensor): Tensor;
  /** alpha * A B + beta * C, A and B transposed if asked for. */
  gemm(b: Tensor, options?: GemmOptions): Tensor;
  /** alpha * A x + beta * y, A transposed if asked for. */
  gemv(
    x: Tensor,
    options?: {
      readonly alpha?: TensorLike;
      readonly beta?: TensorLike;
      readonly y?: TensorLike;
      readonly transA?: boolean;
    },
  ): Tensor;
  /** The dot product as NumPy defines it: of vectors a number, of matrices the matrix product, otherwise the sum over the last axis of a and the second to last of b; a scalar multiplies. */
  dot(b: Tensor): Tensor;
  /** The sum of products over the last axes of both. */
  inner(b: Tensor): Tensor;
  /** The dot product of all elements in row-major order. */
  vdot(b: Tensor): Tensor;
  /** All products of an element of a with one of b. */
  outer(b: Tensor): Tensor;
  /** The sum of products over chosen axes. */
  tensordot(b: Tensor, axes?: number | readonly [readonly number[], readonly number[]]): Tensor;

  // Shape
  /** The elements in row-major order under another shape. */
  reshape(shape: Shape): Tensor;
  /** Axes from `start` to `end` as one. */
  flatten(options?: { readonly start?: number; readonly end?: number }): Tensor;
  /** One axis as several. */
  unflatten(axis: number, sizes: Shape): Tensor;
  /** Axes in another order: axis i of the result is axis axes[i] of x. */
  permute(axes: readonly number[]): Tensor;
  /** Two axes exchanged; the last two if none are named. */
  transpose(axis1?: number, axis2?: number): Tensor;
  /** One axis, or several, moved to other positions; the others keep their order. */
  moveAxis(from: number | readonly number[], to: number | readonly number[]): Tensor;
  /** x stretched to a shape: axes of size 1, and missing leading axes, are repeated without a copy. */
  broadcastTo(shape: Shape): Tensor;
  /** Like broadcastTo; -1 keeps the size of an axis. */
  expand(shape: Shape): Tensor;
  /** Without axes of size 1: all of them, or those named. */
  squeeze(axis?: number | readonly number[]): Tensor;
  /** With an axis of size 1 put in, or several. */
  unsqueeze(axis: number | readonly number[]): Tensor;
  /** x repeated whole along each axis. */
  tile(repeats: readonly number[]): Tensor;
  /** The same as tile. */
  repeat(repeats: readonly number[]): Tensor;
  /** Every element repeated in place. */
  repeatInterleave(count: number, options?: { readonly axis?: number }): Tensor;
  /** The same values in memory of their own, in row-major order. For data that is read often through an awkward view. */
  contiguous(): Tensor;

  // Parts
  /** A part of a tensor, one specification per axis (missing ones mean the whole axis). */
  slice(specs: readonly SliceSpec[]): Tensor;
  /** The same as slice, with the specifications as arguments. */
  at(...specs: SliceSpec[]): Tensor;
  /** `length` elements of an axis from `start`. */
  narrow(axis: number, start: number, length: number): Tensor;
  /** One position of an axis; the axis disappears. */
  select(axis: number, index: number): Tensor;
  /** The order along axes reversed; along all if none are named. */
  flip(axis?: number | readonly number[]): Tensor;
  /** Elements moved along axes; what leaves at one end comes in at the other. */
  roll(shift: number | readonly number[], axis?: number | readonly number[]): Tensor;
  /** Elements put around a tensor; negative widths cut instead. */
  pad(widths: PadWidths, options?: PadOptions): Tensor;

  // Cutting
  /** A tensor cut along an axis, in parts of `size` (the last may be smaller) or of the sizes listed. */
  split(size: number | readonly number[], axis?: JoinAxis): Tensor[];
  /** A tensor cut along an axis in at most `count` parts of equal size (the last may be smaller). */
  chunk(count: number, axis?: JoinAxis): Tensor[];
  /** The slices of a tensor along an axis, which disappears. */
  unbind(axis?: JoinAxis): Tensor[];

  // Triangles and diagonals
  /** The lower triangles of the matrices in the last two axes, zeros above. */
  tril(options?: { readonly diagonal?: number }): Tensor;
  /** The upper triangles of the matrices in the last two axes, zeros below. */
  triu(options?: { readonly diagonal?: number }): Tensor;
  /** The diagonal of the matrices in two axes, as the last axis. */
  diagonal(options?: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number }): Tensor;
  /** The sum of a matrix's diagonal; of all matrices in the last two axes. */
  trace(options?: { readonly offset?: number }): Tensor;

  // Indexing
  /** Slices of x at the indices: the axis is replaced by the shape of the indices. */
  take(indices: Tensor, axis?: IndexAxis): Tensor;
  /** The same as take, for one-dimensional indices. */
  indexSelect(indices: Tensor, axis?: IndexAxis): Tensor;
  /** One element of x per index, at the index's own position in all other axes. */
  takeAlongAxis(indices: Tensor, axis?: IndexAxis): Tensor;
  /** The same as takeAlongAxis, but other sizes of the indices may be smaller than those of x. */
  gather(indices: Tensor, axis?: IndexAxis): Tensor;
  /** x with the updates added at the indices, at their own position in all other axes; repeated indices add up. */
  scatterAdd(indices: Tensor, updates: Tensor, axis?: IndexAxis): Tensor;
  /** x with slices added at one-dimensional indices along an axis; repeated indices add up. */
  indexAdd(indices: Tensor, updates: Tensor, axis?: IndexAxis): Tensor;
  /** `value` where the mask is true, x elsewhere. */
  maskedFill(mask: Tensor, value: number): Tensor;
  /** The same value as a constant: no gradient flows through it. */
  detach(): Tensor;
}
