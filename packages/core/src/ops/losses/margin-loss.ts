/** Losses that are satisfied by a margin: hinge, cosine embedding, triplets. `reduction` as in loss.ts. */
import { sameShape } from '../../shape/broadcast.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames, shown } from '../../shape/options.ts';
import { nodeOf } from '../../tensor/handle.ts';
import { given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, div, minimum, mul, sub } from '../elementwise/arithmetic.ts';
import { relu } from '../elementwise/piecewise.ts';
import { sqrt } from '../elementwise/exponential.ts';
import { greater } from '../elementwise/logic.ts';
import { where } from '../elementwise/where.ts';
import type { LossOptions } from './loss.ts';
import { between, checkNumber, finish, pair } from './loss-forms.ts';
import { sum } from '../reduction/reduction.ts';
import { norm } from '../reduction/statistics.ts';
import { say } from '../../shape/shown.ts';

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
 * @throws ShapeError where shapes differ
 *
 * @example
 * hingeLoss(tensor([0.5, 3]), tensor([1, 1])); // 0.25
 */
export function hingeLoss(prediction: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  checkNames('hingeLoss', options, 'reduction margin#');
  return between('hingeLoss', prediction, target, (x, y) => {
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
 * @throws ShapeError where shapes do not fit
 *
 * @example
 * cosineEmbeddingLoss(tensor([[1, 0]]), tensor([[3, 4]]), tensor([1])); // 0.4
 */
export function cosineEmbeddingLoss(a: Tensor, b: Tensor, target: Tensor, options: MarginOptions = {}): Tensor {
  checkNames('cosineEmbeddingLoss', options, 'reduction margin#');
  return between('cosineEmbeddingLoss', a, b, (x, y) => {
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
    const apart = relu(sub(cosine, given(options.margin ?? 0, x)));
    return finish(op, where(greater(target, 0), sub(1, cosine), apart), options.reduction);
  });
}

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
  return between(op, anchor, positive, (a, near) => {
    const far = pair(op, a, negative)[1];
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
