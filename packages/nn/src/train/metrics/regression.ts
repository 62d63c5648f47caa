/** Metrics of predicted numbers. */
import {
  abs,
  cast,
  mean,
  onesLike,
  reshape,
  slice,
  square,
  stack,
  sub,
  sum,
  type Tensor,
  where,
  greater,
  zeros,
} from '@polygrad/core/functions';
import { NnError } from '../../errors.ts';
import type { Metric } from '../meter.ts';
import type { SummedMetric } from './summed.ts';

/** Elements of predictions and targets, flat, if there are as many. */
function pairs(op: string, prediction: Tensor, target: Tensor): [Tensor, Tensor] {
  const size = (shape: readonly number[]): number => shape.reduce((all, n) => all * n, 1);
  if (size(prediction.shape) !== size(target.shape) || prediction.shape[0] !== target.shape[0]) {
    const text = `predictions [${prediction.shape}] do not fit targets [${target.shape}]; must be of one shape`;
    throw new NnError(op, text);
  }
  return [cast(prediction, 'float32'), reshape(cast(target, 'float32'), prediction.shape as number[])];
}

/** The mean over all axes but the first. */
function perRow(x: Tensor): Tensor {
  return x.shape.length < 2 ? x : mean(reshape(x, [x.shape[0]!, -1]), { axis: 1 });
}

/**
 * How far predictions are off, in the unit of the targets: |prediction - target|, for each row the mean of its elements.
 *
 * @example
 * meanAbsoluteError(tensor([1, 5]), tensor([2, 2])); // [1, 3]
 */
export const meanAbsoluteError: Metric = (prediction, target) => {
  const [x, y] = pairs('meanAbsoluteError', prediction, target);
  return perRow(abs(sub(x, y)));
};

/**
 * The square of how far predictions are off, for each row the mean of its elements.
 *
 * @example
 * meanSquaredError(tensor([1, 5]), tensor([2, 2])); // [1, 9]
 */
export const meanSquaredError: Metric = (prediction, target) => {
  const [x, y] = pairs('meanSquaredError', prediction, target);
  return perRow(square(sub(x, y)));
};

/**
 * Coefficient of determination of all batches: 1 - (sum of squared errors) / (sum of squared distances of the targets from their mean).
 * 1 is perfect, 0 as good as always predicting the mean. NaN if all targets are equal and met, -Infinity if they are equal and missed.
 *
 * The mean may be large against the spread: squares around the mean of each batch are merged, never squares of the targets themselves.
 * Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
 *
 * @returns a metric for `fit`, `evaluate` and `Tally`; predictions and targets of one shape
 * @throws NnError, later, for predictions that do not fit the targets
 * @example
 * const tally = new Tally(r2Score());
 * tally.add(tensor([2.5, 0, 2, 8]), tensor([3, -0.5, 2, 7]));
 * await tally.read(); // 0.9486081600189209
 */
export function r2Score(): SummedMetric {
  /** Count, mean, squares around the mean, squared errors. */
  const part = (x: Tensor, i: number): Tensor => slice(x, [i]);
  return {
    shape: [4],
    sums: (prediction, target) => {
      const [x, y] = pairs('r2Score', prediction, target);
      const centre = mean(y);
      return stack([sum(onesLike(y)), centre, sum(square(sub(y, centre))), sum(square(sub(x, y)))]);
    },
    merge: (total, batch) => {
      const [n, m] = [part(total, 0), part(batch, 0)];
      const all = n.add(m);
      // An empty batch leaves all as it is.
      const share = where(greater(all, 0), m.div(all), zeros([]));
      const apart = sub(part(batch, 1), part(total, 1));
      const squares = part(total, 2).add(part(batch, 2)).add(square(apart).mul(n).mul(share));
      return stack([all, part(total, 1).add(apart.mul(share)), squares, part(total, 3).add(part(batch, 3))]);
    },
    value: ([, , spread, errors]) => 1 - errors! / spread!,
  };
}
