/**
 * Data sets: named columns in host memory with one item per row, and the assembly of chosen rows into new arrays.
 *
 * A column may be kept in a small type and delivered in another (pixels stay bytes and come out as normalised
 * float32). What order rows are asked for in, and when, is batches.ts.
 */
import {
  allocateHost,
  HOST_BYTES,
  isExtent,
  type HostArray,
  type HostDType,
  type HostTypedArray,
  lostMemory,
  sizeOf,
  wrongArray,
} from './arrays.ts';
import { byteMapper } from './byte-table.ts';
import { checkFits, checkInteger, DataError, isListOf, mostRows } from './errors.ts';

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

/** One array of a data set in memory: as it is, scaled, or of labels. */
export type Column = PlainColumn | ScaledColumn | LabelColumn;

/** Rows put together: one array per column, all with the same leading extent. */
export type Batch<Names extends string = string> = { readonly [Name in Names]: HostArray };

/** Anything rows can be asked of. `gather` may answer later (files, network), batches.ts waits and prefetches. */
export interface RowSource<Names extends string = string> {
  /** Number of rows. */
  readonly size: number;
  readonly columns: readonly Names[];
  /**
   * The rows `order[start]` to `order[end - 1]`, in that order, in arrays the caller owns. `reuse` is a batch the caller
   * no longer needs: its arrays may be filled again.
   */
  gather(order: Uint32Array, start: number, end: number, reuse?: Batch<Names>): Batch<Names> | Promise<Batch<Names>>;
}

/** A data set whose rows are in memory: `gather` answers at once. */
export interface MemoryDataset<Names extends string = string> extends RowSource<Names> {
  gather(order: Uint32Array, start: number, end: number, reuse?: Batch<Names>): Batch<Names>;
}

/** How a column is delivered: its element type, and the writing of rows into an array of that type. */
interface RowReader {
  readonly dtype: HostDType;
  readonly rowShape: readonly number[];
  read(order: Uint32Array, start: number, end: number, out: HostTypedArray): void;
}

/** Throws DataError `argument` unless rows can be asked of a value. */
export function checkRows(op: string, dataset: RowSource): void {
  const isRows = typeof dataset === 'object' && dataset !== null && typeof dataset.gather === 'function';
  checkFits(op, 'dataset', dataset, isRows, 'a data set with `size` and `gather`');
  checkInteger(op, 'size', dataset.size, 0, mostRows);
}

/** Throws DataError `argument` unless a column can be delivered as it says. */
function checkDelivery(name: string, { as, array, ...rest }: Column): void {
  const { mean, std } = rest as { mean?: number; std?: number };
  const wanted = "'stored', or for uint8 'float32' or 'int32'";
  const bytes = array.dtype === 'uint8' && (as === 'float32' || as === 'int32');
  checkFits('dataset', `as of column '${name}'`, as, as === undefined || as === 'stored' || bytes, wanted);
  checkFits('dataset', 'mean', mean, mean === undefined || Number.isFinite(mean), 'a finite number');
  checkFits('dataset', 'std', std, std === undefined || (Number.isFinite(std) && std !== 0), 'finite and not 0');
}

/** The part of a typed array that copying rows needs, whatever its elements. */
interface Rows {
  set(values: Rows, offset: number): void;
  subarray(from: number, to: number): Rows;
}

/** Copies rows; runs of neighbouring rows are one copy. Bytes may be copied into an array of wider numbers. */
function copyingReader(array: HostArray, dtype: HostDType, rowShape: readonly number[]): RowReader {
  const source = array.data as unknown as Rows;
  const rowSize = sizeOf(rowShape);
  return {
    dtype,
    rowShape,
    read(order, start, end, data) {
      const out = data as unknown as Rows;
      for (let at = start; at < end; ) {
        const first = order[at]!;
        let run = 1;
        while (at + run < end && order[at + run] === first + run) run++;
        out.set(source.subarray(first * rowSize, (first + run) * rowSize), (at - start) * rowSize);
        at += run;
      }
    },
  };
}

/** Bytes as float32 through a table of values. */
function scaledReader(array: HostArray<'uint8'>, table: Float32Array, rowShape: readonly number[]): RowReader {
  const rowSize = sizeOf(rowShape);
  const map = byteMapper(array.data, table, rowSize);
  return {
    dtype: 'float32',
    rowShape,
    read(order, start, end, data) {
      const out = data as Float32Array;
      for (let at = start; at < end; at++) map(order[at]! * rowSize, rowSize, out, (at - start) * rowSize);
    },
  };
}

function columnReader(column: Column): RowReader {
  const rowShape = column.array.shape.slice(1);
  switch (column.as) {
    case undefined:
    case 'stored':
      return copyingReader(column.array, column.array.dtype, rowShape);
    case 'int32':
      return copyingReader(column.array, 'int32', rowShape);
    case 'float32': {
      const { mean = 0, std = 1 } = column;
      const table = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255 - mean) / std);
      return scaledReader(column.array, table, rowShape);
    }
    default:
      return column satisfies never;
  }
}

/** The rows of one column, in the elements of `reuse` if that has as many. */
function readRows(reader: RowReader, order: Uint32Array, start: number, end: number, reuse?: HostArray): HostArray {
  const { dtype, rowShape } = reader;
  const size = (end - start) * sizeOf(rowShape);
  const data = reuse?.dtype === dtype && reuse.data.length === size ? reuse.data : allocateHost<HostDType>(dtype, size);
  reader.read(order, start, end, data);
  return { dtype, shape: [end - start, ...rowShape], data };
}

/** Arrays stay where they are, so they may have been transferred since: rows would be zeros. */
function checkKept(name: string, { shape, data }: HostArray): void {
  if (data.length === sizeOf(shape)) return;
  const left = `${data.length} of ${sizeOf(shape)} elements are left`;
  throw new DataError(
    'argument',
    name,
    `[dataset] column '${name}' has lost its memory: ${left} since the data set was made; copy what is transferred`,
  );
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
 * const batch = data.gather(new Uint32Array([1]), 0, 1);
 * batch.x.data; // Float32Array [1, 0.4, 0]
 * batch.y.data; // Int32Array [9]
 */
export function memoryDataset<Names extends string>(columns: Readonly<Record<Names, Column>>): MemoryDataset<Names> {
  checkFits('dataset', 'columns', columns, typeof columns === 'object' && columns !== null, 'columns by name');
  const names = Object.keys(columns) as Names[];
  if (names.length === 0) throw new DataError('argument', 'columns', '[dataset] no columns were given');
  for (const name of names) {
    const array: Partial<HostArray> | undefined = columns[name]?.array;
    if (
      !isListOf(array?.shape, isExtent) ||
      !ArrayBuffer.isView(array.data) ||
      typeof array.dtype !== 'string' ||
      !Object.hasOwn(HOST_BYTES, array.dtype)
    )
      throw new DataError(
        'argument',
        name,
        `[dataset] column '${name}' holds no array; give { array: { dtype: 'float32', shape, data: new Float32Array(...) } }`,
      );
  }
  const size = columns[names[0]!].array.shape[0];
  const readers: [Names, RowReader][] = names.map((name) => {
    const column = columns[name];
    const { shape, data } = column.array;
    const wrong = wrongArray(column.array.dtype, data);
    if (wrong !== undefined) throw new DataError('argument', name, `[dataset] column '${name}': ${wrong}`);
    checkDelivery(name, column);
    const lost = lostMemory(data);
    if (lost !== undefined) throw new DataError('argument', name, `[dataset] column '${name}': ${lost}`);
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
    return [name, columnReader(column)];
  });
  return {
    size: size ?? 0,
    columns: names,
    gather(order, start, end, reuse) {
      const batch: Partial<Record<Names, HostArray>> = {};
      for (const [name, reader] of readers) {
        checkKept(name, columns[name].array);
        batch[name] = readRows(reader, order, start, end, reuse?.[name]);
      }
      return batch as Batch<Names>;
    },
  };
}

/**
 * The rows `start` to `end - 1` of a data set as a separate data set, without copying.
 *
 * @throws DataError `argument` if the range is not within the rows
 * @example
 * const all = memoryDataset({ x: { array: { dtype: 'uint8', shape: [5], data: Uint8Array.of(1, 2, 3, 4, 5) } } });
 * subset(all, 1, 3).size; // 2
 */
export function subset<Names extends string>(dataset: RowSource<Names>, start: number, end: number): RowSource<Names> {
  checkRows('subset', dataset);
  checkInteger('subset', 'start', start, 0);
  checkInteger('subset', 'end', end, 0);
  if (start > end || end > dataset.size) {
    throw new DataError(
      'argument',
      'range',
      `[subset] rows ${start} to ${end} are not within the ${dataset.size} rows of the data set`,
    );
  }
  return {
    size: end - start,
    columns: dataset.columns,
    gather(order, from, to, reuse) {
      if (start === 0) return dataset.gather(order, from, to, reuse);
      const rows = order.subarray(from, to).map((row) => row + start);
      return dataset.gather(rows, 0, rows.length, reuse);
    },
  };
}
