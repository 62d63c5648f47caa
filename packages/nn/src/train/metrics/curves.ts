/** Metrics of how scores order the rows, and of how surprised a model is. */
import {
  cast,
  clip,
  crossEntropy,
  equal,
  floor,
  greaterEqual,
  lessEqual,
  logicalAnd,
  notEqual,
  reshape,
  scatterAdd,
  select,
  sigmoid,
  stack,
  sum,
  type Tensor,
  where,
  zeros,
} from '@polygrad/core/functions';
import { checkInteger, checkOptions, NnError } from '../../errors.ts';
import type { SummedMetric } from './summed.ts';

/** Options of `auc`. */
export interface AucOptions {
  /** Scores are counted in so many bins. Pairs of rows whose scores share a bin count as equal. Default 1000. */
  readonly bins?: number;
  /** Scores are logits: their sigmoid is taken. Default false. */
  readonly logits?: boolean;
}

/**
 * Area under the receiver operating characteristic. It is the probability that a row of class 1 has a greater score than one of class 0, equal ones
 * counted half. Counted over all batches in bins of scores, so it is off by at most half the share of pairs within a bin.
 *
 * Source: Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve", 1982.
 *
 * @param options bins (1000), logits (false)
 * @returns a metric; predictions are scores from 0 to 1 of the shape of the targets, or [rows, 1], or the scores of both classes, [rows, 2]. NaN if a class has no row
 * @throws NnError for options that do not fit; later for predictions that do not fit the targets; and for scores outside when it is read
 * @example
 * const tally = new Tally(auc());
 * tally.add(tensor([0.1, 0.4, 0.35, 0.8]), tensor([0, 0, 1, 1], { dtype: 'int32' }));
 * await tally.read(); // 0.75
 */
export function auc(options: AucOptions = {}): SummedMetric {
  checkOptions('auc', options, 'bins# logits?');
  const { bins = 1000, logits = false } = options;
  checkInteger('auc', 'bins', bins, 2, 2 ** 20);
  return {
    // Counts of class 0 by bin, those of class 1, and scores that fit in no bin.
    shape: [2 * bins + 1],
    dtype: 'int32',
    sums: (prediction, target) => {
      const size = (shape: readonly number[]): number => shape.reduce((all, n) => all * n, 1);
      const isBoth = prediction.shape.at(-1) === 2 && size(prediction.shape) === 2 * size(target.shape);
      if (!isBoth && size(prediction.shape) !== size(target.shape)) {
        const text = `predictions [${prediction.shape}] do not fit targets [${target.shape}]; must be one score for each target, or two`;
        throw new NnError('auc', text);
      }
      // Of two logits only the difference counts.
      const last = (at: number): Tensor => reshape(select(prediction, -1, at), [-1]);
      const given = !isBoth ? reshape(prediction, [-1]) : logits ? last(1).sub(last(0)) : last(1);
      const score = logits ? sigmoid(given) : given;
      const isPositive = reshape(notEqual(target, 0), [-1]);
      const bin = clip(floor(score.mul(bins)), 0, bins - 1);
      const fits = logicalAnd(greaterEqual(score, 0), lessEqual(score, 1));
      const place = cast(where(fits, bin, zeros(score.shape)), 'int32').add(cast(isPositive, 'int32').mul(bins));
      const at = where(fits, place, zeros(score.shape, { dtype: 'int32' }).add(2 * bins));
      return scatterAdd(zeros([2 * bins + 1], { dtype: 'int32' }), at, cast(equal(at, at), 'int32'), 0);
    },
    value: (total) => {
      const [none, positive] = [total.slice(0, bins), total.slice(bins, 2 * bins)];
      const all = (counts: readonly number[]): number => counts.reduce((sum, n) => sum + n, 0);
      const outside = total[2 * bins]!;
      if (outside > 0) {
        const text = `${outside} of ${all(total)} scores are not from 0 to 1; pass { logits: true } for logits`;
        throw new NnError('auc', text, ['logits']);
      }
      let below = 0;
      let ordered = 0;
      for (const [i, n] of positive.entries()) {
        ordered += n * (below + none[i]! / 2);
        below += none[i]!;
      }
      return ordered / (all(none) * all(positive));
    },
  };
}

/** Options of `perplexity`. */
export interface PerplexityOptions {
  /** A target that does not count. */
  readonly ignoreIndex?: number;
}

/**
 * Perplexity: e to the mean cross-entropy of all targets that count, whatever the batches they came in.
 *
 * @param options ignoreIndex
 * @returns a metric; predictions are logits [rows, classes, ...], targets class numbers [rows, ...]. NaN if no target counts
 * @throws NnError for options that do not fit
 * @example
 * const tally = new Tally(perplexity());
 * tally.add(tensor([[0, 0, 0, 0]]), tensor([2], { dtype: 'int32' }));
 * await tally.read(); // 4
 */
export function perplexity(options: PerplexityOptions = {}): SummedMetric {
  checkOptions('perplexity', options, 'ignoreIndex#');
  const { ignoreIndex } = options;
  if (ignoreIndex !== undefined) checkInteger('perplexity', 'ignoreIndex', ignoreIndex, Number.MIN_SAFE_INTEGER);
  return {
    shape: [2],
    sums: (prediction, target) => {
      const counted = ignoreIndex === undefined ? equal(target, target) : notEqual(target, ignoreIndex);
      const loss = crossEntropy(prediction, target, {
        reduction: 'sum',
        ...(ignoreIndex === undefined ? {} : { ignoreIndex }),
      });
      return stack([cast(loss, 'float32'), sum(cast(counted, 'float32'))]);
    },
    value: ([loss, count]) => Math.exp(loss! / count!),
  };
}
