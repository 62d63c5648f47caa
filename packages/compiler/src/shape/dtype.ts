/**
 * The number types of Polygrad: names, sizes, kinds, typed arrays.
 *
 * Everything that must know "what is a float16" asks this table; nothing else in the library lists dtypes.
 * Promotion between dtypes lives in `promotion.ts`; what an engine can hold is in its `caps.dtypes`.
 */
import { mustBe, told } from '#shown-as';
import { ArgumentError, OperationError } from './errors.ts';
import { say, shown } from './shown.ts';

/** Name of an element type, as in NumPy and the Python Array API. */
export type DType =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'bfloat16'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'uint16'
  | 'uint32'
  | 'uint64'
  | 'bool';

/** What family of arithmetic a dtype follows. */
export type DTypeKind = 'float' | 'int' | 'uint' | 'bool';

/** Typed arrays that hold tensor data on the host. 16-bit floats travel as their raw bits. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array;

/** Types of what is read of a tensor: the typed array of `data()`, what `item()` gives, and the elements of `array()`. */
interface HostTypes<Data extends TypedArray, Item extends number | bigint = number, Element = Item> {
  readonly data: Data;
  readonly item: Item;
  readonly element: Element;
}

/** Those types for each dtype. */
export interface HostTypesOf {
  readonly float32: HostTypes<Float32Array>;
  readonly float64: HostTypes<Float64Array>;
  readonly float16: HostTypes<Uint16Array>;
  readonly bfloat16: HostTypes<Uint16Array>;
  readonly int8: HostTypes<Int8Array>;
  readonly int16: HostTypes<Int16Array>;
  readonly int32: HostTypes<Int32Array>;
  readonly int64: HostTypes<BigInt64Array, bigint>;
  readonly uint8: HostTypes<Uint8Array>;
  readonly uint16: HostTypes<Uint16Array>;
  readonly uint32: HostTypes<Uint32Array>;
  readonly uint64: HostTypes<BigUint64Array, bigint>;
  readonly bool: HostTypes<Uint8Array, number, boolean>;
}

/** Facts about one dtype. `bytes` is the size of one element on the host. */
export interface DTypeInfo {
  readonly kind: DTypeKind;
  readonly bytes: 1 | 2 | 4 | 8;
  /** Small dense number used in plan signatures; never shown to users. */
  readonly id: number;
}

/** The table. Order of `id` is part of nothing persistent. */
export const dtypeInfo: Readonly<Record<DType, DTypeInfo>> = {
  float32: { kind: 'float', bytes: 4, id: 0 },
  float64: { kind: 'float', bytes: 8, id: 1 },
  float16: { kind: 'float', bytes: 2, id: 2 },
  bfloat16: { kind: 'float', bytes: 2, id: 3 },
  int8: { kind: 'int', bytes: 1, id: 4 },
  int16: { kind: 'int', bytes: 2, id: 5 },
  int32: { kind: 'int', bytes: 4, id: 6 },
  int64: { kind: 'int', bytes: 8, id: 7 },
  uint8: { kind: 'uint', bytes: 1, id: 8 },
  uint16: { kind: 'uint', bytes: 2, id: 9 },
  uint32: { kind: 'uint', bytes: 4, id: 10 },
  uint64: { kind: 'uint', bytes: 8, id: 11 },
  bool: { kind: 'bool', bytes: 1, id: 12 },
};

/** Throws unless the name is that of a dtype. */
export function checkDType(op: string, dtype: DType): void {
  if (typeof dtype !== 'string' || !Object.hasOwn(dtypeInfo, dtype))
    throw new ArgumentError(
      op,
      say`no such dtype: ${shown(dtype)}${told ? mustBe(dtype) : '; must be'} one of ${Object.keys(dtypeInfo).join(', ')}`,
    );
}

function kindOf(dtype: DType): DTypeKind {
  if (typeof dtype !== 'string' || dtypeInfo[dtype] === undefined) checkDType('dtype', dtype);
  return dtypeInfo[dtype].kind;
}

/** True for the four floating-point dtypes. */
export function isFloat(dtype: DType): boolean {
  return kindOf(dtype) === 'float';
}

/** The floats of 16 bits: stored as such, mostly computed in float32. */
export type SmallFloat = 'float16' | 'bfloat16';

/** True for float16 and bfloat16. */
export function isSmallFloat(dtype: DType): dtype is SmallFloat {
  return dtype === 'float16' || dtype === 'bfloat16';
}

/** float32 for 16-bit floats, any other dtype as it is. */
export function widenedFloat(dtype: DType): DType {
  return isSmallFloat(dtype) ? 'float32' : dtype;
}

/** True for signed and unsigned integers, not for bool. */
export function isInteger(dtype: DType): boolean {
  const kind = kindOf(dtype);
  return kind === 'int' || kind === 'uint';
}

/** The smallest value of a dtype; minus infinity for floats. A bigint where a number would not be exact. */
export function lowest(dtype: DType): number | bigint {
  const { kind, bytes } = dtypeInfo[dtype];
  if (kind === 'float') return Number.NEGATIVE_INFINITY;
  if (kind !== 'int') return 0;
  return bytes === 8 ? -(2n ** 63n) : -(2 ** (8 * bytes - 1));
}

/** The greatest value of a dtype; infinity for floats. */
export function highest(dtype: DType): number | bigint {
  const { kind, bytes } = dtypeInfo[dtype];
  if (kind === 'float') return Number.POSITIVE_INFINITY;
  if (kind === 'bool') return 1;
  const bits = 8 * bytes - (kind === 'int' ? 1 : 0);
  return bytes === 8 ? 2n ** BigInt(bits) - 1n : 2 ** bits - 1;
}

/** What changes nothing when it is combined with a value of the dtype: what a reduction of nothing gives. */
export function neutral(op: 'sum' | 'prod' | 'max' | 'min', dtype: DType): number | bigint {
  switch (op) {
    case 'sum':
      return 0;
    case 'prod':
      return 1;
    case 'max':
      return lowest(dtype);
    case 'min':
      return highest(dtype);
    default:
      return op satisfies never;
  }
}

/**
 * Dtypes that do not fit an operation or each other.
 *
 * @example
 * ones([2]).add(ones([2], { dtype: 'int32' })); // throws DTypeError
 */
export class DTypeError extends OperationError {
  override readonly name: string = 'DTypeError';
  readonly dtypes: readonly DType[];

  constructor(op: string, message: string, dtypes: readonly DType[] = []) {
    super(op, message, 'DTYPE');
    this.dtypes = dtypes;
  }
}
