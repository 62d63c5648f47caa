/**
 * Dataset: items that can be passed over again and again, each epoch by its number. Methods say what is done with them on the way to a training.
 *
 * Nothing is read before an epoch is iterated. What an epoch gives depends on the sources, the seeds and the epoch's number alone. So a training that
 * goes on at epoch `n` sees what it would have seen.
 */
import type { HostArray } from '../arrays.ts';
import type { RowSource } from '../columns.ts';
import { checkFits, checkFunction, checkInteger, checkOptions, DataError, mostRows, isList } from '../errors.ts';
import { RandomStream, shuffledIndices } from '../random.ts';
import { aheadOf } from './ahead.ts';
import { type Batched, checkCollate, type CollateOptions, collate } from './collate.ts';
import { type Indexed, itemsOf, type Plan, reordered, several } from './pass.ts';
import { type DatasetSource, type Iterated, planOf } from './source.ts';
import { between, bucketed, filtered, grouped, repeated, shuffledThrough, together } from './stages.ts';
import { foldsOf, partsOf } from './parts.ts';

/** Options of `map` of a data set. */
export interface MapOptions {
  /** Items whose functions run side by side; they stay in order (default 1). For functions that wait: files, workers. */
  readonly concurrency?: number;
}

/** Options of `shuffle` of a data set. */
export interface ShuffleOptions {
  /** Determines the order of every epoch (default 0). */
  readonly seed?: number;
  /** Items to draw from, where a data set does not know its items by number: streams, and what was filtered. */
  readonly buffer?: number;
  /** Another order in each epoch (default true). */
  readonly eachEpoch?: boolean;
}

/** Options of `batch` of a data set. */
export interface BatchRowsOptions extends CollateOptions {
  /** Leave out a last batch that has fewer rows (default false). */
  readonly dropLast?: boolean;
}

/** Options of `bucket` of a data set. */
export interface BucketOptions<T> extends BatchRowsOptions {
  /** The length of an item. */
  readonly length: (item: T) => number;
  /** Where buckets end, ascending: lengths below the first, below the second, ... and those from the last on. */
  readonly boundaries: readonly number[];
  /** Rows in a batch; or for each bucket, one more than there are boundaries. */
  readonly batchSize: number | readonly number[];
}

/** Options of `split` of a data set or table. */
export interface SplitOptions {
  /** Items are dealt out in a random order that the seed determines; without a seed in their own order. */
  readonly seed?: number;
  /** The class of every item, so that each part has as many of each as its share says. */
  readonly stratify?: ArrayLike<number | string>;
}

/** One way to divide a data set: all folds but one, and that one. */
export interface DataFold<T> {
  readonly train: Dataset<T>;
  readonly validation: Dataset<T>;
}

/** Epochs that the passes of an endless `repeat` may be of, before they would meet those of the next epoch. */
const endlessPasses = 2 ** 24;

const mostAhead = 2 ** 16;

/**
 * Items for a training, made as they are asked for. `fit` of `@polygrad/nn` takes a data set of batches with `x` and `y`. `for await` gives epoch 0
 * the first time, then epoch 1, and so on.
 *
 * @example
 * const rows = Dataset.from([[1, 2], [3, 4], [5, 6]]).map(([x, y]) => ({ x: [x!], y: [y!] }));
 * const data = rows.shuffle({ seed: 1 }).batch(2);
 * data.length; // 2
 * (await data.map(({ x }) => x.shape.join()).toArray()).join(' '); // '2,1 1,1'
 */
export class Dataset<T> implements AsyncIterable<T> {
  readonly #plan: Plan<T>;
  #iterated = 0;

  private constructor(plan: Plan<T>) {
    // Programs in JavaScript can call it.
    checkFits(
      'Dataset',
      'plan',
      plan,
      typeof (plan?.indexed ?? plan?.items) === 'function',
      'made by Dataset.from(rows), without new',
    );
    this.#plan = plan;
  }

  /**
   * A data set over a list, rows of columns (`memoryDataset`, MNIST), anything iterable, a stream, or a function that opens one for each epoch.
   *
   * @throws DataError `argument` for anything else; later, where a stream is to be read a second time
   * @example
   * const squares = Dataset.from(function* () {
   *   for (let i = 0; i < 3; i++) yield i * i;
   * });
   * await squares.toArray(); // [0, 1, 4]
   */
  static from<Names extends string>(source: RowSource<Names>): Dataset<{ readonly [Name in Names]: HostArray }>;
  static from<T>(source: readonly T[] | Iterated<T> | ((epoch: number) => Iterated<T>)): Dataset<T>;
  static from<T>(source: DatasetSource<T>): Dataset<T> {
    return new Dataset(planOf(source));
  }

  /** Items of an epoch; undefined if unknown, Infinity if endless. */
  get length(): number | undefined {
    return this.#plan.length;
  }

  /**
   * The items of one epoch by its number, without counting it as iterated.
   *
   * @throws DataError `argument` for what is no number of an epoch
   */
  epoch(number: number): AsyncIterableIterator<T, undefined> {
    checkInteger('Dataset.epoch', 'epoch', number, 0);
    return aheadOf(itemsOf(this.#plan, number), 1, (item) => item);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    return this.epoch(this.#iterated++);
  }

  /** All items of an epoch (default 0) in a list. @throws DataError `argument` where they never end */
  async toArray(epoch = 0): Promise<T[]> {
    if (this.length === Number.POSITIVE_INFINITY)
      throw new DataError('argument', 'length', '[toArray] the items never end; take(n) first');
    const found: T[] = [];
    for await (const item of this.epoch(epoch)) found.push(item);
    return found;
  }

  /** What JSON and consoles show. */
  toJSON(): object {
    return { length: this.length ?? null, byNumber: this.#plan.indexed !== undefined };
  }

  #items(epoch: number): AsyncIterable<T> {
    return { [Symbol.asyncIterator]: () => itemsOf(this.#plan, epoch) };
  }

  /** Items by number, or an error that says who needs them. */
  #numbered(op: string, remedy: string): { length: number; indexed: (epoch: number) => Indexed<T> } {
    const { length, indexed } = this.#plan;
    if (indexed !== undefined && Number.isFinite(length)) return { length: length!, indexed };
    const why = indexed === undefined ? 'the data set does not know its items by number' : 'the items never end';
    throw new DataError('argument', 'data', `[${op}] ${why}; ${remedy}`);
  }

  /**
   * Every item changed by a function, which may be asynchronous.
   *
   * @param change is given the item, its place in the epoch, and the number of the epoch: what random changes should depend on
   * @param options concurrency (1): functions that run side by side, for those that wait for files or workers; items stay in order
   * @throws DataError `argument`
   * @example
   * await Dataset.from([1, 2]).map(async (x) => x * 10, { concurrency: 2 }).toArray(); // [10, 20]
   */
  map<U>(change: (item: T, index: number, epoch: number) => U | Promise<U>, options: MapOptions = {}): Dataset<U> {
    checkFunction('map', 'change', change);
    checkOptions('map', options, { concurrency: 'number' });
    const { concurrency = 1 } = options;
    checkInteger('map', 'concurrency', concurrency, 1, mostAhead);
    const { length, indexed } = this.#plan;
    if (indexed === undefined) {
      const items = (epoch: number): AsyncIterable<U> => ({
        [Symbol.asyncIterator]: () =>
          aheadOf(itemsOf(this.#plan, epoch), concurrency, (item, i) => change(item, i, epoch)),
      });
      return new Dataset({ length, items });
    }
    return new Dataset({
      length,
      indexed: (epoch) => {
        const items = indexed(epoch);
        const at = (index: number): U | Promise<U> => {
          const item = items.at(index);
          return item instanceof Promise
            ? item.then((value: T) => change(value, index, epoch))
            : change(item, index, epoch);
        };
        return { length, ahead: Math.max(concurrency, items.ahead), at };
      },
    });
  }

  /**
   * The items for which a function says true.
   *
   * @throws DataError `argument`
   * @example
   * await Dataset.from([1, 2, 3]).filter((x) => x > 1).toArray(); // [2, 3]
   */
  filter(keeps: (item: T, index: number, epoch: number) => boolean | Promise<boolean>): Dataset<T> {
    checkFunction('filter', 'keeps', keeps);
    return new Dataset({ length: undefined, items: (epoch) => filtered(this.#items(epoch), keeps, epoch) });
  }

  /**
   * Batches of rows: arrays of one row each become one array with an axis of rows. Rows are objects of numbers, lists of numbers, typed arrays,
   * host arrays and texts. Numbers become float32, whatever their values; class numbers need `dtypes: { y: 'int32' }`.
   *
   * @param size rows in a batch
   * @param options dropLast (false), dtypes by column, pad by column for rows of different lengths
   * @throws DataError `argument`; while iterating `mismatch` for rows that do not go together
   * @example
   * const rows = Dataset.from([{ x: [1, 2, 3], y: 0 }, { x: [4], y: 1 }]);
   * const [batch] = await rows.batch(2, { dtypes: { y: 'int32' }, pad: { x: -1 } }).toArray();
   * batch!.x.data; // Float32Array [1, 2, 3, 4, -1, -1]
   * batch!.y.data; // Int32Array [0, 1]
   */
  batch(size: number, options: BatchRowsOptions = {}): Dataset<Batched<T>> {
    checkInteger('batch', 'size', size, 1);
    checkOptions('batch', options, { dropLast: 'boolean', dtypes: 'object', pad: 'object' });
    checkCollate(options);
    const { dropLast = false, dtypes, pad } = options;
    const make = (rows: T[]): Batched<T> => collate(rows, options) as Batched<T>;
    const { length, indexed } = this.#plan;
    const count = length === undefined ? undefined : dropLast ? Math.floor(length / size) : Math.ceil(length / size);
    if (indexed === undefined)
      return new Dataset({ length: count, items: (epoch) => grouped(this.#items(epoch), size, dropLast, make) });
    const isPlainBatch = dtypes === undefined && pad === undefined;
    return new Dataset({
      length: count!,
      indexed: (epoch) => {
        const items = indexed(epoch);
        const { rows } = items;
        const at = (index: number): Batched<T> | Promise<Batched<T>> => {
          const first = index * size;
          const rest = Math.min(size, length! - first);
          if (rows === undefined || !isPlainBatch) return several(items, first, rest).then(make);
          const order = Uint32Array.from({ length: rest }, (_, row) => rows.rowAt(first + row));
          return rows.source.gather(order, 0, rest) as Batched<T> | Promise<Batched<T>>;
        };
        return { length: count!, ahead: 1, at };
      },
    });
  }

  /**
   * Batches of items whose lengths are alike, so that little is padded: each bucket fills on its own.
   *
   * @param options length, boundaries, batchSize, and those of `batch`: pad, dtypes, dropLast
   * @throws DataError `argument`
   * @example
   * const texts = Dataset.from(['a', 'abcdef', 'ab', 'abcde']).map((text) => ({ x: Array.from(text, (c) => c.charCodeAt(0)) }));
   * const data = texts.bucket({ length: ({ x }) => x.length, boundaries: [4], batchSize: 2, pad: { x: 0 } });
   * (await data.map(({ x }) => x.shape.join()).toArray()).join(' '); // '2,2 2,6'
   */
  bucket(options: BucketOptions<T>): Dataset<Batched<T>> {
    const types = {
      length: 'function',
      boundaries: 'object',
      batchSize: 'any',
      dropLast: 'boolean',
      dtypes: 'object',
      pad: 'object',
    } as const;
    checkOptions('bucket', options, types);
    checkCollate(options);
    const { length, boundaries, batchSize, dropLast = false } = options;
    checkFunction('bucket', 'length', length);
    const ascends =
      isList(boundaries) && boundaries.every((to, i) => Number.isFinite(to) && to > (boundaries[i - 1] ?? 0));
    checkFits('bucket', 'boundaries', boundaries, ascends, 'a list of ascending lengths');
    const sizes = isList(batchSize) ? (batchSize as number[]) : [...boundaries, 0].map(() => batchSize as number);
    if (sizes.length !== boundaries.length + 1)
      throw new DataError(
        'argument',
        'batchSize',
        `[bucket] batchSize has ${sizes.length} sizes for ${boundaries.length + 1} buckets; give one more than boundaries`,
      );
    for (const size of sizes) checkInteger('bucket', 'batchSize', size, 1);
    const make = (rows: T[]): Batched<T> => collate(rows, options) as Batched<T>;
    return new Dataset({
      length: undefined,
      items: (epoch) => bucketed(this.#items(epoch), { length, boundaries, sizes, dropLast }, make),
    });
  }

  /**
   * The items in a random order, another one in each epoch. Without a buffer every order is equally likely, and only what is asked for is made.
   *
   * @param options seed (0), eachEpoch (true), buffer: for streams and filtered items, which have to be drawn from a part at a time
   * @throws DataError `argument`, also where a buffer is needed
   * @example
   * const data = Dataset.from([1, 2, 3, 4]).shuffle({ seed: 7 });
   * (await data.toArray(3)).join() === (await data.toArray(3)).join(); // true
   */
  shuffle(options: ShuffleOptions = {}): Dataset<T> {
    checkOptions('shuffle', options, { seed: 'number', buffer: 'number', eachEpoch: 'boolean' });
    const { seed = 0, buffer, eachEpoch = true } = options;
    checkInteger('shuffle', 'seed', seed, 0);
    const stream = (epoch: number): number => (eachEpoch ? epoch : 0);
    if (buffer !== undefined) {
      checkInteger('shuffle', 'buffer', buffer, 1, mostRows);
      const items = (epoch: number): AsyncIterable<T> =>
        shuffledThrough(this.#items(epoch), buffer, new RandomStream(seed, stream(epoch)));
      return new Dataset({ length: this.length, items });
    }
    const { length, indexed } = this.#numbered('shuffle', 'give a buffer to draw from: shuffle({ buffer: 10_000 })');
    checkInteger('shuffle', 'length', length, 0, mostRows);
    return new Dataset({
      length,
      indexed: (epoch) => {
        const order = shuffledIndices(length, seed, stream(epoch));
        return reordered(indexed(epoch), length, (index) => order[index]!);
      },
    });
  }

  /**
   * Lists of the first items of each data set, of the second ... They must have as many items; endless ones have as many as the others.
   *
   * @throws DataError `mismatch` for different lengths, at once or when the first one ends
   * @example
   * const names = Dataset.from(['a', 'b']);
   * await Dataset.from([1, 2]).zip(names).toArray(); // [[1, 'a'], [2, 'b']]
   */
  zip<U extends readonly unknown[]>(...others: { readonly [K in keyof U]: Dataset<U[K]> }): Dataset<[T, ...U]> {
    const all = [this, ...others] as readonly Dataset<unknown>[];
    all.forEach((one, i) => void checkFits('zip', `argument ${i}`, one, isDataset(one), 'a Dataset'));
    const lengths = all.map((one) => one.length);
    const finite = lengths.filter((length) => length !== undefined && Number.isFinite(length));
    if (new Set(finite).size > 1)
      throw new DataError(
        'mismatch',
        'zip',
        `[zip] the data sets have ${lengths.join(', ')} items; take as many of each`,
      );
    const length = finite[0] ?? (lengths.includes(undefined) ? undefined : Number.POSITIVE_INFINITY);
    const plans = all.map((one) => one.#plan);
    if (!plans.every((plan) => plan.indexed !== undefined)) {
      const endless = lengths.map((one) => one === Number.POSITIVE_INFINITY);
      const items = (epoch: number): AsyncIterable<[T, ...U]> =>
        together(
          plans.map((plan) => itemsOf(plan, epoch)),
          endless,
        ) as AsyncIterable<unknown> as AsyncIterable<[T, ...U]>; // prettier-ignore
      return new Dataset({ length, items });
    }
    return new Dataset({
      length: length!,
      indexed: (epoch) => {
        const sources = plans.map((plan) => plan.indexed!(epoch));
        const at = (index: number): Promise<[T, ...U]> | [T, ...U] => {
          const parts = sources.map((source) => source.at(index));
          return (parts.some((part) => part instanceof Promise) ? Promise.all(parts) : parts) as [T, ...U];
        };
        return { length: length!, ahead: Math.max(...sources.map(({ ahead }) => ahead)), at };
      },
    });
  }

  /** The first `count` items. @throws DataError `argument` */
  take(count: number): Dataset<T> {
    checkInteger('take', 'count', count, 0);
    return this.#range(0, count);
  }

  /** All items but the first `count`. @throws DataError `argument` */
  skip(count: number): Dataset<T> {
    checkInteger('skip', 'count', count, 0);
    return this.#range(count, Number.POSITIVE_INFINITY);
  }

  #range(start: number, end: number): Dataset<T> {
    const { length: all, indexed } = this.#plan;
    const length = all === undefined ? undefined : Math.max(0, Math.min(all, end) - start);
    if (indexed === undefined)
      return new Dataset({ length, items: (epoch) => between(this.#items(epoch), start, end) });
    return new Dataset({
      length: length!,
      indexed: (epoch) => reordered(indexed(epoch), length!, (index) => start + index),
    });
  }

  /**
   * The items `count` times over in one epoch, or without end. Every repetition is a separate pass: shuffles differ.
   *
   * @throws DataError `argument`
   * @example
   * await Dataset.from([1, 2]).repeat().take(5).toArray(); // [1, 2, 1, 2, 1]
   */
  repeat(count: number = Number.POSITIVE_INFINITY): Dataset<T> {
    if (count !== Number.POSITIVE_INFINITY) checkInteger('repeat', 'count', count, 0);
    const passes = Math.min(count, endlessPasses);
    const { length: one, indexed } = this.#plan;
    const length = one === undefined ? (count === 0 ? 0 : undefined) : one === 0 ? 0 : one * count;
    if (indexed === undefined) {
      const items = (epoch: number): AsyncIterable<T> => repeated((pass) => this.#items(epoch * passes + pass), count);
      return new Dataset({ length, items });
    }
    return new Dataset({
      length: length!,
      indexed: (epoch) => {
        // Two passes are open where the end of one is made ready with the beginning of the next.
        const open = new Map<number, Indexed<T>>();
        const passAt = (pass: number): Indexed<T> => {
          const known = open.get(pass);
          if (known !== undefined) return known;
          const made = indexed(epoch * passes + pass);
          if (open.size > 1) open.delete(open.keys().next().value!);
          open.set(pass, made);
          return made;
        };
        const at = (index: number): T | Promise<T> => passAt(Math.floor(index / one!)).at(index % one!);
        return { length: length!, ahead: one! > 0 && count > 0 ? passAt(0).ahead : 1, at };
      },
    });
  }

  /**
   * Makes items ready before they are asked for: while a training step runs, the next batches are read.
   *
   * @param count items to make ready (default 2)
   * @throws DataError `argument`
   * @example
   * await Dataset.from([1, 2, 3]).map(async (x) => x * 2).prefetch(2).toArray(); // [2, 4, 6]
   */
  prefetch(count = 2): Dataset<T> {
    checkInteger('prefetch', 'count', count, 0, mostAhead);
    const { length, indexed } = this.#plan;
    if (indexed === undefined) {
      const items = (epoch: number): AsyncIterable<T> => ({
        [Symbol.asyncIterator]: () => aheadOf(itemsOf(this.#plan, epoch), count + 1, (item) => item),
      });
      return new Dataset({ length, items });
    }
    return new Dataset({
      length,
      indexed: (epoch) => {
        const items = indexed(epoch);
        return { ...items, ahead: Math.max(items.ahead, count + 1) };
      },
    });
  }

  /**
   * Parts of the data set: fractions of its items, or numbers of them.
   *
   * @param shares fractions that add up to 1, or whole numbers that add up to the length
   * @param options seed: deal out in a random order; stratify: the class of each item, to have its share in every part
   * @throws DataError `argument`
   * @example
   * const [train, test] = Dataset.from([1, 2, 3, 4, 5]).split([0.8, 0.2], { seed: 1 });
   * [train!.length, test!.length]; // [4, 1]
   */
  split(shares: readonly number[], options: SplitOptions = {}): Dataset<T>[] {
    const { length } = this.#numbered('split', 'filter and split in lists: Dataset.from(await data.toArray())');
    checkOptions('split', options, { seed: 'number', stratify: 'any' });
    return partsOf('split', length, shares, options).map((rows) => this.#chosen(rows));
  }

  /**
   * The ways to take one of `count` parts for validation and the others for training (k-fold cross-validation).
   *
   * @param options seed: parts of a random order; stratify: the class of each item, to have its share in every part
   * @throws DataError `argument`
   * @example
   * const folds = Dataset.from([1, 2, 3, 4, 5]).folds(5);
   * await folds[1]!.validation.toArray(); // [2]
   * folds[1]!.train.length; // 4
   */
  folds(count: number, options: SplitOptions = {}): DataFold<T>[] {
    const { length } = this.#numbered('folds', 'filter and fold in lists: Dataset.from(await data.toArray())');
    checkOptions('folds', options, { seed: 'number', stratify: 'any' });
    return foldsOf('folds', length, count, options).map(({ train, validation }) => ({
      train: this.#chosen(train),
      validation: this.#chosen(validation),
    }));
  }

  #chosen(rows: Uint32Array): Dataset<T> {
    const indexed = this.#plan.indexed!;
    return new Dataset({
      length: rows.length,
      indexed: (epoch) => reordered(indexed(epoch), rows.length, (index) => rows[index]!),
    });
  }
}

function isDataset(value: unknown): value is Dataset<unknown> {
  return value instanceof Dataset;
}
