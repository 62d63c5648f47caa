/**
 * Rows into batches: arrays of one row each become one array with an axis of rows, shorter ones padded on request.
 *
 * The dtype of a column never depends on its values: numbers become float32 unless `dtypes` says otherwise.
 */
import {
  allocateHost,
  HOST_BYTES,
  type HostArray,
  type HostDType,
  type HostTypedArray,
  sizeOf,
  wrongArray,
} from '../arrays.ts';
import { checkFits, checkInteger, checkOptions, DataError, isPlain, isTensor, shown, isList } from '../errors.ts';

/** How rows of different lengths become one array. */
export interface RowPadding {
  /** What is put behind a shorter row. Default 0. */
  readonly value?: number;
  /** The length of all rows (default: that of the longest row of the batch). */
  readonly to?: number;
  /** The length is rounded up to a multiple of this (default 1): fewer different shapes, and so fewer plans. */
  readonly multipleOf?: number;
  /** Name of a column to add with the lengths before padding, int32 [rows]. */
  readonly lengths?: string;
}

/** How values of rows become arrays of a batch. */
export interface CollateOptions {
  /** Dtypes of columns by name. Numbers become float32, booleans bool, and bigints int64 otherwise. */
  readonly dtypes?: Readonly<Record<string, HostDType>>;
  /** Columns whose rows differ in length, by name: a number to put behind the shorter ones, or more choice. */
  readonly pad?: Readonly<Record<string, number | RowPadding>>;
}

/** What `batch` makes of rows. */
export type Batched<T> = T extends
  | HostArray
  | number
  | bigint
  | boolean
  | ArrayBufferView
  | readonly (number | readonly number[])[]
  ? HostArray
  : T extends string
    ? string[]
    : { readonly [K in keyof T]: Batched<T[K]> };

const op = 'batch';

const DTYPES_OF_VIEWS: Readonly<Record<string, HostDType>> = {
  Float64Array: 'float64',
  Float32Array: 'float32',
  BigInt64Array: 'int64',
  BigUint64Array: 'uint64',
  Int32Array: 'int32',
  Uint32Array: 'uint32',
  Int16Array: 'int16',
  Uint16Array: 'uint16',
  Int8Array: 'int8',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
};

/** Axes of nested lists; deeper ones are a mistake. */
const mostAxes = 16;

/** True for an array in host memory. */
export function isHostArray(value: unknown): value is HostArray {
  const array = value as Partial<HostArray> | null;
  return (
    typeof value === 'object' &&
    value !== null &&
    isList(array?.shape) &&
    ArrayBuffer.isView(array.data) &&
    typeof array.dtype === 'string'
  );
}

/** Where a value is: for messages. */
interface Place {
  readonly row: number;
  readonly name: string;
}

const where = ({ row, name }: Place): string => `row ${row} of the batch${name === '' ? '' : `, '${name}'`}`;

function mismatch(place: Place, text: string): DataError {
  return new DataError('mismatch', place.name || 'row', `[${op}] ${where(place)} ${text}`);
}

/** A nested list of numbers as float32 of its shape. */
function fromLists(list: readonly unknown[], place: Place): HostArray {
  const shape: number[] = [];
  for (let at: unknown = list; isList(at); at = at[0]) {
    shape.push(at.length);
    if (shape.length > mostAxes) throw mismatch(place, `is nested more than ${mostAxes} deep`);
  }
  const data = new Float32Array(sizeOf(shape));
  let next = 0;
  const visit = (value: unknown, axis: number): void => {
    if (axis < shape.length) {
      if (!isList(value) || value.length !== shape[axis])
        throw mismatch(
          place,
          `is a list whose parts differ in length or depth; its first parts have shape (${shape.join(', ')})`,
        );
      for (const part of value) visit(part, axis + 1);
    } else if (typeof value === 'number') data[next++] = value;
    else throw mismatch(place, `has ${shown(value)} in a list of numbers`);
  };
  visit(list, 0);
  return { dtype: 'float32', shape, data };
}

/** The array that a value of a row is; undefined for what is none. */
function arrayOf(value: unknown, place: Place): HostArray | undefined {
  switch (typeof value) {
    case 'number':
      return { dtype: 'float32', shape: [], data: Float32Array.of(value) };
    case 'boolean':
      return { dtype: 'bool', shape: [], data: Uint8Array.of(Number(value)) };
    case 'bigint':
      if (BigInt.asIntN(64, value) !== value) throw mismatch(place, `is ${value}, which int64 does not hold`);
      return { dtype: 'int64', shape: [], data: BigInt64Array.of(value) };
  }
  if (isHostArray(value)) {
    const wrong = wrongArray(value.dtype, value.data);
    if (wrong !== undefined) throw mismatch(place, `: ${wrong}`);
    if (sizeOf(value.shape) !== value.data.length)
      throw mismatch(place, `has shape (${value.shape.join(', ')}) and ${value.data.length} elements`);
    return value;
  }
  if (ArrayBuffer.isView(value)) {
    const dtype = DTYPES_OF_VIEWS[Object.prototype.toString.call(value).slice(8, -1)];
    if (dtype === undefined) return undefined;
    const data = value as Uint8Array;
    return { dtype, shape: [data.length], data } as HostArray;
  }
  return isList(value) ? fromLists(value, place) : undefined;
}

const isWhole = (dtype: HostDType): boolean => !dtype.includes('float');

/** Least and greatest of each dtype of whole numbers. */
function limitsOf(dtype: HostDType): readonly [number, number] {
  if (dtype === 'bool') return [0, 1];
  const bits = 8 * HOST_BYTES[dtype];
  return dtype.startsWith('u') ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
}

/** The elements in another dtype, each exactly as before or rounded to a float. */
function converted(array: HostArray, dtype: HostDType, place: Place): HostTypedArray {
  if (array.dtype === dtype) return array.data;
  if ([dtype, array.dtype].some((one) => one === 'float16' || one === 'bfloat16'))
    throw mismatch(place, `is ${array.dtype}; it cannot be turned into ${dtype} here, do that on the device`);
  const data = allocateHost<HostDType>(dtype, array.data.length);
  const [least, most] = limitsOf(dtype);
  const isBig = dtype.endsWith('int64');
  for (let i = 0; i < data.length; i++) {
    const value = Number(array.data[i]);
    if (isWhole(dtype) && !(Number.isInteger(value) && value >= least && value <= most))
      throw mismatch(place, `holds ${value}, which ${dtype} does not; change dtypes, or the value`);
    data[i] = isBig ? BigInt(array.data[i]!) : value;
  }
  return data;
}

/** Rows of one shape behind each other. */
function stacked(arrays: readonly HostArray[], name: string, dtype: HostDType, shape: readonly number[]): HostArray {
  const size = sizeOf(shape);
  const data = allocateHost<HostDType>(dtype, arrays.length * size) as Uint8Array;
  arrays.forEach((array, row) => {
    data.set(converted(array, dtype, { row, name }) as Uint8Array, row * size);
  });
  return { dtype, shape: [arrays.length, ...shape], data };
}

function checkPadding(
  name: string,
  padding: number | RowPadding,
): Required<Omit<RowPadding, 'lengths' | 'to'>> & RowPadding {
  if (typeof padding === 'number') return { value: padding, multipleOf: 1 };
  checkOptions(op, padding, { value: 'number', to: 'number', multipleOf: 'number', lengths: 'string' });
  const { value = 0, multipleOf = 1, to } = padding;
  checkInteger(op, `multipleOf of pad '${name}'`, multipleOf, 1);
  if (to !== undefined) checkInteger(op, `to of pad '${name}'`, to, 0);
  return { ...padding, value, multipleOf };
}

/** Rows padded along their first axis. */
function padded(arrays: readonly HostArray[], name: string, dtype: HostDType, padding: number | RowPadding): HostArray {
  const { value, multipleOf, to } = checkPadding(name, padding);
  const rest = arrays[0]!.shape.slice(1);
  let longest = 0;
  arrays.forEach(({ shape }, row) => {
    if (shape.length === 0) throw mismatch({ row, name }, 'is a single number; only what has a length can be padded');
    if (shape.slice(1).join() !== rest.join())
      throw mismatch(
        { row, name },
        `has shape (${shape.join(', ')}), row 0 (${arrays[0]!.shape.join(', ')}); only the first axis is padded`,
      );
    if (to !== undefined && shape[0]! > to)
      throw mismatch({ row, name }, `has length ${shape[0]}, and pad says ${to}; cut it first, or pad to more`);
    longest = Math.max(longest, shape[0]!);
  });
  const length = Math.ceil((to ?? longest) / multipleOf) * multipleOf;
  const size = length * sizeOf(rest);
  const filler = converted({ dtype: 'float64', shape: [1], data: Float64Array.of(value) }, dtype, { row: 0, name })[0]!;
  const data = (allocateHost<HostDType>(dtype, arrays.length * size) as Float64Array).fill(filler as number);
  arrays.forEach((array, row) => {
    data.set(converted(array, dtype, { row, name }) as Float64Array, row * size);
  });
  return { dtype, shape: [arrays.length, length, ...rest], data } as HostArray;
}

/** One column of a batch. */
function column(values: readonly unknown[], name: string, options: CollateOptions): HostArray | string[] | undefined {
  if (typeof values[0] === 'string') {
    values.forEach((value, row) => {
      if (typeof value !== 'string') throw mismatch({ row, name }, `is ${shown(value)}, row 0 is text`);
    });
    return values as string[];
  }
  const arrays: HostArray[] = [];
  for (const [row, value] of values.entries()) {
    const array = arrayOf(value, { row, name });
    if (array === undefined && row === 0) return undefined;
    if (array === undefined) throw mismatch({ row, name }, `is ${shown(value)}, row 0 an array`);
    arrays.push(array);
  }
  const first = arrays[0]!;
  const wanted = options.dtypes?.[name];
  arrays.forEach(({ dtype }, row) => {
    if (wanted === undefined && dtype !== first.dtype)
      throw mismatch({ row, name }, `is ${dtype}, row 0 ${first.dtype}; set dtypes: { '${name}': '${first.dtype}' }`);
  });
  const dtype = wanted ?? first.dtype;
  const padding = options.pad?.[name];
  if (padding !== undefined) return padded(arrays, name, dtype, padding);
  arrays.forEach(({ shape }, row) => {
    if (shape.join() !== first.shape.join())
      throw mismatch(
        { row, name },
        `has shape (${shape.join(', ')}), row 0 (${first.shape.join(', ')}); pad them: batch(n, { pad: { ${name === '' ? 'x' : name}: 0 } })`,
      );
  });
  return stacked(arrays, name, dtype, first.shape);
}

/** Lists of tuples: a row is a list whose parts are no numbers. */
const isTuple = (value: unknown): value is readonly unknown[] =>
  isList(value) && value.length > 0 && !value.every((part) => typeof part === 'number' || isNumbers(part));
const isNumbers = (value: unknown): boolean =>
  isList(value) && value.every((part) => typeof part === 'number' || isList(part));

/** Rows in one batch. @throws DataError `mismatch` for rows that do not go together */
export function collate(rows: readonly unknown[], options: CollateOptions): unknown {
  const first = rows[0];
  if (isTuple(first)) {
    const parts = first.map((_, part) =>
      rows.map((row, index) => {
        if (!isList(row) || row.length !== first.length)
          throw mismatch({ row: index, name: '' }, `is ${shown(row)}, row 0 a list of ${first.length}`);
        return row[part] as unknown;
      }),
    );
    return parts.map((part) => collate(part, options));
  }
  const whole = column(rows, '', options);
  if (whole !== undefined) return whole;
  if (!isPlain(first))
    throw mismatch({ row: 0, name: '' }, `is ${shown(first)}; rows are objects of arrays, numbers and texts`);
  const batch: Record<string, unknown> = {};
  for (const name of Object.keys(first)) {
    const values = rows.map((row, index) => {
      if (!isPlain(row) || !Object.hasOwn(row, name)) throw mismatch({ row: index, name }, 'is missing; row 0 has it');
      return (row as Record<string, unknown>)[name];
    });
    const found = column(values, name, options);
    if (found === undefined)
      throw mismatch(
        { row: 0, name },
        `is ${shown(values[0])}; columns hold arrays, numbers or text${isTensor(values[0]) ? ', as await t.array() gives them' : ''}`,
      );
    put(batch, name, found);
    const padding = options.pad?.[name];
    if (typeof padding === 'object' && padding.lengths !== undefined) {
      const data = Int32Array.from(values, (value, row) => arrayOf(value, { row, name })!.shape[0]!);
      put(batch, padding.lengths, { dtype: 'int32', shape: [rows.length], data });
    }
  }
  return batch;
}

/** A column may have any name; none is taken twice. */
function put(batch: Record<string, unknown>, name: string, value: unknown): void {
  if (Object.hasOwn(batch, name)) throw new DataError('argument', name, `[${op}] two columns have the name '${name}'`);
  Object.defineProperty(batch, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Throws DataError `argument` for options that say nothing sensible. */
export function checkCollate({ dtypes, pad }: CollateOptions): void {
  for (const [name, dtype] of Object.entries(dtypes ?? {}))
    checkFits(
      op,
      `dtype of '${name}'`,
      dtype,
      typeof dtype === 'string' && Object.hasOwn(HOST_BYTES, dtype),
      `one of ${Object.keys(HOST_BYTES).join(', ')}`,
    );
  for (const [name, padding] of Object.entries(pad ?? {})) {
    checkFits(
      op,
      `pad of '${name}'`,
      padding,
      typeof padding === 'number' || isPlain(padding),
      'a number or an object',
    );
    checkPadding(name, padding);
  }
}
