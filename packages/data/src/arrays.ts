/**
 * Arrays in host memory: a typed array, its element type and its shape. The currency of this package.
 *
 * Not tensors: nothing here touches a device. So data sets can be read and cut up before an engine is chosen, in workers, and in programs that use
 * another library.
 */
import { checkFits, DataError, isListOf, shown } from './errors.ts';

/** Element types that files hold. 16-bit floats are carried as their bits. */
export type HostDType =
  | 'float64'
  | 'float32'
  | 'float16'
  | 'bfloat16'
  | 'int64'
  | 'int32'
  | 'int16'
  | 'int8'
  | 'uint64'
  | 'uint32'
  | 'uint16'
  | 'uint8'
  | 'bool';

/** The typed array that carries each element type. */
export interface HostData {
  float64: Float64Array;
  float32: Float32Array;
  /** IEEE binary16 bits. */
  float16: Uint16Array;
  /** bfloat16 bits: the upper half of a float32. */
  bfloat16: Uint16Array;
  int64: BigInt64Array;
  int32: Int32Array;
  int16: Int16Array;
  int8: Int8Array;
  uint64: BigUint64Array;
  uint32: Uint32Array;
  uint16: Uint16Array;
  uint8: Uint8Array;
  /** One byte per value, 0 or 1. */
  bool: Uint8Array;
}

/** Any typed array that carries tensor elements. */
export type HostTypedArray = HostData[HostDType];

/** An array in host memory: row-major elements and the shape they fill exactly. */
export interface HostArray<D extends HostDType = HostDType> {
  readonly dtype: D;
  readonly shape: readonly number[];
  readonly data: HostData[D];
}

/** Bytes of one element of each type. */
export const HOST_BYTES: Readonly<Record<HostDType, number>> = {
  float64: 8,
  float32: 4,
  float16: 2,
  bfloat16: 2,
  int64: 8,
  int32: 4,
  int16: 2,
  int8: 1,
  uint64: 8,
  uint32: 4,
  uint16: 2,
  uint8: 1,
  bool: 1,
};

type HostArrayConstructor<A> = {
  new (length: number): A;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): A;
};

const CONSTRUCTORS: { readonly [D in HostDType]: HostArrayConstructor<HostData[D]> } = {
  float64: Float64Array,
  float32: Float32Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int64: BigInt64Array,
  int32: Int32Array,
  int16: Int16Array,
  int8: Int8Array,
  uint64: BigUint64Array,
  uint32: Uint32Array,
  uint16: Uint16Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

const LOST =
  'the data has lost its memory: 0 elements are left, for its ArrayBuffer was detached or shrunk; copy it before it is transferred';

/**
 * What is wrong with a view whose ArrayBuffer was detached (transferred, or WebAssembly memory grew) or shrunk; undefined if nothing is.
 * Such a view says that it has no elements, as an empty one does.
 */
export function lostMemory(view: HostTypedArray): string | undefined {
  if (view.length > 0) return undefined;
  try {
    // Methods ask for the memory, the length does not.
    view.keys();
    return undefined;
  } catch {
    return LOST;
  }
}

/** What is wrong with an array that is to hold elements of a dtype; undefined if nothing is. */
export function wrongArray(dtype: HostDType, data: unknown): string | undefined {
  const Constructor = typeof dtype === 'string' && Object.hasOwn(CONSTRUCTORS, dtype) ? CONSTRUCTORS[dtype] : undefined;
  if (Constructor === undefined)
    return `unknown dtype ${shown(dtype)}; give one of ${Object.keys(CONSTRUCTORS).join(', ')}`;
  if (data instanceof Constructor) return lostMemory(data as HostTypedArray);
  return `${dtype} needs a ${Constructor.name}: the data is ${shown(data)}; convert it first`;
}

export const isExtent = (extent: unknown): boolean => Number.isSafeInteger(extent) && (extent as number) >= 0;

/** Throws DataError `argument` unless a value is an array in memory; that the shape has as many elements is not asked. */
export function checkHostArray(op: string, name: string, array: HostArray): void {
  checkFits(op, name, array, typeof array === 'object' && array !== null, 'an array { dtype, shape, data }');
  const wrong = wrongArray(array.dtype, array.data);
  if (wrong !== undefined) throw new DataError('argument', name, `[${op}] ${name}: ${wrong}`);
  checkFits(op, `the shape of ${name}`, array.shape, isListOf(array.shape, isExtent), 'a list of whole numbers');
}

/**
 * The bytes of a file in memory.
 *
 * @throws DataError `argument` for what is neither a Uint8Array nor an ArrayBuffer, or was transferred away
 */
export function bytesOf(op: string, file: unknown, source: string): Uint8Array {
  // By its tag: what another realm made is as good.
  const tag = Object.prototype.toString.call(file);
  if (tag === '[object Uint8Array]') {
    const lost = lostMemory(file as Uint8Array);
    if (lost === undefined) return file as Uint8Array;
    throw new DataError('argument', source, `[${op}] ${source}: ${lost}`);
  }
  if (tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]') {
    try {
      return new Uint8Array(file as ArrayBuffer);
    } catch {
      throw new DataError('argument', source, `[${op}] ${source}: ${LOST}`);
    }
  }
  const kind = typeof file === 'object' && file !== null ? `a ${tag.slice(8, -1)}` : shown(file);
  throw new DataError('argument', source, `[${op}] ${source} is ${kind}; give a Uint8Array or an ArrayBuffer`);
}

/** New zeroed elements of type `dtype`. */
export function allocateHost<D extends HostDType>(dtype: D, length: number): HostData[D] {
  const Constructor: HostArrayConstructor<HostData[D]> = CONSTRUCTORS[dtype];
  return new Constructor(length);
}

/** A view of `length` elements of type `dtype` in `buffer`; `byteOffset` must be a multiple of the element size. */
export function viewHost<D extends HostDType>(
  dtype: D,
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
): HostData[D] {
  const Constructor: HostArrayConstructor<HostData[D]> = CONSTRUCTORS[dtype];
  return new Constructor(buffer, byteOffset, length);
}

/** The number of elements of a shape. */
export function sizeOf(shape: readonly number[]): number {
  let size = 1;
  for (const extent of shape) size *= extent;
  return size;
}

/** True on machines whose typed arrays put the least significant byte first (all that run Node today). */
export const LITTLE_ENDIAN: boolean = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Reverses the bytes of every element in place: big-endian files on little-endian machines and the other way round. */
export function swapBytes(bytes: Uint8Array, elementBytes: number): void {
  for (let start = 0; start < bytes.length; start += elementBytes) {
    for (let low = start, high = start + elementBytes - 1; low < high; low++, high--) {
      const byte = bytes[low]!;
      bytes[low] = bytes[high]!;
      bytes[high] = byte;
    }
  }
}

/** The elements of an array as files hold them: the least significant byte first. A view where the machine does so too. */
export function littleEndianBytes(array: HostArray): Uint8Array {
  const { buffer, byteOffset, byteLength } = array.data;
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  if (LITTLE_ENDIAN) return bytes;
  const swapped = bytes.slice();
  swapBytes(swapped, HOST_BYTES[array.dtype]);
  return swapped;
}
