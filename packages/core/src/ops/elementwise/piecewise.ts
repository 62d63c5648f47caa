/**
 * Rounding, and activation functions made of pieces of lines. Integer operands become float32; NaN stays NaN.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/build.ts';
import type { UnaryOperation } from '../../graph/definition.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { ceilPrimitive, roundPrimitive, truncPrimitive } from '../../primitives/rounding.ts';
import { isFloat } from '../../shape/dtype.ts';
import { ArgumentError } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { say } from '../../shape/shown.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given, operand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, mul, neg, sub } from './arithmetic.ts';
import { clip } from './compound.ts';
import { greater, less, lessEqual } from './logic.ts';
import { activation, floatPair, inFloat32 } from './recording.ts';
import { where } from './where.ts';

// Rounding. Integers stay as they are; the gradient is 0 everywhere.

function rounded(op: string, primitive: UnaryOperation, x: TensorLike): Tensor {
  beginOp(op);
  const node = operand(x);
  return wrap(isFloat(node.dtype) ? makeNode(primitive, [node], null) : node);
}

/**
 * The largest integer not above x. Source: Array API `floor`.
 *
 * @example
 * floor(tensor([1.5, -1.5])); // [1, -2]
 */
export function floor(x: TensorLike): Tensor {
  return rounded('floor', 'floor', x);
}

/**
 * The smallest integer not below x. Source: Array API `ceil`.
 *
 * @example
 * ceil(tensor([1.5, -1.5])); // [2, -1]
 */
export function ceil(x: TensorLike): Tensor {
  return rounded('ceil', ceilPrimitive, x);
}

/**
 * x without its fraction. Source: Array API `trunc`.
 *
 * @example
 * trunc(tensor([1.5, -1.5])); // [1, -1]
 */
export function trunc(x: TensorLike): Tensor {
  return rounded('trunc', truncPrimitive, x);
}

/**
 * The nearest integer, halves to even. Source: Array API `round`.
 *
 * @example
 * round(tensor([0.5, 1.5, 2.5])); // [0, 2, 2]
 */
export function round(x: TensorLike): Tensor {
  return rounded('round', roundPrimitive, x);
}

/**
 * x - trunc(x): the fraction, with the sign of x. Source: PyTorch `torch.frac`. The gradient is that of x.
 *
 * @example
 * frac(tensor([1.5, -1.5])); // [0.5, -0.5]
 */
export function frac(x: TensorLike): Tensor {
  return compose('frac', () => sub(x, trunc(x)));
}

/**
 * max(x, 0). The gradient at 0 is 0. Source: PyTorch `relu`.
 *
 * @example
 * relu(tensor([-1, 2])); // [0, 2]
 */
export function relu(x: TensorLike): Tensor {
  beginOp('relu');
  const t = floatOperand(x);
  const zero = p.like(t, 0);
  // Not a maximum: at 0 the constant wins, NaN passes.
  return wrap(p.where(p.le(t, zero), zero, t));
}

/**
 * x limited to 0 .. 6. Source: PyTorch `relu6`.
 *
 * @example
 * relu6(tensor([-1, 3, 9])); // [0, 3, 6]
 */
export function relu6(x: TensorLike): Tensor {
  return activation('relu6', x, (t) => where(lessEqual(t, 0), 0, where(less(t, 6), t, where(lessEqual(t, t), 6, t))));
}

/**
 * x above zero, slope * x below. Source: PyTorch `leaky_relu`.
 *
 * @param options slope below zero, 0.01
 *
 * @example
 * leakyRelu(tensor([-1, 2]), { slope: 0.1 }); // [-0.1, 2]
 */
export function leakyRelu(x: TensorLike, options: { readonly slope?: number } = {}): Tensor {
  checkNames('leakyRelu', options, 'slope#');
  return activation('leakyRelu', x, (t) => where(greater(t, 0), t, mul(t, given(options.slope ?? 0.01, t))));
}

/**
 * x above zero, weight * x below, with a learned weight. Source: PyTorch `prelu`.
 *
 * @param weight one number, or one per channel, [C] for x of shape [N, C, ...]; other tensors broadcast with x
 *
 * @example
 * prelu(tensor([-2, 2]), tensor([0.25])); // [-0.5, 2]
 */
export function prelu(x: TensorLike, weight: TensorLike): Tensor {
  return compose('prelu', () => {
    const [values, weights] = floatPair(x, weight);
    const isPerChannel = weights.ndim === 1 && values.ndim > 2 && weights.size === values.shape[1];
    const slopes = isPerChannel
      ? wrap(p.reshape(nodeOf(weights), [weights.size, ...values.shape.slice(2).map(() => 1)]))
      : weights;
    return inFloat32([values, slopes], (t, w) => where(greater(t, 0), t, mul(t, w)));
  });
}

/**
 * A sigmoid of three lines: x / 6 + 1 / 2, limited to 0 .. 1. Source: PyTorch `hardsigmoid`.
 *
 * @example
 * hardSigmoid(tensor([-3, 0, 3])); // [0, 0.5, 1]
 */
export function hardSigmoid(x: TensorLike): Tensor {
  return activation('hardSigmoid', x, (t) => clip(add(mul(t, 1 / 6), 0.5), 0, 1));
}

/**
 * x limited to low .. high. Source: PyTorch `hardtanh`.
 *
 * @param options low -1, high 1
 *
 * @example
 * hardTanh(tensor([-5, 0.5])); // [-1, 0.5]
 */
export function hardTanh(x: TensorLike, options: { readonly low?: number; readonly high?: number } = {}): Tensor {
  checkNames('hardTanh', options, 'low# high#');
  return activation('hardTanh', x, (t) => clip(t, given(options.low ?? -1, t), given(options.high ?? 1, t)));
}

/**
 * x moved towards zero by lambda, zero within it. Source: PyTorch `softshrink`.
 *
 * @param options lambda, 0.5
 * @throws ArgumentError where lambda is negative
 *
 * @example
 * softShrink(tensor([-1, 0.2, 1])); // [-0.5, 0, 0.5]
 */
export function softShrink(x: TensorLike, options: { readonly lambda?: number } = {}): Tensor {
  checkNames('softShrink', options, 'lambda#');
  return activation('softShrink', x, (t) => {
    const size = options.lambda ?? 0.5;
    if (!(size >= 0)) throw new ArgumentError('softShrink', say`bad lambda: ${size}; must be at least 0`);
    const lambda = given(size, t);
    return where(greater(t, lambda), sub(t, lambda), where(less(t, neg(lambda)), add(t, lambda), mul(t, 0)));
  });
}

/**
 * x outside -lambda .. lambda, zero within; nothing is within a negative lambda. Source: PyTorch `hardshrink`.
 *
 * @param options lambda, 0.5
 *
 * @example
 * hardShrink(tensor([-1, 0.2, 1])); // [-1, 0, 1]
 */
export function hardShrink(x: TensorLike, options: { readonly lambda?: number } = {}): Tensor {
  checkNames('hardShrink', options, 'lambda#');
  return activation('hardShrink', x, (t) => where(lessEqual(abs(t), given(options.lambda ?? 0.5, t)), 0, t));
}

/**
 * x above the threshold, `value` elsewhere. Source: PyTorch `threshold`.
 *
 * @example
 * threshold(tensor([1, 3]), { threshold: 2, value: -1 }); // [-1, 3]
 */
export function threshold(x: TensorLike, options: { readonly threshold: number; readonly value: number }): Tensor {
  checkNames('threshold', options, 'threshold# value#');
  return activation('threshold', x, (t) =>
    where(lessEqual(t, given(options?.threshold, t)), given(options?.value, t), t),
  );
}

/**
 * x * hardSigmoid(x). Source: PyTorch `hardswish`.
 *
 * @example
 * hardSwish(tensor([-3, 3])); // [0, 3]
 */
export function hardSwish(x: TensorLike): Tensor {
  return activation('hardSwish', x, (t) => mul(t, clip(add(mul(t, 1 / 6), 0.5), 0, 1)));
}
