/**
 * Constant folding: what an operation on literals gives, exactly as an engine would compute it.
 *
 * Only operations whose result is fixed by IEEE-754 or by integer arithmetic are folded; EXP, SIN and the like are left
 * to the engine, whose own rounding a fold would not reproduce. `undefined` means "not folded".
 */
import type { DType } from '../shape/dtype.ts';
import { type Literal, normalize } from '../shape/rounding.ts';
import type { BinaryOp, UnaryOp } from './ir.ts';

const f64 = new Float64Array(1);
const u64 = new BigUint64Array(f64.buffer);
const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);
const i32 = new Int32Array(f32.buffer);
const i64 = new BigInt64Array(f64.buffer);

/** Smallest and largest value of the small integer dtypes and bool; infinities elsewhere. */
export const dtypeRange: Readonly<Record<DType, readonly [number, number]>> = {
  float32: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  float64: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  float16: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  bfloat16: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  int8: [-128, 127],
  int16: [-32768, 32767],
  int32: [-2147483648, 2147483647],
  int64: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  uint8: [0, 255],
  uint16: [0, 65535],
  uint32: [0, 4294967295],
  uint64: [0, Number.POSITIVE_INFINITY],
  bool: [0, 1],
};

/** Result of a unary operation on a literal of `dtype`. */
export function foldUnary(op: UnaryOp, dtype: DType, x: Literal): Literal | undefined {
  if (typeof x === 'bigint') {
    if (op === 'NEG') return normalize(dtype, -x);
    if (op === 'NOT') return normalize(dtype, ~x);
    if (op === 'ABS') return normalize(dtype, x < 0n ? -x : x);
    return undefined;
  }
  switch (op) {
    case 'NEG':
      return normalize(dtype, -x);
    case 'NOT':
      return dtype === 'bool' ? 1 - x : normalize(dtype, ~x);
    case 'ABS':
      return normalize(dtype, Math.abs(x));
    case 'SQRT':
      return normalize(dtype, Math.sqrt(x));
    case 'FLOOR':
      return Math.floor(x);
    case 'CEIL':
      return Math.ceil(x);
    case 'TRUNC':
      return Math.trunc(x);
    case 'ISNAN':
      return Number.isNaN(x) ? 1 : 0;
    default:
      return undefined;
  }
}

/** Result of a binary operation on two literals of `dtype`. */
export function foldBinary(op: BinaryOp, dtype: DType, a: Literal, b: Literal): Literal | undefined {
  if (typeof a === 'bigint' || typeof b === 'bigint') return foldBig(op, dtype, BigInt(a), BigInt(b));
  const float = dtype.includes('float');
  switch (op) {
    case 'ADD':
      return normalize(dtype, a + b);
    case 'SUB':
      return normalize(dtype, a - b);
    case 'MUL':
      return normalize(dtype, float ? a * b : Math.imul(a, b));
    case 'DIV':
      return float ? normalize(dtype, a / b) : undefined;
    case 'IDIV':
      return b === 0 ? undefined : normalize(dtype, Math.trunc(a / b));
    case 'IREM':
      return b === 0 ? undefined : normalize(dtype, (a % b) + 0);
    case 'FREM':
      return normalize(dtype, a % b);
    case 'MAX':
      return Math.max(a, b);
    case 'MIN':
      return Math.min(a, b);
    case 'AND':
      return normalize(dtype, a & b);
    case 'OR':
      return normalize(dtype, a | b);
    case 'XOR':
      return normalize(dtype, a ^ b);
    case 'SHL':
      return b >= 0 && b < bitsOf(dtype) ? normalize(dtype, a << b) : undefined;
    case 'SHR':
      return b >= 0 && b < bitsOf(dtype) ? normalize(dtype, dtype.startsWith('u') ? a >>> b : a >> b) : undefined;
    case 'LT':
      return a < b ? 1 : 0;
    case 'LE':
      return a <= b ? 1 : 0;
    case 'EQ':
      return a === b ? 1 : 0;
    case 'MULHI':
      return Number((BigInt(a) * BigInt(b)) >> 32n);
    case 'POW':
    case 'ATAN2':
      return undefined;
    default:
      return op satisfies never;
  }
}

function foldBig(op: BinaryOp, dtype: DType, a: bigint, b: bigint): Literal | undefined {
  switch (op) {
    case 'ADD':
      return normalize(dtype, a + b);
    case 'SUB':
      return normalize(dtype, a - b);
    case 'MUL':
      return normalize(dtype, a * b);
    case 'IDIV':
      return b === 0n ? undefined : normalize(dtype, a / b);
    case 'IREM':
      return b === 0n ? undefined : normalize(dtype, a % b);
    case 'MAX':
      return a > b ? a : b;
    case 'MIN':
      return a < b ? a : b;
    case 'AND':
      return normalize(dtype, a & b);
    case 'OR':
      return normalize(dtype, a | b);
    case 'XOR':
      return normalize(dtype, a ^ b);
    case 'SHL':
      return b >= 0n && b < 64n ? normalize(dtype, a << b) : undefined;
    case 'SHR':
      return b >= 0n && b < 64n ? normalize(dtype, a >> b) : undefined;
    case 'LT':
      return a < b ? 1 : 0;
    case 'LE':
      return a <= b ? 1 : 0;
    case 'EQ':
      return a === b ? 1 : 0;
    default:
      return undefined;
  }
}

function bitsOf(dtype: DType): number {
  if (dtype.endsWith('64')) return 64;
  if (dtype.endsWith('32')) return 32;
  return dtype.endsWith('16') ? 16 : 8;
}

/** Value conversion of a literal: float to integer saturates and NaN gives 0, integers wrap, anything to bool is `!= 0`. */
export function foldCast(from: DType, to: DType, x: Literal): Literal {
  if (to === 'bool') return typeof x === 'bigint' ? (x !== 0n ? 1 : 0) : x !== 0 ? 1 : 0;
  if (!from.includes('float') || to.includes('float')) return normalize(to, x);
  const v = x as number;
  if (Number.isNaN(v)) return normalize(to, 0);
  const t = Math.trunc(v);
  if (to === 'int64') return t >= 2 ** 63 ? 2n ** 63n - 1n : t < -(2 ** 63) ? -(2n ** 63n) : BigInt(t);
  if (to === 'uint64') return t >= 2 ** 64 ? 2n ** 64n - 1n : t <= 0 ? 0n : BigInt(t);
  const [lo, hi] = dtypeRange[to];
  return Math.min(Math.max(t, lo), hi) + 0;
}

/** The same bits as another dtype of the same size, where that is exact in numbers (NaN payloads are not). */
export function foldBitcast(from: DType, to: DType, x: Literal): Literal | undefined {
  if (typeof x === 'number' && Number.isNaN(x)) return undefined;
  if (from === 'float32' && (to === 'int32' || to === 'uint32')) {
    f32[0] = x as number;
    return (to === 'int32' ? i32 : u32)[0];
  }
  if ((from === 'int32' || from === 'uint32') && to === 'float32') {
    u32[0] = x as number;
    return Number.isNaN(f32[0]) ? undefined : f32[0];
  }
  if (from === 'float64' && (to === 'int64' || to === 'uint64')) {
    f64[0] = x as number;
    return (to === 'int64' ? i64 : u64)[0];
  }
  if ((from === 'int64' || from === 'uint64') && to === 'float64') {
    u64[0] = BigInt.asUintN(64, x as bigint);
    return Number.isNaN(f64[0]) ? undefined : f64[0];
  }
  return from.includes('float') || to.includes('float') ? undefined : normalize(to, x);
}
