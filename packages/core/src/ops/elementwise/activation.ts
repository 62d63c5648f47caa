/**
 * Rounding, activation functions and dropout. All but `glu` work element by element. Integer operands become float32, but rounding leaves them
 * as they are; NaN stays NaN.
 *
 * Softmax and its relatives work along an axis and are in normalization.ts.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { UnaryOperation } from '../../graph/definition.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { ceilPrimitive, roundPrimitive, truncPrimitive } from '../../primitives/elementary.ts';
import { normalizeAxis, optionsOf } from '@polygrad/compiler/shape/axes';
import { isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given, operand } from '../../tensor/operand.ts';
import { type RandomKey, resolveKey } from '../../tensor/random-key.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { bits } from '../creation/random.ts';
import { specialFunction } from '../special/special-form.ts';
import { abs, add, clip, div, mul, neg, reciprocal, sign, square, sub } from './arithmetic.ts';
import { greater, isInf, less, lessEqual } from './logic.ts';
import { activation, floatPair, inFloat32, where } from './recording.ts';
import { erf, exp, expm1, log1p, tanh } from './transcendental.ts';

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
  // A choice, not `maximum`, whose equal operands share the gradient: at 0 it is 0. NaN stays.
  return wrap(p.where(p.le(t, zero), zero, t));
}

/**
 * x limited to 0 .. 6. Source: PyTorch `relu6`.
 *
 * @returns of the shape of x; integers become float32
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
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
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
 * @returns of the dtype of the input; integers become float32
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
 * @returns of the shape of x; integers become float32
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
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
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
 * @returns of the shape of x; integers become float32
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
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
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
 * @param options threshold and value, both needed
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
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
 * @returns of the shape of x; integers become float32
 *
 * @example
 * hardSwish(tensor([-3, 3])); // [0, 3]
 */
export function hardSwish(x: TensorLike): Tensor {
  return activation('hardSwish', x, (t) => mul(t, clip(add(mul(t, 1 / 6), 0.5), 0, 1)));
}

/**
 * x above zero, alpha * (exp(x) - 1) below. Source: PyTorch `elu`.
 *
 * @param options alpha, 1
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
 *
 * @example
 * elu(tensor([0, 2])); // [0, 2]
 */
export function elu(x: TensorLike, options: { readonly alpha?: number } = {}): Tensor {
  checkNames('elu', options, 'alpha#');
  return activation('elu', x, (t) => {
    const below = expm1(where(greater(t, 0), 0, t));
    return where(greater(t, 0), t, options.alpha === undefined ? below : mul(below, given(options.alpha, t)));
  });
}

/**
 * The self-normalising exponential unit: 1.0507 * elu(x, 1.6733). Source: PyTorch `selu`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * selu(tensor([0])); // [0]
 */
export function selu(x: TensorLike): Tensor {
  return activation('selu', x, (t) => {
    const below = mul(expm1(where(greater(t, 0), 0, t)), 1.6732632423543772);
    return mul(where(greater(t, 0), t, below), 1.0507009873554805);
  });
}

/**
 * max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). Source: PyTorch `celu`.
 *
 * @param options alpha, 1
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
 *
 * @example
 * celu(tensor([0, 2])); // [0, 2]
 */
export function celu(x: TensorLike, options: { readonly alpha?: number } = {}): Tensor {
  checkNames('celu', options, 'alpha#');
  return activation('celu', x, (t) => {
    const alpha = given(options.alpha ?? 1, t);
    const below = mul(expm1(div(where(greater(t, 0), 0, t), alpha)), alpha);
    return where(greater(t, 0), t, below);
  });
}

/**
 * 1 / (1 + exp(-x)), in 0 .. 1. Source: PyTorch `sigmoid`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * sigmoid(tensor([0])); // [0.5]
 */
export function sigmoid(x: TensorLike): Tensor {
  return activation('sigmoid', x, logistic);
}

/** The sigmoid: e / (1 + e) or 1 / (1 + e) with e = exp(-|x|). As e is at most 1, no derivative overflows. */
function logistic(t: Tensor): Tensor {
  const negative = less(t, 0);
  const e = exp(where(negative, t, neg(t)));
  return div(where(negative, e, 1), add(e, 1));
}

/**
 * log(sigmoid(x)), without underflow. Source: PyTorch `logsigmoid`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * logSigmoid(tensor([0])); // [-0.6931472]
 */
export function logSigmoid(x: TensorLike): Tensor {
  return activation('logSigmoid', x, (t) => neg(softplus(neg(t))));
}

/**
 * x - tanh(x). Source: PyTorch `tanhshrink`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * tanhShrink(tensor([0])); // [0]
 */
export function tanhShrink(x: TensorLike): Tensor {
  return activation('tanhShrink', x, (t) => sub(t, tanh(t)));
}

/**
 * log(1 + exp(beta x)) / beta, without overflow. Source: PyTorch `softplus`.
 *
 * @param options beta, 1
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other options, and for values that are no numbers
 *
 * @example
 * softplus(tensor([0])); // [0.6931472]
 */
export function softplus(x: TensorLike, options: { readonly beta?: number } = {}): Tensor {
  checkNames('softplus', options, 'beta#');
  return activation('softplus', x, (t) => {
    // The first term's gradient is 1 above zero, the second's then -sigmoid(-x): together sigmoid(x), also at 0 by halves.
    const beta = options.beta === undefined ? null : given(options.beta, t);
    const scaled = beta === null ? t : mul(t, beta);
    const below = less(scaled, 0);
    const rest = log1p(exp(where(below, scaled, neg(scaled))));
    return add(where(below, 0, t), beta === null ? rest : div(rest, beta));
  });
}

/**
 * x / (1 + |x|). Source: PyTorch `softsign`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * softsign(tensor([1])); // [0.5]
 */
export function softsign(x: TensorLike): Tensor {
  // The derivative of the quotient would be a difference of numbers that are large and nearly equal.
  return specialFunction(
    'softsign',
    x,
    (t) => where(isInf(t), sign(t), div(t, add(1, abs(t)))),
    (t) => square(reciprocal(add(1, abs(t)))),
  );
}

/**
 * x times the normal distribution function of x. Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
 *
 * @param options approximate: 'none' (with erf, default) or 'tanh'
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for another approximation
 *
 * @example
 * gelu(tensor([0, 1])); // [0, 0.8413447]
 */
export function gelu(x: TensorLike, options: { readonly approximate?: 'none' | 'tanh' } = {}): Tensor {
  checkNames('gelu', options, 'approximate');
  const { approximate = 'none' } = options;
  if (approximate !== 'none' && approximate !== 'tanh')
    throw new ArgumentError('gelu', say`unknown approximate: ${shown(approximate)}; must be 'none' or 'tanh'`);
  return activation('gelu', x, (t) => {
    if (approximate === 'tanh') {
      // From 10 on the tangent is 1, and nothing flows through the cube, whose slope would become infinite.
      const near = where(greater(t, 10), 10, where(less(t, -10), -10, t));
      const inner = mul(add(near, mul(mul(mul(near, near), near), 0.044715)), Math.sqrt(2 / Math.PI));
      return mul(mul(t, 0.5), add(1, tanh(inner)));
    }
    return mul(mul(t, 0.5), add(1, erf(mul(t, Math.SQRT1_2))));
  });
}

/**
 * x * sigmoid(x), also called swish. Source: PyTorch `silu`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * silu(tensor([0, 1])); // [0, 0.7310586]
 */
export function silu(x: TensorLike): Tensor {
  return activation('silu', x, (t) => mul(t, logistic(t)));
}

/**
 * x * tanh(softplus(x)). Source: PyTorch `mish`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * mish(tensor([0])); // [0]
 */
export function mish(x: TensorLike): Tensor {
  // From 100 on the tangent is 1, and nothing flows through it that twice the largest number would make infinite.
  return activation('mish', x, (t) => mul(t, tanh(softplus(where(greater(t, 100), 100, t)))));
}

/**
 * The first half of an axis times the sigmoid of the second. Source: PyTorch `glu`.
 *
 * @param options an axis, or { axis }; -1
 * @returns of the shape of x with the axis half as long, of the dtype of the input; integers become float32
 * @throws ShapeError unless the size of the axis is even
 *
 * @example
 * glu(tensor([3, 0])); // [1.5]
 */
export function glu(x: Tensor, options: number | { readonly axis?: number } = {}): Tensor {
  const chosen = optionsOf(options);
  checkNames('glu', chosen, 'axis');
  return activation('glu', x, (t) => {
    const { shape } = t;
    const axis = normalizeAxis('glu', chosen.axis ?? -1, shape.length);
    const half = shape[axis]! / 2;
    if (!Number.isInteger(half)) {
      throw new ShapeError(
        'glu',
        say`odd axis: size ${shape[axis]} of axis ${axis} in ${showShape(shape)}; needs an even size`,
        [shape],
      );
    }
    const length = shape.map((n, i) => (i === axis ? half : n));
    const step = shape.map(() => 1);
    const part = (start: number): Tensor =>
      wrap(
        p.slice(
          nodeOf(t),
          shape.map((_, i) => (i === axis ? start : 0)),
          length,
          step,
        ),
      );
    return mul(part(0), logistic(part(half)));
  });
}

// Dropout: elements set to 0 at random.

/**
 * Elements set to 0 at random, the others scaled up so that the mean stays; x itself unless training. Source: Srivastava et al. (2014);
 * PyTorch `dropout`.
 *
 * @param options p: probability of 0 (0.5); training (true); key
 * @returns of the dtype of the input; integers become float32
 * @throws ArgumentError for a probability outside 0 to 1
 *
 * @example
 * dropout(ones([4]), { p: 0.5, key: 1 }); // zeros and twos
 */
export function dropout(
  x: Tensor,
  options: { readonly p?: number; readonly training?: boolean; readonly key?: RandomKey | number } = {},
): Tensor {
  checkNames('dropout', options, 'p# training? key');
  return compose('dropout', () => {
    const { p: rate = 0.5, training = true } = options;
    if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1))
      throw new ArgumentError('dropout', say`bad probability: ${rate}; must be from 0 to 1`);
    const t = wrap(floatOperand(x));
    if (!training || rate === 0) return t;
    if (rate === 1) return wrap(p.mul(nodeOf(t), p.like(nodeOf(t), 0)));
    // An element is kept where its random bits are below (1 - p) 2^32: one comparison of integers.
    const limit = p.scalar(Math.min(2 ** 32 - 1, Math.round((1 - rate) * 2 ** 32)), 'uint32');
    const keep = p.lt(bits(resolveKey(options.key), t.shape), limit);
    const scale = nodeOf(given(1 / (1 - rate), t));
    return wrap(p.where(keep, p.mul(nodeOf(t), scale), p.like(nodeOf(t), 0)));
  });
}
