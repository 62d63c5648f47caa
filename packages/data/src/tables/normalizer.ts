/** Normalisation fitted on training data: mean 0 and deviation 1 of each element, each channel, or all elements of a column of arrays. */
import type { HostArray } from '../arrays.ts';
import { checkFits, checkFunction, checkOptions, DataError, isList, isListOf, isPlain, shown } from '../errors.ts';
import { isHostArray } from '../pipeline/collate.ts';

/** Mean and deviation (of all values, not of a sample) in float64; a deviation of 0 becomes 1. Source: Welford (1962). */
export function meanAndStd(values: ArrayLike<number>): { mean: number; std: number } {
  let mean = 0;
  let squares = 0;
  for (let i = 0; i < values.length; i++) {
    const difference = values[i]! - mean;
    mean += difference / (i + 1);
    squares += difference * (values[i]! - mean);
  }
  const variance = values.length === 0 ? 0 : squares / values.length;
  return { mean, std: variance > 0 ? Math.sqrt(variance) : 1 };
}

/** Options of `fitNormalizer`. */
export interface NormalizerOptions {
  /**
   * What has a mean and a deviation of its own: each element of a row, each channel (the first axis of a row, as in images [channels, height,
   * width]), or all together. Default 'element'.
   */
  readonly per?: 'element' | 'channel' | 'all';
}

const op = 'normalizer';

type Per = NonNullable<NormalizerOptions['per']>;

/** A row's values, and how many of them stand behind each other for one mean. */
function valuesOf(row: unknown, per: Per): { values: ArrayLike<number>; shape: readonly number[]; groups: number } {
  const array = isHostArray(row) ? row : undefined;
  const list = ArrayBuffer.isView(row) || isList(row) ? (row as unknown as ArrayLike<number>) : undefined;
  const values = typeof row === 'number' ? [row] : ((array?.data as ArrayLike<number> | undefined) ?? list);
  const isFloat = array === undefined || !/float16|int64/.test(array.dtype);
  // Anything else in a list would be turned into text first, which can take for ever; a typed array holds one type.
  const isNumbers = isList(values)
    ? isListOf(values, (value) => typeof value === 'number')
    : typeof values?.[0] === 'number' || values?.length === 0;
  if (values === undefined || !isFloat || !isNumbers)
    throw new DataError(
      'mismatch',
      'row',
      `[${op}] a row is ${shown(row)}; it must be a number, a list of numbers, or an array of up to 32 bits or float64`,
    );
  const shape = array?.shape ?? (typeof row === 'number' ? [] : [values.length]);
  const groups = per === 'element' ? values.length : per === 'all' ? 1 : (shape[0] ?? 1);
  return { values, shape, groups };
}

/**
 * `(x - mean) / std` with numbers of a training set. Made by `fitNormalizer`; JSON keeps it beside the model it belongs to.
 *
 * @example
 * const scale = await fitNormalizer([[0, 10], [2, 30]], (row) => row);
 * scale.mean; // Float64Array [1, 20]
 * scale.apply([2, 20]).data; // Float32Array [1, 0]
 * Normalizer.fromJSON(JSON.parse(JSON.stringify(scale))).std; // Float64Array [1, 10]
 */
export class Normalizer {
  readonly per: Per;
  readonly mean: Float64Array;
  readonly std: Float64Array;

  /** @throws DataError `argument` for means and deviations that differ in number, and deviations of 0 */
  constructor(per: Per, mean: ArrayLike<number>, std: ArrayLike<number>) {
    checkFits(op, 'per', per, ['element', 'channel', 'all'].includes(per), "'element', 'channel' or 'all'");
    const isWanted = (value: unknown): boolean =>
      isListOf(value, (x) => typeof x === 'number') || value instanceof Float64Array;
    checkFits(op, 'mean', mean, isWanted(mean), 'a list of numbers');
    checkFits(
      op,
      'std',
      std,
      isWanted(std) && std.length === mean.length,
      `a list of ${mean.length} numbers, as many as means`,
    );
    this.per = per;
    this.mean = Float64Array.from(mean);
    this.std = Float64Array.from(std);
    checkFits(op, 'mean', mean, this.mean.every(Number.isFinite), 'finite');
    checkFits(
      op,
      'std',
      std,
      this.std.every((value) => Number.isFinite(value) && value !== 0),
      'finite and not 0',
    );
  }

  /** A normalizer from what `toJSON` gave. @throws DataError `argument` for anything else */
  static fromJSON(value: unknown): Normalizer {
    checkFits(op, 'value', value, isPlain(value), 'what a Normalizer gives as JSON');
    const { per, mean, std } = value as Normalizer;
    return new Normalizer(per, mean, std);
  }

  toJSON(): { per: Per; mean: number[]; std: number[] } {
    return { per: this.per, mean: [...this.mean], std: [...this.std] };
  }

  /** A row normalised: float32 of its shape. @throws DataError `mismatch` for rows of another size */
  apply(row: unknown): HostArray<'float32'> {
    return this.#each(row, (value, mean, std) => (value - mean) / std);
  }

  /** A normalised row back in its own unit: float32 of its shape. @throws DataError `mismatch` for rows of another size */
  invert(row: unknown): HostArray<'float32'> {
    return this.#each(row, (value, mean, std) => value * std + mean);
  }

  /** Every value of a row by the mean and deviation that it has. */
  #each(row: unknown, of: (value: number, mean: number, std: number) => number): HostArray<'float32'> {
    const { values, shape, groups } = valuesOf(row, this.per);
    if (groups !== this.mean.length)
      throw new DataError(
        'mismatch',
        'row',
        `[${op}] a row of shape (${shape.join(', ')}) has ${groups} means, and ${this.mean.length} were fitted`,
      );
    const size = values.length / groups;
    const data = new Float32Array(values.length);
    for (let i = 0; i < data.length; i++) {
      const group = Math.floor(i / size);
      data[i] = of(values[i]!, this.mean[group]!, this.std[group]!);
    }
    return { dtype: 'float32', shape, data };
  }
}

/**
 * Means and deviations (of all values, as scikit-learn's StandardScaler has them) in one pass over training rows, in float64. What never
 * changes keeps a deviation of 1.
 *
 * @param rows a data set or any iterable of training rows
 * @param of the part of a row to normalise: a number, a list of numbers, or an array
 * @param options per ('element')
 * @throws DataError `argument`, `mismatch` for rows of different sizes, and values that are not finite
 * @example
 * const images = Dataset.from([new Float32Array([0, 2]), new Float32Array([4, 6])]);
 * const { mean } = await fitNormalizer(images, (image) => image, { per: 'all' });
 * mean; // Float64Array [3]
 */
export async function fitNormalizer<T>(
  rows: Iterable<T> | AsyncIterable<T>,
  of: (row: T) => unknown,
  options: NormalizerOptions = {},
): Promise<Normalizer> {
  checkOptions(op, options, { per: 'string' });
  checkFunction(op, 'of', of);
  const isIterable =
    typeof rows === 'object' && rows !== null && (Symbol.iterator in rows || Symbol.asyncIterator in rows);
  checkFits(op, 'rows', rows, isIterable, 'a data set, or an iterable of rows');
  const { per = 'element' } = options;
  checkFits(op, 'per', per, ['element', 'channel', 'all'].includes(per), "'element', 'channel' or 'all'");
  let mean: Float64Array | undefined;
  let squares = new Float64Array();
  let counts = new Float64Array();
  let index = 0;
  for await (const row of rows) {
    const { values, groups } = valuesOf(of(row), per);
    mean ??= new Float64Array(groups);
    if (index === 0) [squares, counts] = [new Float64Array(groups), new Float64Array(groups)];
    if (groups !== mean.length)
      throw new DataError(
        'mismatch',
        'rows',
        `[${op}] row ${index} has ${groups} means, row 0 ${mean.length}; all rows need one size`,
      );
    const size = values.length / groups;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value))
        throw new DataError('mismatch', 'rows', `[${op}] row ${index} holds ${value}; filter such rows`);
      const group = Math.floor(i / size);
      const difference = value - mean[group]!;
      mean[group]! += difference / ++counts[group]!;
      squares[group]! += difference * (value - mean[group]!);
    }
    index++;
  }
  if (mean === undefined) throw new DataError('argument', 'rows', `[${op}] there are no rows to measure`);
  const std = squares.map((sum, group) => (sum > 0 ? Math.sqrt(sum / counts[group]!) : 1));
  return new Normalizer(per, mean, std);
}
