/**
 * Batches: rows of a data set in the order of an epoch, so many at a time, the next ones made ready ahead of need.
 *
 * The order of epoch `n` depends on the seed and on `n` alone. Batches are host arrays; putting them on a device is
 * the training loop's business.
 */
import { type Batch, checkRows, type RowSource } from './columns.ts';
import { checkInteger, checkOptions } from './errors.ts';
import { shuffledIndices } from './random.ts';

/** Options of `batches`. */
export interface BatchOptions {
  /** Rows in a batch. */
  readonly batchSize: number;
  /** A new order each epoch (default false: the rows' own order). */
  readonly shuffle?: boolean;
  /** Determines the order of every epoch (default 0). */
  readonly seed?: number;
  /** Leave out a last batch that has fewer rows (default false). */
  readonly dropLast?: boolean;
  /** Batches to make ready ahead of the one asked for (default 1; 0 makes each when it is asked for). */
  readonly prefetch?: number;
  /**
   * Fill the arrays of a batch again once the next one is asked for (default false). Saves the allocation of every
   * batch; for loops that copy a batch to a device and are done with it.
   */
  readonly reuse?: boolean;
}

/** An endless supply of epochs. Iterating it gives epoch 0, iterating it again epoch 1, and so on. */
export interface Batches<Names extends string = string> extends AsyncIterable<Batch<Names>> {
  /** Batches in one epoch. */
  readonly length: number;
  /** Rows in one epoch. */
  readonly rows: number;
  readonly batchSize: number;
  /** The batches of one epoch by its number, without counting it as iterated. */
  epoch(number: number): AsyncIterableIterator<Batch<Names>>;
}

class EpochIterator<Names extends string> implements AsyncIterableIterator<Batch<Names>> {
  readonly #dataset: RowSource<Names>;
  readonly #order: Uint32Array;
  readonly #batchSize: number;
  readonly #rows: number;
  readonly #prefetch: number;
  readonly #reuse: boolean;
  #next = 0;
  #ready: Promise<Batch<Names>>[] = [];
  /** The batch that was asked for last, and those before it that may be filled again. */
  #given: Batch<Names> | undefined;
  #spare: Batch<Names>[] = [];

  constructor(dataset: RowSource<Names>, order: Uint32Array, rows: number, options: Required<BatchOptions>) {
    this.#dataset = dataset;
    this.#order = order;
    this.#rows = rows;
    this.#batchSize = options.batchSize;
    this.#prefetch = options.prefetch;
    this.#reuse = options.reuse;
  }

  /** Starts as many batches as may wait. A failure waits in its promise until its batch is asked for. */
  #fill(): void {
    while (this.#next < this.#rows && this.#ready.length <= this.#prefetch) {
      const start = this.#next;
      const end = Math.min(start + this.#batchSize, this.#rows);
      this.#next = end;
      const spare = this.#spare.pop();
      const batch = (async () => this.#dataset.gather(this.#order, start, end, spare))();
      batch.catch(() => {});
      this.#ready.push(batch);
    }
  }

  async next(): Promise<IteratorResult<Batch<Names>, undefined>> {
    if (this.#given !== undefined) this.#spare.push(this.#given);
    this.#given = undefined;
    this.#fill();
    const batch = this.#ready.shift();
    if (batch === undefined) return { done: true, value: undefined };
    try {
      const value = await batch;
      if (this.#reuse) this.#given = value;
      return { done: false, value };
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Batch<Names>, undefined>> {
    this.#next = this.#rows;
    this.#ready = [];
    this.#spare = [];
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const optionTypes = {
  batchSize: 'number',
  shuffle: 'boolean',
  seed: 'number',
  dropLast: 'boolean',
  prefetch: 'number',
  reuse: 'boolean',
} as const;

/**
 * Cuts a data set into batches, shuffled anew each epoch if asked.
 *
 * @param dataset rows to take
 * @param options see `BatchOptions`
 * @returns an async iterable; the last batch of an epoch has the rows that are left, unless `dropLast`
 * @throws DataError `argument` for sizes that are not positive integers
 * @example
 * const x = { dtype: 'float32', shape: [5, 2], data: new Float32Array(10) } as const;
 * const loader = batches(memoryDataset({ x: { array: x } }), { batchSize: 4, shuffle: true, seed: 1 });
 * loader.length; // 2
 * for await (const batch of loader) console.log(batch.x.shape); //=> [ 4, 2 ]
 */
export function batches<Names extends string>(dataset: RowSource<Names>, options: BatchOptions): Batches<Names> {
  checkOptions('batches', options, optionTypes);
  const { batchSize, shuffle = false, seed = 0, dropLast = false, prefetch = 1, reuse = false } = options;
  const settings = { batchSize, shuffle, seed, dropLast, prefetch, reuse };
  checkRows('batches', dataset);
  checkInteger('batches', 'batchSize', batchSize, 1);
  checkInteger('batches', 'seed', seed, 0);
  checkInteger('batches', 'prefetch', prefetch, 0);
  const rows = dropLast ? dataset.size - (dataset.size % batchSize) : dataset.size;
  let straight: Uint32Array | undefined;
  let iterated = 0;
  const ownOrder = (): Uint32Array => new Uint32Array(dataset.size).map((_, row) => row);
  const epoch = (number: number): AsyncIterableIterator<Batch<Names>> => {
    checkInteger('batches', 'epoch', number, 0);
    const order = shuffle ? shuffledIndices(dataset.size, seed, number) : (straight ??= ownOrder());
    return new EpochIterator(dataset, order, rows, settings);
  };
  return {
    length: Math.ceil(rows / batchSize),
    rows,
    batchSize,
    epoch,
    [Symbol.asyncIterator]: () => epoch(iterated++),
  };
}
