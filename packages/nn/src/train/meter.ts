/**
 * Meters: sums over batches that stay on the device until they are read, so that following a loss costs no wait.
 * And metrics: what can be measured besides the loss.
 */
import {
  argMax,
  cast,
  detach,
  equal,
  hostEffect,
  isTensor,
  keep,
  noGrad,
  sum,
  type Tensor,
} from '@polygrad/core/functions';
import { checkFits, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { isSummed, mergeInto, noneOf, type SummedMetric } from './metrics/summed.ts';

/** A score for every row of a batch: any tensor whose sum over the rows is the sum of scores. */
export type Metric = (prediction: Tensor, target: Tensor) => Tensor;

/** Metrics by the name they are reported under: scores for rows, or what is counted over all batches. */
export type Metrics = Readonly<Record<string, Metric | SummedMetric>>;

/**
 * 1 where the largest of the predictions [rows, classes] is the target class [rows], else 0: float32 [rows].
 *
 * @throws NnError for targets that are no integers
 * @example
 * accuracy(tensor([[1, 0], [0, 1]]), tensor([0, 0], { dtype: 'int32' })); // [1, 0]
 */
export const accuracy: Metric = (prediction: Tensor, target: Tensor): Tensor => {
  if (isTensor(target) && target.dtype.includes('float'))
    throw new NnError('accuracy', `targets are ${String(target)}; give class numbers, cast() or argMax() makes them`);
  if (isTensor(prediction) && prediction.ndim < 2)
    throw new NnError('accuracy', `predictions are ${String(prediction)}; give [rows, classes]`);
  return cast(equal(argMax(prediction, { axis: 1 }), target), 'float32');
};

/** What a metric gives for one batch. */
export function scoresOf(metric: Metric | SummedMetric, prediction: Tensor, target: Tensor): Tensor {
  return typeof metric === 'function' ? metric(prediction, target) : metric.sums(prediction, target);
}

/** Throws unless metrics are functions, or counted ones, by name. */
export function checkMetrics(op: string, metrics: Metrics): void {
  const byName = typeof metrics === 'object' && metrics !== null && !Array.isArray(metrics);
  checkFits(op, 'metrics', metrics, byName, 'an object of functions by name, such as { accuracy }');
  for (const [name, metric] of Object.entries(metrics))
    checkFits(
      op,
      `metric '${name}'`,
      metric,
      typeof metric === 'function' || isSummed(metric),
      'a function or a SummedMetric',
    );
}

/**
 * Sums of named values over batches, and the rows they are of.
 *
 * @example
 * const meter = new Meter(['loss']);
 * meter.add([tensor(6)], 2);
 * meter.add([tensor(3)], 1);
 * await meter.read(); // { loss: 3 }
 */
export class Meter {
  readonly #names: readonly string[];
  readonly #summed: readonly (SummedMetric | undefined)[];
  readonly #totals: readonly Tensor[];
  #rows = 0;
  #batches = 0;

  /** `metrics` may have counted ones among the names; what is added under such a name are its sums of the batch. */
  constructor(names: readonly string[], metrics: Metrics = {}) {
    this.#names = names;
    this.#summed = names.map((name) => {
      const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
      return isSummed(metric) ? metric : undefined;
    });
    this.#totals = this.#summed.map((metric) => (metric === undefined ? keep(filled([], 0)) : noneOf(metric)));
  }

  /** Rows added since the last reset. */
  get rows(): number {
    return this.#rows;
  }

  /** Batches added since the last reset. */
  get batches(): number {
    return this.#batches;
  }

  /** Adds one batch: sums over its `rows` rows, in the order of the names. Recorded, not computed. */
  add(sums: readonly Tensor[], rows: number): void {
    noGrad(() => {
      for (const [index, value] of sums.entries()) {
        const total = this.#totals[index]!;
        const metric = this.#summed[index];
        if (metric === undefined) total.assign(total.add(sum(detach(value))));
        else mergeInto(total, metric, value);
      }
    });
    const count = (by: 1 | -1): void => {
      this.#rows += by * rows;
      this.#batches += by;
    };
    hostEffect(
      () => count(1),
      () => count(-1),
    );
  }

  /** The means per row, and what counted metrics say. Waits for everything that was added. */
  async read(): Promise<Record<string, number>> {
    const found: Record<string, number> = {};
    const values = await Promise.all(this.#totals.map((total) => total.data()));
    for (const [index, name] of this.#names.entries()) {
      const numbers = Array.from(values[index]!, Number);
      found[name] = this.#summed[index]?.value(numbers) ?? numbers[0]! / this.#rows;
    }
    return found;
  }

  /** Starts from zero again. */
  reset(): void {
    for (const total of this.#totals) {
      const zero = filled(total.shape, 0, total.dtype);
      total.assign(zero);
      zero.dispose();
    }
    this.#rows = 0;
    this.#batches = 0;
  }

  dispose(): void {
    for (const total of this.#totals) total.dispose();
  }
}
