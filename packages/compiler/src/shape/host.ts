/** Host arrays: which typed array holds a dtype, and how numbers become its elements and back. */
import { type DType, isFloat, type TypedArray } from './dtype.ts';

interface HostArray {
  new (length: number): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): TypedArray;
}

/** Typed array of each dtype. bool holds 0 and 1; 16-bit floats hold their bits. */
export const hostArrays: Readonly<Record<DType, HostArray>> = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

/** Zeroed host array of a dtype. */
export function hostArray(dtype: DType, length: number): TypedArray {
  return new hostArrays[dtype](length);
}

const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);
const f64 = new Float64Array(1);
const bits64 = new BigUint64Array(f64.buffer);

/** Bits of a number as bfloat16, rounded to nearest even. */
export function toBFloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  // Exact in float32 once rounded; float32 in between would round twice.
  f32[0] = normalize('bfloat16', value) as number;
  return u32[0]! >>> 16;
}

/** Number of bfloat16 bits. */
export function fromBFloat16(bits: number): number {
  u32[0] = bits << 16;
  return f32[0]!;
}

/** Bits of a number as float16, rounded to nearest even. */
export function toFloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const size = Math.abs(normalize('float16', value) as number);
  // With the exponent of a float32 made less by the difference of the biases, its bits begin with those of the float16.
  f32[0] = size * 2 ** -112;
  return (value < 0 || Object.is(value, -0) ? 0x8000 : 0) | (size > 65504 ? 0x7c00 : u32[0]! >>> 13);
}

/** Number of float16 bits. */
export function fromFloat16(bits: number): number {
  // As a float32 is read with another bias; NaN and infinities have the greatest exponent.
  u32[0] = ((bits & 0x7fff) << 13) | ((bits & 0x7c00) === 0x7c00 ? 0x7f800000 : 0);
  const size = f32[0]! * 2 ** 112;
  return bits & 0x8000 ? -size : size;
}

/** Stores a number, boolean or bigint as an element. Fractions are cut off for integers; large values wrap, NaN and infinities give 0. */
export function setElement(array: TypedArray, dtype: DType, index: number, value: number | boolean | bigint): void {
  switch (dtype) {
    case 'int64':
    case 'uint64':
      (array as BigInt64Array)[index] = normalize(dtype, typeof value === 'boolean' ? Number(value) : value) as bigint;
      return;
    case 'bool':
      (array as Uint8Array)[index] = Number(value) === 0 ? 0 : 1;
      return;
    case 'float16':
      (array as Uint16Array)[index] = toFloat16(Number(value));
      return;
    case 'bfloat16':
      (array as Uint16Array)[index] = toBFloat16(Number(value));
      return;
    default:
      (array as Float64Array)[index] = Number(value);
  }
}

/** Reads an element: a boolean for bool, a bigint for 64-bit integers, otherwise a number. */
export function getElement(array: TypedArray, dtype: DType, index: number): number | boolean | bigint {
  const raw = array[index]!;
  switch (dtype) {
    case 'bool':
      return raw !== 0;
    case 'float16':
      return fromFloat16(raw as number);
    case 'bfloat16':
      return fromBFloat16(raw as number);
    default:
      return raw;
  }
}

// The nearest value of a dtype to a number: rounding for floats, wrapping for integers.

/** An element as a JavaScript value: bigint for 64-bit integers, 0 or 1 for bool. */
export type Literal = number | bigint;

/** Rounds to a binary float with `digits` significand bits, least exponent `emin` and largest finite value `max`. Ties to even. */
function roundFloat(x: number, digits: number, emin: number, max: number): number {
  if (x === 0) return x;
  const size = Math.min(Math.abs(x), 2 * max);
  f64[0] = size;
  const exponent = Math.max(Number(bits64[0]! >> 52n) - 1023, emin);
  // Sums with such a number have steps as large as those of the float, and are rounded to them.
  const coarse = 1.5 * 2 ** (exponent - digits + 53);
  const near = size + coarse - coarse;
  const y = near > max ? Number.POSITIVE_INFINITY : near;
  return x < 0 ? -y : y;
}

/**
 * A number that rounds to any float shorter than float64 as the literal does: of large bigints the low bits are gathered into one, so
 * that the number is exact and nothing is rounded twice.
 */
function sticky(v: Literal): number {
  if (typeof v === 'number' || (v < 2n ** 53n && v > -(2n ** 53n))) return Number(v);
  const low = v & 0xfffn;
  return Number(low === 0n ? v : v - low + 0x800n);
}

/** The nearest value a dtype can hold; integers wrap. 64-bit integers are bigint, everything else number. */
export function normalize(dtype: DType, v: Literal): Literal {
  switch (dtype) {
    case 'float64':
      return Number(v);
    case 'float32':
      return Math.fround(sticky(v));
    case 'float16':
      return roundFloat(sticky(v), 11, -14, 65504);
    case 'bfloat16':
      return roundFloat(sticky(v), 8, -126, 3.3895313892515355e38);
    case 'int64':
      return BigInt.asIntN(64, toBig(v));
    case 'uint64':
      return BigInt.asUintN(64, toBig(v));
    case 'bool':
      return Number(v) !== 0 ? 1 : 0;
    default: {
      const n = typeof v === 'bigint' ? Number(BigInt.asIntN(32, v)) : v;
      if (dtype === 'int32') return n | 0;
      if (dtype === 'uint32') return n >>> 0;
      if (dtype === 'int8') return (n << 24) >> 24;
      if (dtype === 'int16') return (n << 16) >> 16;
      return dtype === 'uint8' ? n & 0xff : n & 0xffff;
    }
  }
}

/** Floats of a dtype: the nearest of them to a number. */
export interface Floats {
  readonly dtype: DType;
  readonly nearest: (value: number) => number;
}

/** Those of a dtype, or null for integers and bool. */
export function floatsOf(dtype: DType): Floats | null {
  return isFloat(dtype) ? { dtype, nearest: (value) => normalize(dtype, value) as number } : null;
}

function toBig(v: Literal): bigint {
  if (typeof v === 'bigint') return v;
  return Number.isFinite(v) ? BigInt(Math.trunc(v)) : 0n;
}
