/** Metrics that are no mean over rows: counts or sums of all batches, kept on the device, and the number that they give in the end. */
import { type DType, detach, hostEffect, keep, noGrad, type Tensor } from '@polygrad/core/functions';
import { checkFits, checkTensor, NnError } from '../../errors.ts';
import { filled } from '../../init/filled.ts';

/**
 * A metric of all batches together, such as the F1 score: what each batch adds, and what the total says.
 *
 * @example
 * const largest: SummedMetric = {
 *   shape: [],
 *   sums: (prediction, target) => max(abs(sub(prediction, target))),
 *   merge: (total, batch) => maximum(total, batch),
 *   value: ([total]) => total!,
 * };
 */
export interface SummedMetric<Value = number> {
  /** Shape of the sums. */
  readonly shape: readonly number[];
  /** Dtype of the sums; default float32. Counts in int32 are exact up to 2^31. */
  readonly dtype?: DType;
  /** The sums of one batch, of that shape and dtype. Recorded, not read. */
  sums(prediction: Tensor, target: Tensor): Tensor;
  /** The total with one more batch; default is their sum. The first total is all zeros. */
  merge?(total: Tensor, batch: Tensor): Tensor;
  /** What the total says, from its elements in row-major order. */
  value(total: readonly number[]): Value;
}

/** Whether a metric is counted over all batches instead of a score for each row. */
export function isSummed(metric: unknown): metric is SummedMetric {
  const m = metric as Partial<SummedMetric> | null;
  return (
    typeof m === 'object' &&
    m !== null &&
    Array.isArray(m.shape) &&
    typeof m.sums === 'function' &&
    typeof m.value === 'function'
  );
}

/** The total of a metric before the first batch, in memory. */
export function noneOf({ shape, dtype }: SummedMetric<unknown>): Tensor {
  return keep(filled(shape, 0, dtype));
}

/** Adds a batch to a total in place. */
export function mergeInto(total: Tensor, metric: SummedMetric<unknown>, batch: Tensor): void {
  const found = detach(batch);
  total.assign(metric.merge === undefined ? total.add(found) : metric.merge(total, found));
}

/**
 * A metric accumulated over batches outside of `fit` and `evaluate`. Totals stay on the device until they are read.
 *
 * @example
 * const matrix = new Tally(confusionMatrix({ classes: 2 }));
 * matrix.add(tensor([0.9, 0.2]), tensor([1, 1], { dtype: 'int32' }));
 * matrix.add(tensor([0.1]), tensor([0], { dtype: 'int32' }));
 * await matrix.read(); // [[1, 0], [1, 1]]
 */
export class Tally<Value = number> {
  readonly #metric: SummedMetric<Value>;
  readonly #total: Tensor;
  #batches = 0;

  constructor(metric: SummedMetric<Value>) {
    checkFits('Tally', 'metric', metric, isSummed(metric), 'a SummedMetric, as confusionMatrix(...) gives one');
    this.#metric = metric;
    this.#total = noneOf(metric);
  }

  /** Batches added since the last reset. */
  get batches(): number {
    return this.#batches;
  }

  /** Adds one batch. Recorded, not computed. */
  add(prediction: Tensor, target: Tensor): void {
    checkTensor('Tally.add', 'prediction', prediction);
    checkTensor('Tally.add', 'target', target);
    noGrad(() => mergeInto(this.#total, this.#metric, this.#metric.sums(prediction, target)));
    hostEffect(
      () => void this.#batches++,
      () => void this.#batches--,
    );
  }

  /** The metric of everything that was added; waits for it. */
  async read(): Promise<Value> {
    if (this.#batches === 0)
      throw new NnError('Tally.read', 'nothing was added yet; call add(prediction, target) first');
    return this.#metric.value(Array.from(await this.#total.data(), Number));
  }

  /** Starts from zero again. */
  reset(): void {
    const zeros = filled(this.#metric.shape, 0, this.#metric.dtype);
    this.#total.assign(zeros);
    zeros.dispose();
    this.#batches = 0;
  }

  dispose(): void {
    this.#total.dispose();
  }
}
