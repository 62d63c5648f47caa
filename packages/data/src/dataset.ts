/**
 * Data sets: named columns in host memory with one item per row, and the assembly of chosen rows into new arrays.
 *
 * A column may be kept in a small type and delivered in another (pixels stay bytes and come out as normalised
 * float32). What order rows are asked for in, and when, is batches.ts.
 */
import { allocateHost, type HostArray, type HostDType, type HostTypedArray, sizeOf } from './arrays.ts';
import { byteMapper } from './byte-table.ts';
import { DataError } from './errors.ts';

/** A column that is delivered as it is stored. */
export interface PlainColumn {
  readonly array: HostArray;
  readonly as?: 'stored';
}

/** A column of bytes delivered as float32: byte `b` becomes `(b / 255 - mean) / std`, by default `b / 255`. */
export interface ScaledColumn {
  readonly array: HostArray<'uint8'>;
  readonly as: 'float32';
  readonly mean?: number;
  readonly std?: number;
}

/** A column of small integers delivered as int32, which is what class labels are on every engine. */
export interface LabelColumn {
  readonly array: HostArray<'uint8'>;
  readonly as: 'int32';
}

export type Column = PlainColumn | ScaledColumn | LabelColumn;

/** Rows put together: one array per column, all with the same leading extent. */
export type Batch<Names extends string = string> = { readonly [Name in Names]: HostArray };

/** Anything rows can be asked of. `gather` may answer later (files, network), batches.ts waits and prefetches. */
export interface Dataset<Names extends string = string> {
  /** Number of rows. */
  readonly size: number;
  readonly columns: readonly Names[];
  /** The rows `order[start]` to `order[end - 1]`, in that order, in arrays the caller owns. */
  gather(order: Uint32Array, start: number, end: number): Batch<Names> | Promise<Batch<Names>>;
}

/** A data set whose rows are in memory: `gather` answers at once. */
export interface MemoryDataset<Names extends string = string> extends Dataset<Names> {
  gather(order: Uint32Array, start: number, end: number): Batch<Names>;
}

type RowReader = (order: Uint32Array, start: number, end: number) => HostArray;

/** The part of a typed array that copying rows needs, whatever its elements. */
interface Rows {
  set(values: Rows, offset: number): void;
  subarray(from: number, to: number): Rows;
}

/** Copies rows of any type; runs of neighbouring rows are one copy. */
function plainReader(array: HostArray, rowSize: number): RowReader {
  const { dtype, shape } = array;
  const rowShape = shape.slice(1);
  const source = array.data as unknown as Rows;
  return (order, start, end) => {
    const data: HostTypedArray = allocateHost<HostDType>(dtype, (end - start) * rowSize);
    const out = data as unknown as Rows;
    for (let at = start; at < end; ) {
      const first = order[at]!;
      let run = 1;
      while (at + run < end && order[at + run] === first + run) run++;
      out.set(source.subarray(first * rowSize, (first + run) * rowSize), (at - start) * rowSize);
      at += run;
    }
    return { dtype, shape: [end - start, ...rowShape], data };
  };
}

/** Bytes as float32 through a table of values. */
function scaledReader(array: HostArray<'uint8'>, rowSize: number, table: Float32Array): RowReader {
  const rowShape = array.shape.slice(1);
  const map = byteMapper(array.data, table, rowSize);
  return (order, start, end) => {
    const data = new Float32Array((end - start) * rowSize);
    for (let at = start; at < end; at++) map(order[at]! * rowSize, rowSize, data, (at - start) * rowSize);
    return { dtype: 'float32', shape: [end - start, ...rowShape], data };
  };
}

/** Bytes as int32. */
function labelReader(array: HostArray<'uint8'>, rowSize: number): RowReader {
  const rowShape = array.shape.slice(1);
  return (order, start, end) => {
    const data = new Int32Array((end - start) * rowSize);
    for (let at = start; at < end; at++) {
      const from = order[at]! * rowSize;
      data.set(array.data.subarray(from, from + rowSize), (at - start) * rowSize);
    }
    return { dtype: 'int32', shape: [end - start, ...rowShape], data };
  };
}

function columnReader(column: Column, rowSize: number): RowReader {
  switch (column.as) {
    case undefined:
    case 'stored':
      return plainReader(column.array, rowSize);
    case 'int32':
      return labelReader(column.array, rowSize);
    case 'float32': {
      const { mean = 0, std = 1 } = column;
      const table = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255 - mean) / std);
      return scaledReader(column.array, rowSize, table);
    }
    default:
      return column satisfies never;
  }
}

/**
 * A data set over arrays in memory, none of which is copied.
 *
 * @param columns one column per name; all arrays have the same leading extent
 * @throws DataError `mismatch` if row counts differ or an array does not fill its shape, `argument` without columns,
 *   for arrays without rows' axis, and for a zero or non-finite `std`
 * @example
 * const data = memoryDataset({
 *   x: { array: { dtype: 'uint8', shape: [2, 3], data: new Uint8Array([0, 51, 255, 255, 102, 0]) }, as: 'float32' },
 *   y: { array: { dtype: 'uint8', shape: [2], data: new Uint8Array([4, 9]) }, as: 'int32' },
 * });
 * const batch = data.gather(new Uint32Array([1]), 0, 1); // batch.x.data is 1, 0.4, 0; batch.y.data is 9
 */
export function memoryDataset<Names extends string>(columns: Readonly<Record<Names, Column>>): MemoryDataset<Names> {
  const names = Object.keys(columns) as Names[];
  if (names.length === 0) throw new DataError('argument', 'columns', '[dataset] no columns were given');
  const size = columns[names[0]!].array.shape[0];
  const readers: [Names, RowReader][] = names.map((name) => {
    const column = columns[name];
    const { shape, data } = column.array;
    if (shape.length === 0 || size === undefined) {
      throw new DataError('argument', name, `[dataset] column '${name}' has no axis of rows: its shape is ()`);
    }
    if (sizeOf(shape) !== data.length) {
      throw new DataError(
        'mismatch',
        name,
        `[dataset] column '${name}': shape (${shape.join(', ')}) has ${sizeOf(shape)} elements, the data ${data.length}`,
      );
    }
    if (shape[0] !== size) {
      throw new DataError(
        'mismatch',
        name,
        `[dataset] column '${name}' has ${shape[0]} rows, column '${names[0]}' ${size}; every column needs the same number`,
      );
    }
    if (column.as === 'float32' && (column.std === 0 || !Number.isFinite(column.std ?? 1))) {
      throw new DataError(
        'argument',
        name,
        `[dataset] column '${name}': std is ${column.std}; it must be finite and not 0`,
      );
    }
    return [name, columnReader(column, sizeOf(shape.slice(1)))];
  });
  return {
    size: size ?? 0,
    columns: names,
    gather(order, start, end) {
      const batch: Partial<Record<Names, HostArray>> = {};
      for (const [name, read] of readers) batch[name] = read(order, start, end);
      return batch as Batch<Names>;
    },
  };
}

/**
 * The rows `start` to `end - 1` of a data set as a data set of their own, without copying.
 *
 * @throws DataError `argument` if the range is not within the rows
 * @example
 * const firstThousand = slice(train, 0, 1000);
 */
export function slice<Names extends string>(dataset: Dataset<Names>, start: number, end: number): Dataset<Names> {
  if (!(Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start <= end && end <= dataset.size)) {
    throw new DataError(
      'argument',
      'range',
      `[slice] rows ${start} to ${end} are not within the ${dataset.size} rows of the data set`,
    );
  }
  return {
    size: end - start,
    columns: dataset.columns,
    gather(order, from, to) {
      if (start === 0) return dataset.gather(order, from, to);
      return dataset.gather(
        order.subarray(from, to).map((row) => row + start),
        0,
        to - from,
      );
    },
  };
}
