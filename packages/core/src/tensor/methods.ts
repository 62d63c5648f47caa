/**
 * Puts the operations on Tensors as methods. Importing this file is a side effect (named in package.json), and the entry point does.
 *
 * Operations import `wrap` from handle.ts and know nothing of methods, so there is no cycle.
 */
import { backward } from '../autodiff/backward.ts';
import { detach } from '../autodiff/no-grad.ts';
import {
  celu,
  elu,
  gelu,
  glu,
  hardShrink,
  hardSigmoid,
  hardSwish,
  hardTanh,
  leakyRelu,
  logSigmoid,
  mish,
  prelu,
  relu,
  relu6,
  selu,
  sigmoid,
  silu,
  softShrink,
  softplus,
  softsign,
  tanhShrink,
  threshold,
} from '../ops/activation.ts';
import {
  abs,
  add,
  cast,
  div,
  floorDivide,
  fmod,
  maximum,
  minimum,
  mul,
  neg,
  pow,
  reciprocal,
  remainder,
  sign,
  square,
  sub,
} from '../ops/arithmetic.ts';
import { addcdiv, addcmul, clip, copysign, fma, heaviside, hypot, lerp } from '../ops/compound.ts';
import { bitwiseAnd, bitwiseNot, bitwiseOr, bitwiseXor, leftShift, rightShift } from '../ops/bitwise.ts';
import { cbrt, exp, exp2, expm1, log, log10, log1p, log2, logAddExp, rsqrt, sqrt, xlogy } from '../ops/exponential.ts';
import { gather, indexAdd, indexSelect, maskedFill, scatterAdd, take, takeAlongAxis } from '../ops/indexing.ts';
import { chunk, split, unbind } from '../ops/joining.ts';
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
import { dot, gemm, gemv, inner, matmul, outer, tensordot, vdot } from '../ops/matmul.ts';
import { diagonal, trace, tril, triu } from '../ops/ranges.ts';
import { all, any, argMax, argMin, countNonZero, max, min, prod, sum } from '../ops/reduction.ts';
import { ceil, floor, frac, round, trunc } from '../ops/rounding.ts';
import {
  contiguous,
  flatten,
  moveAxis,
  permute,
  reshape,
  squeeze,
  transpose,
  unflatten,
  unsqueeze,
} from '../ops/shape.ts';
import { broadcastTo, expand, repeat, repeatInterleave, tile } from '../ops/repeating.ts';
import { at, flip, narrow, roll, select, slice } from '../ops/slicing.ts';
import { pad } from '../ops/padding.ts';
import { logSoftmax, softmax, softmin } from '../ops/softmax.ts';
import { logSumExp, mean, nanMean, nanSum, norm, std, variance } from '../ops/statistics.ts';
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
  erfc,
  sin,
  sinc,
  sinh,
  tan,
  tanh,
} from '../ops/trigonometric.ts';
import { TensorHandle } from './handle.ts';
import type { TensorMethods } from './method-types.ts';
import {
  deviceOf,
  printTensor,
  readArray,
  readArraySync,
  readData,
  readDataSync,
  readItem,
  readItemSync,
} from './reading.ts';
import type { Tensor } from './types.ts';

type Reading = Pick<
  Tensor,
  'data' | 'array' | 'item' | 'dataSync' | 'arraySync' | 'itemSync' | 'print' | 'device' | 'backward'
>;

const methods: TensorMethods & Reading & ThisType<Tensor> = {
  add(b) {
    return add(this, b);
  },
  sub(b) {
    return sub(this, b);
  },
  mul(b) {
    return mul(this, b);
  },
  div(b) {
    return div(this, b);
  },
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
  erfc() {
    return erfc(this);
  },
  sinc() {
    return sinc(this);
  },
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
  relu() {
    return relu(this);
  },
  relu6() {
    return relu6(this);
  },
  leakyRelu(options) {
    return leakyRelu(this, options);
  },
  prelu(weight) {
    return prelu(this, weight);
  },
  elu(options) {
    return elu(this, options);
  },
  selu() {
    return selu(this);
  },
  celu(options) {
    return celu(this, options);
  },
  sigmoid() {
    return sigmoid(this);
  },
  hardSigmoid() {
    return hardSigmoid(this);
  },
  logSigmoid() {
    return logSigmoid(this);
  },
  hardTanh(options) {
    return hardTanh(this, options);
  },
  tanhShrink() {
    return tanhShrink(this);
  },
  softShrink(options) {
    return softShrink(this, options);
  },
  hardShrink(options) {
    return hardShrink(this, options);
  },
  threshold(options) {
    return threshold(this, options);
  },
  softplus() {
    return softplus(this);
  },
  softsign() {
    return softsign(this);
  },
  gelu(options) {
    return gelu(this, options);
  },
  silu() {
    return silu(this);
  },
  mish() {
    return mish(this);
  },
  hardSwish() {
    return hardSwish(this);
  },
  glu(options) {
    return glu(this, options);
  },
  softmax(axis) {
    return softmax(this, axis);
  },
  softmin(axis) {
    return softmin(this, axis);
  },
  logSoftmax(axis) {
    return logSoftmax(this, axis);
  },
  sum(axis) {
    return sum(this, axis);
  },
  prod(axis) {
    return prod(this, axis);
  },
  max(axis) {
    return max(this, axis);
  },
  min(axis) {
    return min(this, axis);
  },
  argMax(axis) {
    return argMax(this, axis);
  },
  argMin(axis) {
    return argMin(this, axis);
  },
  any(axis) {
    return any(this, axis);
  },
  all(axis) {
    return all(this, axis);
  },
  countNonZero(axis) {
    return countNonZero(this, axis);
  },
  mean(axis) {
    return mean(this, axis);
  },
  variance(options) {
    return variance(this, options);
  },
  std(options) {
    return std(this, options);
  },
  logSumExp(axis) {
    return logSumExp(this, axis);
  },
  norm(options) {
    return norm(this, options);
  },
  nanSum(axis) {
    return nanSum(this, axis);
  },
  nanMean(axis) {
    return nanMean(this, axis);
  },
  matmul(b) {
    return matmul(this, b);
  },
  gemm(b, options) {
    return gemm(this, b, options);
  },
  gemv(x, options) {
    return gemv(this, x, options);
  },
  dot(b) {
    return dot(this, b);
  },
  inner(b) {
    return inner(this, b);
  },
  vdot(b) {
    return vdot(this, b);
  },
  outer(b) {
    return outer(this, b);
  },
  tensordot(b, axes) {
    return tensordot(this, b, axes);
  },
  reshape(shape) {
    return reshape(this, shape);
  },
  flatten(options) {
    return flatten(this, options);
  },
  unflatten(axis, sizes) {
    return unflatten(this, axis, sizes);
  },
  permute(axes) {
    return permute(this, axes);
  },
  transpose(axis1, axis2) {
    return transpose(this, axis1, axis2);
  },
  moveAxis(from, to) {
    return moveAxis(this, from, to);
  },
  broadcastTo(shape) {
    return broadcastTo(this, shape);
  },
  expand(shape) {
    return expand(this, shape);
  },
  squeeze(axis) {
    return squeeze(this, axis);
  },
  unsqueeze(axis) {
    return unsqueeze(this, axis);
  },
  tile(repeats) {
    return tile(this, repeats);
  },
  repeat(repeats) {
    return repeat(this, repeats);
  },
  repeatInterleave(count, options) {
    return repeatInterleave(this, count, options);
  },
  contiguous() {
    return contiguous(this);
  },
  slice(specs) {
    return slice(this, specs);
  },
  at(...specs) {
    return at(this, ...specs);
  },
  narrow(axis, start, length) {
    return narrow(this, axis, start, length);
  },
  select(axis, index) {
    return select(this, axis, index);
  },
  flip(axis) {
    return flip(this, axis);
  },
  roll(shift, axis) {
    return roll(this, shift, axis);
  },
  pad(widths, options) {
    return pad(this, widths, options);
  },
  split(size, axis) {
    return split(this, size, axis);
  },
  chunk(count, axis) {
    return chunk(this, count, axis);
  },
  unbind(axis) {
    return unbind(this, axis);
  },
  tril(options) {
    return tril(this, options);
  },
  triu(options) {
    return triu(this, options);
  },
  diagonal(options) {
    return diagonal(this, options);
  },
  trace(options) {
    return trace(this, options);
  },
  take(indices, axis) {
    return take(this, indices, axis);
  },
  indexSelect(indices, axis) {
    return indexSelect(this, indices, axis);
  },
  takeAlongAxis(indices, axis) {
    return takeAlongAxis(this, indices, axis);
  },
  gather(indices, axis) {
    return gather(this, indices, axis);
  },
  scatterAdd(indices, updates, axis) {
    return scatterAdd(this, indices, updates, axis);
  },
  indexAdd(indices, updates, axis) {
    return indexAdd(this, indices, updates, axis);
  },
  maskedFill(mask, value) {
    return maskedFill(this, mask, value);
  },
  detach() {
    return detach(this);
  },

  get device() {
    return deviceOf(this);
  },
  data() {
    return readData(this);
  },
  array() {
    return readArray(this);
  },
  item() {
    return readItem(this);
  },
  dataSync() {
    return readDataSync(this);
  },
  arraySync() {
    return readArraySync(this);
  },
  itemSync() {
    return readItemSync(this);
  },
  print() {
    return printTensor(this);
  },
  backward(options) {
    backward(this, options);
  },
};

for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(methods))) {
  Object.defineProperty(TensorHandle.prototype, name, { ...descriptor, enumerable: false });
}
