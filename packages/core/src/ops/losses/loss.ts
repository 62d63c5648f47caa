/**
 * Losses: how far predictions are from targets, as a number to minimise. First of numbers and probabilities, then those that are 0 beyond a margin.
 *
 * All take `reduction`: 'mean' (default) over all elements, 'sum', or 'none' for the loss of each element. Losses of classification by class
 * numbers are in class-loss.ts.
 */
import { stopGradient } from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { sameShape, type Shape } from '@polygrad/compiler/shape/view';
import { broadcastShapes, broadcastsTo } from '@polygrad/compiler/shape/broadcast';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkFields, checkNames, oneOf, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { relu } from '../elementwise/activation.ts';
import { abs, add, div, minimum, mul, neg, square, sub } from '../elementwise/arithmetic.ts';
import { exp, log, sqrt, xlogy } from '../elementwise/transcendental.ts';
import { equal, greater, isInf, less, lessEqual, logicalAnd } from '../elementwise/logic.ts';
import { floatPair, inFloat32, where } from '../elementwise/recording.ts';
import { unsqueeze } from '../movement/shape.ts';
import { norm, sum } from '../reduction/reduction.ts';
import { between, checkNumber, finish, floats, logitLoss, type Reduction, weighted } from './loss-forms.ts';

/** Options that losses share. */
export interface LossOptions {
  /** Default 'mean'. */
  readonly reduction?: Reduction;
}

/**
 * The squared difference. Source: PyTorch `mse_loss`.
 *
 * @param target of the shape of the prediction
 * @param options reduction: 'mean' (default), 'sum' or 'none'
 * @returns one number, or the losses of the elements, of the common dtype; integers become float32
 *
 * @example
 * mseLoss(tensor([1, 2]), tensor([1, 4])); // 2
 */
export function mseLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  checkNames('mseLoss', options, 'reduction');
  return between('mseLoss', [prediction, target], (x, y) => {
    return finish('mseLoss', square(sub(x, y)), options.reduction);
  });
}

/**
 * The absolute difference. Source: PyTorch `l1_loss`.
 *
 * @param target of the shape of the prediction
 * @param options reduction: 'mean' (default), 'sum' or 'none'
 * @returns one number, or the losses of the elements, of the common dtype; integers become float32
 *
 * @example
 * l1Loss(tensor([1, 2]), tensor([1, 4])); // 1
 */
export function l1Loss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  checkNames('l1Loss', options, 'reduction');
  return between('l1Loss', [prediction, target], (x, y) => {
    return finish('l1Loss', abs(sub(x, y)), options.reduction);
  });
}

/**
 * Half the square for differences up to delta, a line beyond. Source: Huber (1964); PyTorch `huber_loss`.
 *
 * @param options delta (1), reduction
 * @returns of the common dtype; integers become float32
 *
 * @example
 * huberLoss(tensor([0, 0]), tensor([0.5, 3])); // (0.125 + 2.5) / 2
 */
export function huberLoss(
  prediction: Tensor,
  target: Tensor,
  options: LossOptions & { readonly delta?: number } = {},
): Tensor {
  checkNames('huberLoss', options, 'reduction delta');
  return between('huberLoss', [prediction, target], (x, y) => {
    const delta = given(checkNumber('huberLoss', 'delta', options.delta ?? 1, 0, true), x);
    const difference = sub(x, y);
    const distance = abs(difference);
    const far = mul(delta, sub(distance, mul(delta, 0.5)));
    // The square of the difference, not of its magnitude: that has gradient 0 at 0, so the second derivative would be lost there.
    return finish('huberLoss', where(lessEqual(distance, delta), mul(square(difference), 0.5), far), options.reduction);
  });
}

/**
 * Huber's loss divided by beta. Source: PyTorch `smooth_l1_loss`.
 *
 * @param options beta (1), reduction
 * @returns of the common dtype; integers become float32
 *
 * @example
 * smoothL1Loss(tensor([0]), tensor([3])); // 2.5
 */
export function smoothL1Loss(
  prediction: Tensor,
  target: Tensor,
  options: LossOptions & { readonly beta?: number } = {},
): Tensor {
  checkNames('smoothL1Loss', options, 'reduction beta');
  return between('smoothL1Loss', [prediction, target], (x, y) => {
    const difference = sub(x, y);
    const distance = abs(difference);
    checkNumber('smoothL1Loss', 'beta', options.beta ?? 1, 0);
    if (options.beta === 0) return finish('smoothL1Loss', distance, options.reduction);
    const beta = given(options.beta ?? 1, x);
    const near = div(mul(square(difference), 0.5), beta);
    return finish(
      'smoothL1Loss',
      where(lessEqual(distance, beta), near, sub(distance, mul(beta, 0.5))),
      options.reduction,
    );
  });
}

/**
 * Minus the log likelihood of targets 0 .. 1 under probabilities. Logarithms are cut off at -100. Source: PyTorch `binary_cross_entropy`.
 *
 * @param options weight (broadcasts), reduction
 * @returns of the common dtype; integers become float32
 *
 * @example
 * binaryCrossEntropy(tensor([0.5]), tensor([1])); // 0.6931472
 */
export function binaryCrossEntropy(
  prediction: Tensor,
  target: Tensor,
  options: LossOptions & { readonly weight?: Tensor } = {},
): Tensor {
  checkNames('binaryCrossEntropy', options, 'reduction weight');
  return between('binaryCrossEntropy', [prediction, target], (x, y) => {
    const cut = (t: Tensor): Tensor => where(lessEqual(t, -100), -100, t);
    const losses = neg(add(mul(y, cut(log(x))), mul(sub(1, y), cut(log(sub(1, x))))));
    return finish('binaryCrossEntropy', options.weight ? mul(losses, options.weight) : losses, options.reduction);
  });
}

/**
 * binaryCrossEntropy(sigmoid(x), y) without overflow, also of infinite logits: softplus(x) - x y. Source: PyTorch `binary_cross_entropy_with_logits`.
 *
 * @param options posWeight: factor of positive targets (broadcasts); weight (broadcasts); reduction
 * @returns of the common dtype; integers become float32
 *
 * @example
 * binaryCrossEntropyWithLogits(tensor([0]), tensor([1])); // 0.6931472
 */
export function binaryCrossEntropyWithLogits(
  logits: Tensor,
  target: Tensor,
  options: LossOptions & { readonly weight?: Tensor; readonly posWeight?: Tensor | number } = {},
): Tensor {
  checkNames('binaryCrossEntropyWithLogits', options, 'reduction weight posWeight');
  return between('binaryCrossEntropyWithLogits', [logits, target], (x, y) => {
    const losses = logitLoss(x, y, options.posWeight === undefined ? undefined : given(options.posWeight, x));
    return finish(
      'binaryCrossEntropyWithLogits',
      options.weight ? mul(losses, options.weight) : losses,
      options.reduction,
    );
  });
}

/**
 * Kullback and Leibler's divergence target * (log(target) - logs), element by element. Source: PyTorch `kl_div`.
 *
 * @param logs log-probabilities
 * @param target probabilities, or log-probabilities with logTarget; broadcasts with the logs
 * @param options logTarget (false), reduction; 'batchMean' divides the sum by the size of the first axis of the logs
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes do not broadcast
 *
 * @example
 * klDiv(log(tensor([0.5, 0.5])), tensor([0.5, 0.5])); // 0
 */
export function klDiv(
  logs: Tensor,
  target: Tensor,
  options: { readonly reduction?: Reduction | 'batchMean'; readonly logTarget?: boolean } = {},
): Tensor {
  const reduction = oneOf('mean', 'sum', 'none', 'batchMean');
  checkFields('klDiv', options, { reduction, logTarget: oneOf(true, false) });
  return compose('klDiv', () =>
    inFloat32(floatPair(logs, target), (x: Tensor, y: Tensor) => {
      broadcastShapes('klDiv', x.shape, y.shape);
      const distance = where(logicalAnd(equal(x, y), isInf(x)), 0, sub(y, x));
      // What has probability 0 does not count, whatever its logarithm is.
      const losses = options.logTarget
        ? wrap(weighted(nodeOf(exp(y)), nodeOf(distance)))
        : sub(xlogy(y, y), wrap(weighted(nodeOf(y), nodeOf(x))));
      if (options.reduction === 'batchMean') return div(sum(losses), x.shape[0] ?? 1);
      return finish('klDiv', losses, options.reduction);
    }),
  );
}

/** Options of `gaussianNllLoss`. */
export interface GaussianNllOptions extends LossOptions {
  /** With the constant log(2 pi) / 2. Default false. */
  readonly full?: boolean;
  /** Least variance, 1e-6. The gradient passes as if there were no limit. */
  readonly eps?: number;
}

/**
 * Minus the log likelihood of targets under normal distributions: (log(variance) + (prediction - target)^2 / variance) / 2. Source:
 * PyTorch `gaussian_nll_loss`.
 *
 * @param prediction means
 * @param target broadcasts with the prediction
 * @param variance not negative: a number, or a tensor of the broadcast shape, with 1 for any of its axes, or without the last axis
 * @param options full (false), eps (1e-6), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes do not fit
 *
 * @example
 * gaussianNllLoss(tensor([1]), tensor([3]), tensor([1])); // 2
 */
export function gaussianNllLoss(
  prediction: Tensor,
  target: Tensor,
  variance: Tensor | number,
  options: GaussianNllOptions = {},
): Tensor {
  checkNames('gaussianNllLoss', options, 'reduction full? eps');
  const op = 'gaussianNllLoss';
  const tensors = typeof variance === 'number' ? [prediction, target] : [prediction, target, variance];
  return compose(op, () =>
    inFloat32(floats(op, tensors), (x: Tensor, y: Tensor, own?: Tensor) => {
      const shape = broadcastShapes(op, x.shape, y.shape);
      const eps = given(checkNumber(op, 'eps', options.eps ?? 1e-6, 0, true), x);
      const v = varianceFor(op, own ?? (variance as number), x, shape);
      // The value is eps, the gradient that of v.
      const limited = where(less(v, eps), add(eps, sub(v, wrap(stopGradient(nodeOf(v))))), v);
      // Not the square over the variance: that overflows where the quotient is finite.
      const difference = sub(x, y);
      const losses = mul(add(log(limited), mul(div(difference, limited), difference)), 0.5);
      return finish(op, options.full ? add(losses, 0.5 * Math.log(2 * Math.PI)) : losses, options.reduction);
    }),
  );
}

/** The variance in a shape that broadcasts to `shape`. One per row, without the last axis, gets that axis; this is tried first. */
function varianceFor(op: string, variance: Tensor | number, x: Tensor, shape: Shape): Tensor {
  if (typeof variance === 'number') return given(checkNumber(op, 'variance', variance, 0), x);
  const { shape: own } = variance;
  if (shape.length > 0 && sameShape(own, shape.slice(0, -1))) return unsqueeze(variance, -1);
  if (own.length === 0 || (own.length === shape.length && broadcastsTo(own, shape))) return variance;
  throw new ShapeError(
    op,
    say`variance has shape ${showShape(own)}: needs that of the prediction ${showShape(shape)}, with 1 for any axis, or without the last axis`,
    [own, shape],
  );
}

// Losses that are 0 beyond a margin: hinge, cosine embedding, triplets.

/** Options of `hingeLoss` and `cosineEmbeddingLoss`. */
export interface MarginOptions extends LossOptions {
  readonly margin?: number;
}

/**
 * max(0, margin - target * prediction): nothing to pay on the right side of the margin. Source: Cortes and Vapnik,
 * "Support-Vector Networks" (1995); Keras `hinge`.
 *
 * @param prediction scores
 * @param target -1 and 1, the shape of the prediction
 * @param options margin (1), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ
 *
 * @example
 * hingeLoss(tensor([0.5, 3]), tensor([1, 1])); // 0.25
 */
export function hingeLoss(prediction: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  checkNames('hingeLoss', options, 'reduction margin#');
  return between('hingeLoss', [prediction, target], (x, y) => {
    return finish('hingeLoss', relu(sub(given(options.margin ?? 1, x), mul(x, y))), options.reduction);
  });
}

/** Added to squared lengths, so that vectors of zeros have a gradient. The value PyTorch has. */
const embeddingEps = 1e-12;

/**
 * 1 - cos of the angle between vectors that belong together, max(0, cos - margin) for those that do not. Source: PyTorch
 * `cosine_embedding_loss`.
 *
 * @param a, b shape [N, D] or [D]
 * @param target 1 (together) and -1, shape [N] or []
 * @param options margin (0), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes do not fit
 *
 * @example
 * cosineEmbeddingLoss(tensor([[1, 0]]), tensor([[3, 4]]), tensor([1])); // 0.4
 */
export function cosineEmbeddingLoss(a: Tensor, b: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  checkNames('cosineEmbeddingLoss', options, 'reduction margin#');
  return between('cosineEmbeddingLoss', [a, b], (x, y) => {
    const op = 'cosineEmbeddingLoss';
    nodeOf(target);
    if (x.ndim < 1 || x.ndim > 2 || !sameShape(target.shape, x.shape.slice(0, -1)))
      throw new ShapeError(
        op,
        say`shapes do not fit: vectors ${showShape(x.shape)} and target ${showShape(target.shape)}; needs [N, D] and [N], or [D] and []`,
        [x.shape, target.shape],
      );
    const squared = (t: Tensor): Tensor => add(sum(mul(t, t), -1), embeddingEps);
    const cosine = div(sum(mul(x, y), -1), sqrt(mul(squared(x), squared(y))));
    const dissimilar = relu(sub(cosine, given(options.margin ?? 0, x)));
    return finish(op, where(greater(target, 0), sub(1, cosine), dissimilar), options.reduction);
  });
}

/** Options of `tripletMarginLoss`. */
export interface TripletOptions extends MarginOptions {
  /** Order of the norm that measures distances, 2. */
  readonly p?: number;
  /** Added to every difference, so that equal points have a gradient; 1e-6. */
  readonly eps?: number;
  /** Also take the distance from positive to negative, if it is the smaller one. Default false. */
  readonly swap?: boolean;
}

/**
 * max(0, d(anchor, positive) - d(anchor, negative) + margin), row by row. Source: PyTorch `triplet_margin_loss`; Balntas et al.,
 * "Learning shallow convolutional feature descriptors with triplet losses" (2016), for the swap.
 *
 * @param anchor, positive, negative one shape, [N, D] or [D]
 * @param options margin (1), p (2), eps (1e-6), swap (false), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ, ArgumentError for bad orders
 *
 * @example
 * tripletMarginLoss(tensor([[0, 0]]), tensor([[3, 4]]), tensor([[0, 5]])); // 1
 */
export function tripletMarginLoss(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletOptions = {},
): Tensor {
  checkNames('tripletMarginLoss', options, 'reduction margin# p# eps swap?');
  const op = 'tripletMarginLoss';
  return between(op, [anchor, positive, negative], (a, near, far) => {
    if (a.ndim === 0) throw new ShapeError(op, 'no vectors: all are scalars; need at least one axis', [[]]);
    const p = options.p ?? 2;
    if (typeof p !== 'number' || !(p > 0)) throw new ArgumentError(op, say`bad order p: ${shown(p)}; must be above 0`);
    const eps = given(checkNumber(op, 'eps', options.eps ?? 1e-6, 0), a);
    const distance = (x: Tensor, y: Tensor): Tensor => norm(add(sub(x, y), eps), { axis: -1, p });
    const own = distance(a, near);
    const other = options.swap ? minimum(distance(a, far), distance(near, far)) : distance(a, far);
    return finish(op, relu(add(sub(own, other), given(options.margin ?? 1, a))), options.reduction);
  });
}
