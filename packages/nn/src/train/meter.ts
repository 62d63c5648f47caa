/**
 * Meters: sums over batches that stay on the device until they are read, so that following a loss costs no wait.
 * And metrics: what can be measured besides the loss.
 */
import { argMax, cast, detach, equal, isRehearsing, keep, noGrad, sum, type Tensor } from '@polygrad/core/functions';
import { checkFits, checkFunction } from '../errors.ts';
import { filled } from '../init/filled.ts';

/** A score for every row of a batch: any tensor whose sum over the rows is the sum of scores. */
export type Metric = (prediction: Tensor, target: Tensor) => Tensor;

/** Metrics by the name they are reported under. */
export type Metrics = Readonly<Record<string, Metric>>;

/**
 * 1 where the largest of the predictions [rows, classes] is the target class [rows], else 0.
 *
 * @example
 * accuracy(tensor([[1, 0], [0, 1]]), tensor([0, 0], { dtype: 'int32' })); // [1, 0]
 */
export const accuracy: Metric = (prediction: Tensor, target: Tensor): Tensor =>
  cast(equal(argMax(prediction, { axis: 1 }), target), 'float32');

/** Throws unless metrics are functions by name. */
export function checkMetrics(op: string, metrics: Metrics): void {
  checkFits(op, 'metrics', metrics, typeof metrics === 'object' && metrics !== null, 'an object of functions by name');
  for (const [name, metric] of Object.entries(metrics)) checkFunction(op, `metric '${name}'`, metric);
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
  readonly #totals: readonly Tensor[];
  #rows = 0;
  #batches = 0;

  constructor(names: readonly string[]) {
    this.#names = names;
    this.#totals = names.map(() => keep(filled([], 0)));
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
        total.assign(total.add(sum(detach(value))));
      }
    });
    if (isRehearsing()) return;
    this.#rows += rows;
    this.#batches++;
  }

  /** The means per row. Waits for everything that was added. */
  async read(): Promise<Record<string, number>> {
    const found: Record<string, number> = {};
    const values = await Promise.all(this.#totals.map((total) => total.item()));
    for (const [index, name] of this.#names.entries()) found[name] = values[index]! / this.#rows;
    return found;
  }

  /** Starts from zero again. */
  reset(): void {
    for (const total of this.#totals) {
      const zero = filled([], 0);
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
