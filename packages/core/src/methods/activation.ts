/** Methods of Tensors: activations and softmax. Details, shapes and errors are told with the functions. */
import {
  celu,
  elu,
  gelu,
  glu,
  logSigmoid,
  mish,
  selu,
  sigmoid,
  silu,
  softplus,
  softsign,
  tanhShrink,
} from '../ops/activation.ts';
import {
  hardShrink,
  hardSigmoid,
  hardSwish,
  hardTanh,
  leakyRelu,
  prelu,
  relu,
  relu6,
  softShrink,
  threshold,
} from '../ops/piecewise.ts';
import { type OneAxis, logSoftmax, softmax, softmin } from '../ops/softmax.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface ActivationMethods {
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
  softplus(options?: { readonly beta?: number }): Tensor;
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

  /** exp(x) / sum(exp(x)) along an axis. */
  softmax(axis?: OneAxis): Tensor;
  /** softmax(-x). */
  softmin(axis?: OneAxis): Tensor;
  /** log(softmax(x)), without underflow. */
  logSoftmax(axis?: OneAxis): Tensor;
}

export const activationMethods: ActivationMethods & ThisType<Tensor> = {
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
  softplus(options) {
    return softplus(this, options);
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
};
