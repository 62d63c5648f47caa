/**
 * Losses of pairs and rankings by a margin, of several classes at once, of Poisson counts, and for rare classes: focal and Dice.
 *
 * All take `reduction`: 'mean' (default) over all losses, 'sum', or 'none' for each. Losses of one class per row by its probability are in
 * class-loss.ts.
 */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { isInteger, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { relu, sigmoid, softplus } from '../elementwise/activation.ts';
import { add, div, mul, neg, pow, sub } from '../elementwise/arithmetic.ts';
import { equal, greater, logicalAnd } from '../elementwise/logic.ts';
import { inFloat32, saturated, where } from '../elementwise/recording.ts';
import { exp, log } from '../elementwise/transcendental.ts';
import { alongAxis, safeIndex } from '../indexing/index-argument.ts';
import { flatten } from '../movement/shape.ts';
import { sum } from '../reduction/reduction.ts';
import type { LossOptions, MarginOptions } from './loss.ts';
import { between, checkClasses, checkNumber, finish, isClass, logitLoss, weighted } from './loss-forms.ts';

/**
 * log(1 + exp(-target * prediction)), without overflow. Source: PyTorch `soft_margin_loss`.
 *
 * @param prediction scores
 * @param target -1 and 1, the shape of the prediction
 * @param options reduction: 'mean' (default), 'sum' or 'none'
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ
 *
 * @example
 * softMarginLoss(tensor([0, 0]), tensor([1, -1])); // 0.6931472
 */
export function softMarginLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  checkNames('softMarginLoss', options, 'reduction');
  return between('softMarginLoss', [prediction, target], (x, y) => {
    return finish('softMarginLoss', softplus(neg(mul(x, y))), options.reduction);
  });
}

/**
 * The distance of a pair that belongs together (target 1), and what it lacks to the margin for one that does not (target -1). Source: PyTorch
 * `hinge_embedding_loss`.
 *
 * @param distance of each pair, for instance an L1 distance
 * @param target -1 and 1, the shape of the distance
 * @param options margin (1), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ
 *
 * @example
 * hingeEmbeddingLoss(tensor([0.5, 0.25]), tensor([1, -1])); // 0.625
 */
export function hingeEmbeddingLoss(distance: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  checkNames('hingeEmbeddingLoss', options, 'reduction margin#');
  return between('hingeEmbeddingLoss', [distance, target], (x, y) => {
    const dissimilar = where(equal(y, 1), 0, relu(sub(given(options.margin ?? 1, x), x)));
    return finish('hingeEmbeddingLoss', add(dissimilar, where(equal(y, -1), 0, x)), options.reduction);
  });
}

/**
 * max(0, margin - target (a - b)): a ranks above b where the target is 1, below where it is -1. Source: PyTorch `margin_ranking_loss`.
 *
 * @param a, b scores of one shape
 * @param target -1 and 1, the same shape
 * @param options margin (0), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ
 *
 * @example
 * marginRankingLoss(tensor([1, 5]), tensor([3, 4]), tensor([1, 1])); // 1
 */
export function marginRankingLoss(a: Tensor, b: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  checkNames('marginRankingLoss', options, 'reduction margin#');
  const op = 'marginRankingLoss';
  return between(op, [a, b, target], (x, y, sign) => {
    return finish(op, relu(sub(given(options.margin ?? 0, x), mul(sign, sub(x, y)))), options.reduction);
  });
}

/** Options of `poissonNllLoss`. */
export interface PoissonNllOptions extends LossOptions {
  /** The prediction is the logarithm of the rate, not the rate. Default true. */
  readonly logInput?: boolean;
  /** With Stirling's approximation of log(target!), for targets above 1. Default false. */
  readonly full?: boolean;
  /** Added to rates before their logarithm is taken: 1e-8. */
  readonly eps?: number;
}

/**
 * Minus the log likelihood of counts under Poisson distributions: exp(x) - target x, or of rates x - target log(x + eps). Source: PyTorch
 * `poisson_nll_loss`.
 *
 * @param prediction logarithms of rates, or rates with `logInput: false`
 * @param target counts, the shape of the prediction
 * @param options logInput (true), full (false), eps (1e-8), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ
 *
 * @example
 * poissonNllLoss(tensor([0]), tensor([2])); // 1
 */
export function poissonNllLoss(prediction: Tensor, target: Tensor, options: PoissonNllOptions = {}): Tensor {
  checkNames('poissonNllLoss', options, 'reduction logInput? full? eps');
  const op = 'poissonNllLoss';
  return between(op, [prediction, target], (x, y) => {
    const eps = given(checkNumber(op, 'eps', options.eps ?? 1e-8, 0), x);
    // What is neither counted nor expected costs nothing. An infinite rate costs all, also beside an infinite logarithm.
    const logs = (options.logInput ?? true) ? x : log(add(x, eps));
    const rate = (options.logInput ?? true) ? exp(x) : x;
    const credit = wrap(weighted(nodeOf(y), nodeOf(logs)));
    const all = Number.POSITIVE_INFINITY;
    const losses = sub(rate, where(logicalAnd(equal(rate, all), equal(credit, all)), 0, credit));
    if (!options.full) return finish(op, losses, options.reduction);
    const many = greater(y, 1);
    const count = where(many, y, 2);
    const stirling = add(sub(mul(count, log(count)), count), mul(log(mul(count, 2 * Math.PI)), 0.5));
    return finish(op, add(losses, where(many, stirling, 0)), options.reduction);
  });
}

// Rows of scores, [N, C] or [C], against classes.

/** Scores and class numbers as nodes [N, C] and [N] or [N, C]; the losses of rows lose the batch axis where there was none. */
function rowsOf(op: string, x: Tensor, target: Tensor, wide: boolean): [scores: Node, classes: Node] {
  const [scores, classes] = [nodeOf(x), nodeOf(target)];
  if (!isInteger(classes.dtype))
    throw new DTypeError(
      op,
      say`target has dtype ${classes.dtype} and shape ${showShape(classes.shape)}: needs class numbers of an integer dtype; scores come first`,
      [classes.dtype],
    );
  const rank = scores.shape.length;
  const expected = wide ? scores.shape : scores.shape.slice(0, -1);
  if ((rank !== 1 && rank !== 2) || !sameShape(classes.shape, expected))
    throw new ShapeError(
      op,
      say`shapes do not fit: scores ${showShape(scores.shape)} and target ${showShape(classes.shape)}; needs [N, C] and ${wide ? '[N, C], or [C] and [C]' : '[N], or [C] and []'}`,
      [scores.shape, classes.shape],
    );
  const count = scores.shape.at(-1)!;
  // Labels end with a negative number.
  checkClasses(op, classes, count, wide ? { least: Number.NEGATIVE_INFINITY } : {});
  const rows = rank === 1 ? 1 : scores.shape[0]!;
  return [p.reshape(scores, [rows, count]), p.reshape(saturated(classes), wide ? [rows, count] : [rows])];
}

/** Options of `multiMarginLoss`. */
export interface MultiMarginOptions extends MarginOptions {
  /** 1 or 2: the power of what is missing to the margin. Default 1. */
  readonly p?: number;
  /** Weight of each class, [C]. */
  readonly weight?: Tensor;
}

/**
 * The sum over the other classes of max(0, margin - own score + other score)^p, divided by the number of classes. Source: Weston and Watkins
 * (1999); PyTorch `multi_margin_loss`.
 *
 * @param prediction scores, [N, C] or [C]
 * @param target class numbers (integers), [N] or []; the loss of others is NaN, or throws where the host knows them
 * @param options p (1 or 2), margin (1), weight [C], reduction
 * @returns one number, or the losses of the rows
 * @throws ShapeError and DTypeError where target and scores do not fit, ArgumentError for other powers
 *
 * @example
 * multiMarginLoss(tensor([[0.5, 1, 0]]), tensor([1], { dtype: 'int32' })); // about 0.1667
 */
export function multiMarginLoss(prediction: Tensor, target: Tensor, options: MultiMarginOptions = {}): Tensor {
  checkNames('multiMarginLoss', options, 'reduction margin# p# weight@');
  const op = 'multiMarginLoss';
  return compose(op, () =>
    inFloat32([wrap(floatOperand(prediction))], (t) => {
      const power = options.p ?? 1;
      if (power !== 1 && power !== 2) throw new ArgumentError(op, say`bad power p: ${power}; must be 1 or 2`);
      const [scores, classes] = rowsOf(op, t, target, false);
      const [rows, count] = scores.shape as [number, number];
      const own = p.eq(p.iota(count), p.reshape(classes, [rows, 1]));
      const zero = p.like(scores, 0);
      const score = p.insertAxes(p.reduce(p.where(own, scores, zero), 'sum', [1]), [1]);
      const lack = relu(add(sub(wrap(scores), wrap(score)), given(options.margin ?? 1, t)));
      const powers = power === 2 ? mul(lack, lack) : lack;
      const parts = p.where(own, zero, nodeOf(powers));
      const { weight } = options;
      if (weight && !sameShape(weight.shape, [count]))
        throw new ShapeError(op, say`weight has shape ${showShape(weight.shape)}: needs [${count}], one per class`, [
          weight.shape,
        ]);
      const total = p.reduce(parts, 'sum', [1]);
      let losses = div(wrap(p.where(isClass(classes, count), total, p.like(total, Number.NaN))), count);
      if (weight) losses = mul(losses, sum(where(wrap(own), weight, 0), 1));
      return finish(op, t.ndim === 1 ? sum(losses) : losses, options.reduction);
    }),
  );
}

/**
 * Every class that is a label shall score by 1 more than every class that is none: what is missing, divided by the number of classes. Source:
 * PyTorch `multilabel_margin_loss`.
 *
 * @param prediction scores, [N, C] or [C]
 * @param target labels (integers) of the same shape: the class numbers of a row up to its first negative number
 * @param options reduction
 * @returns one number, or the losses of the rows
 * @throws ShapeError and DTypeError where target and scores do not fit
 *
 * @example
 * multiLabelMarginLoss(tensor([[0, 1, 0.5]]), tensor([[1, -1, 0]], { dtype: 'int32' })); // about 0.1667
 */
export function multiLabelMarginLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  checkNames('multiLabelMarginLoss', options, 'reduction');
  const op = 'multiLabelMarginLoss';
  return compose(op, () =>
    inFloat32([wrap(floatOperand(prediction))], (t) => {
      const [scores, labels] = rowsOf(op, t, target, true);
      const [rows, count] = scores.shape as [number, number];
      const places = p.iota(count);
      // The first place that ends the labels; those behind it count for nothing.
      const ends = p.where(p.lt(labels, p.constant(0, 'int32')), places, p.constant(count, 'int32'));
      const end = p.neg(p.reduce(p.neg(ends), 'max', [1]));
      const counts = p.lt(places, p.reshape(end, [rows, 1]));
      // [N, label, class]: whether that label is the class.
      const is = p.binary(
        'and',
        p.reshape(counts, [rows, count, 1]),
        p.eq(p.reshape(labels, [rows, count, 1]), places),
      );
      const zero = p.like(scores, 0);
      const each = p.broadcastTo(p.reshape(scores, [rows, 1, count]), [rows, count, count]);
      const named = p.binary('and', counts, p.lt(labels, p.constant(count, 'int32')));
      const own = p.insertAxes(p.where(named, alongAxis(scores, safeIndex(op, labels, count), 1), zero), [2]);
      const labelled = p.insertAxes(p.reduce(p.cast(is, 'int32'), 'max', [1]), [1]);
      const compared = p.binary('and', p.reshape(counts, [rows, count, 1]), p.eq(labelled, p.constant(0, 'int32')));
      const lack = relu(add(sub(wrap(each), wrap(own)), 1));
      const total = p.reduce(p.where(compared, nodeOf(lack), zero), 'sum', [1, 2]);
      const beyond = p.binary('and', counts, p.le(p.constant(count, 'int32'), labels));
      const known = p.eq(p.reduce(p.cast(beyond, 'int32'), 'max', [1]), p.constant(0, 'int32'));
      const losses = div(wrap(p.where(known, total, p.like(total, Number.NaN))), count);
      return finish(op, t.ndim === 1 ? sum(losses) : losses, options.reduction);
    }),
  );
}

/**
 * The mean over the classes of binaryCrossEntropyWithLogits, for rows that may have several labels. Source: PyTorch
 * `multilabel_soft_margin_loss`.
 *
 * @param logits [..., C]
 * @param target 0 and 1, or probabilities, the same shape
 * @param options weight (broadcasts), reduction
 * @returns one number, or the losses of the rows, [...], of the common dtype; integers become float32
 * @throws ShapeError where shapes differ
 *
 * @example
 * multiLabelSoftMarginLoss(tensor([[0, 0]]), tensor([[1, 0]])); // 0.6931472
 */
export function multiLabelSoftMarginLoss(
  logits: Tensor,
  target: Tensor,
  options: LossOptions & { readonly weight?: Tensor } = {},
): Tensor {
  checkNames('multiLabelSoftMarginLoss', options, 'reduction weight@');
  const op = 'multiLabelSoftMarginLoss';
  return between(op, [logits, target], (x, y) => {
    if (x.ndim === 0) throw new ShapeError(op, 'predictions are a scalar; need an axis of classes', [[]]);
    const losses = logitLoss(x, y);
    const each = options.weight ? mul(losses, options.weight) : losses;
    return finish(op, div(sum(each, -1), Math.max(1, x.shape.at(-1)!)), options.reduction);
  });
}

// Losses against classes of very different sizes.

/** Options of `focalLoss`. */
export interface FocalOptions extends LossOptions {
  /** Weight of positive targets; negative ones have 1 minus it. Null for none. Default 0.25. */
  readonly alpha?: number | null;
  /** How much less what is right already counts; 0 is cross entropy. Default 2. */
  readonly gamma?: number;
}

/**
 * Binary cross entropy of logits times (1 - probability of the target)^gamma, so that easy elements count less. Source: Lin et al., "Focal loss
 * for dense object detection" (2017); torchvision `sigmoid_focal_loss`, whose reduction is 'none' unless given.
 *
 * @param logits scores
 * @param target 0 and 1, the shape of the logits
 * @param options alpha (0.25, null for none), gamma (2), reduction
 * @returns of the common dtype; integers become float32
 * @throws ShapeError where shapes differ, ArgumentError for negative gamma and alpha out of 0 .. 1
 *
 * @example
 * focalLoss(tensor([0]), tensor([1])); // about 0.04332
 */
export function focalLoss(logits: Tensor, target: Tensor, options: FocalOptions = {}): Tensor {
  checkNames('focalLoss', options, 'reduction alpha gamma#');
  const op = 'focalLoss';
  return between(op, [logits, target], (x, y) => {
    const { alpha = 0.25 } = options;
    const gamma = checkNumber(op, 'gamma', options.gamma ?? 2, 0);
    if (alpha !== null && !(typeof alpha === 'number' && alpha >= 0 && alpha <= 1))
      throw new ArgumentError(op, say`bad alpha: ${shown(alpha)}; must be from 0 to 1, or null for no weights`);
    const other = sub(1, y);
    const losses = logitLoss(x, y);
    const wrong = add(mul(sigmoid(x), other), mul(sigmoid(neg(x)), y));
    const focused = gamma === 0 ? losses : mul(losses, gamma === 2 ? mul(wrong, wrong) : pow(wrong, given(gamma, x)));
    if (alpha === null) return finish(op, focused, options.reduction);
    const weight = given(alpha, x);
    return finish(op, mul(focused, add(mul(weight, y), mul(sub(1, weight), other))), options.reduction);
  });
}

/** Options of `diceLoss`. */
export interface DiceOptions extends LossOptions {
  /** Added to numerator and denominator, so that nothing against nothing has no loss. Default 1. */
  readonly smooth?: number;
}

/**
 * 1 minus twice the overlap of prediction and target over the sum of both, for each element of the batch. Source: Milletari et al., "V-Net"
 * (2016), with sums in the place of sums of squares as in Sudre et al. (2017).
 *
 * @param prediction probabilities, [N, ...]: all axes but the first are summed over
 * @param target 0 and 1, or probabilities, the same shape
 * @param options smooth (1), reduction
 * @returns one number, or the losses [N], of the common dtype; integers become float32
 * @throws ShapeError where shapes differ or have no axis, ArgumentError for negative smooth
 *
 * @example
 * diceLoss(tensor([[1, 0, 1]]), tensor([[1, 0, 0]])); // 0.25
 */
export function diceLoss(prediction: Tensor, target: Tensor, options: DiceOptions = {}): Tensor {
  checkNames('diceLoss', options, 'reduction smooth');
  const op = 'diceLoss';
  return between(op, [prediction, target], (x, y) => {
    if (x.ndim === 0) throw new ShapeError(op, 'predictions are a scalar; need a batch axis', [[]]);
    const smooth = given(checkNumber(op, 'smooth', options.smooth ?? 1, 0), x);
    const total = (t: Tensor): Tensor => (t.ndim === 1 ? t : sum(flatten(t, { start: 1 }), 1));
    const overlap = add(mul(total(mul(x, y)), 2), smooth);
    return finish(op, sub(1, div(overlap, add(total(add(x, y)), smooth))), options.reduction);
  });
}
