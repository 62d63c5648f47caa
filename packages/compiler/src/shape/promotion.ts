/**
 * Promotion: the dtype two operands meet in, by the table of the Python Array API.
 *
 * https://data-apis.org/array-api/latest/API_specification/type_promotion.html. What that table leaves undefined (floats
 * with integers, bool with numbers, uint64 with signed integers) is an error. JavaScript numbers are weak: they take the
 * dtype of the tensor they meet.
 */
import { type DType, dtypeInfo, highest, isFloat, isInteger, lowest, DTypeError } from './dtype.ts';
import { ArgumentError } from './errors.ts';
import { shown } from './options.ts';
import { say } from './shown.ts';

const signedOf: Readonly<Record<1 | 2 | 4 | 8, DType>> = { 1: 'int8', 2: 'int16', 4: 'int32', 8: 'int64' };

/**
 * Result dtype of two dtypes, or null where the table defines none. float16 with bfloat16 gives float32.
 *
 * @example
 * promoteOrNull('int8', 'uint8'); // 'int16'
 * promoteOrNull('int32', 'float32'); // null
 */
export function promoteOrNull(a: DType, b: DType): DType | null {
  if (a === b) return a;
  if (typeof a !== 'string' || typeof b !== 'string') return null;
  const x = dtypeInfo[a];
  const y = dtypeInfo[b];
  if (!x || !y || x.kind === 'bool' || y.kind === 'bool') return null;
  if (x.kind === 'float' || y.kind === 'float') {
    if (x.kind !== y.kind) return null;
    if (x.bytes === y.bytes) return 'float32';
    return x.bytes > y.bytes ? a : b;
  }
  if (x.kind === y.kind) return x.bytes > y.bytes ? a : b;
  const unsigned = x.kind === 'uint' ? x : y;
  const signed = x.kind === 'uint' ? y : x;
  if (signed.bytes > unsigned.bytes) return signedOf[signed.bytes];
  if (unsigned.bytes === 8) return null;
  return signedOf[(unsigned.bytes * 2) as 2 | 4 | 8];
}

/**
 * Result dtype of two dtypes. Throws DTypeError in the name of `op` where the table defines none.
 *
 * @example
 * promoteTypes('add', 'float16', 'float32'); // 'float32'
 * promoteTypes('add', 'uint64', 'int64'); // throws DTypeError
 */
export function promoteTypes(op: string, a: DType, b: DType): DType {
  const dtype = promoteOrNull(a, b);
  if (dtype === null) {
    throw new DTypeError(op, say`no common dtype: ${a} and ${b}; convert one operand with cast()`, [a, b]);
  }
  return dtype;
}

/** Throws DTypeError in the name of `op` if an integer dtype cannot hold a number (a fraction is cut off first). */
export function checkRange(op: string, value: number | bigint, dtype: DType): void {
  if (!isInteger(dtype)) return;
  const whole = typeof value === 'number' ? Math.trunc(value) : value;
  if (whole >= lowest(dtype) && whole <= highest(dtype)) return;
  throw new DTypeError(
    op,
    say`${value} does not fit ${dtype}: it holds ${lowest(dtype)} .. ${highest(dtype)}; use a wider dtype, or cast() a tensor of one`,
    [dtype],
  );
}

/**
 * Throws DTypeError in the name of `op` unless a JavaScript number can stand for an element of `dtype`, ArgumentError unless it is one.
 *
 * @example
 * checkWeak('add', 300, 'int16');
 * checkWeak('add', 0.5, 'int16'); // throws DTypeError
 */
export function checkWeak(op: string, value: number | boolean | bigint, dtype: DType): void {
  if (typeof value !== 'number' && typeof value !== 'boolean' && typeof value !== 'bigint')
    throw new ArgumentError(op, say`not a tensor or number: ${shown(value)}; make a tensor with tensor()`);
  if (typeof value === 'bigint') {
    if (!isInteger(dtype))
      throw new DTypeError(
        op,
        say`no common dtype: bigint ${value}n and ${dtype}; bigints meet integers only, use a number`,
        [dtype],
      );
    checkRange(op, value, dtype);
  } else if (typeof value === 'boolean') {
    if (dtype !== 'bool')
      throw new DTypeError(op, say`no common dtype: boolean ${value} and ${dtype}; use a number`, [dtype]);
  } else if (dtype === 'bool') {
    throw new DTypeError(
      op,
      say`no common dtype: number ${value} and bool; convert the tensor with cast() or use true and false`,
      [dtype],
    );
  } else if (isInteger(dtype)) {
    if (!Number.isInteger(value))
      throw new DTypeError(
        op,
        say`number ${value} is no ${dtype}: the tensor holds ${dtype}; convert the tensor with cast() first`,
        [dtype],
      );
    checkRange(op, value, dtype);
  }
}

/**
 * Float dtype for operations that need one: floats stay, everything else becomes float32.
 *
 * @example
 * floatFor('float16'); // 'float16'
 * floatFor('int64'); // 'float32'
 */
export function floatFor(dtype: DType): DType {
  return isFloat(dtype) ? dtype : 'float32';
}
