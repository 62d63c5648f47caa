/**
 * Scalar meaning of the value operations, per dtype, for the reference interpreter.
 *
 * Values are JavaScript numbers (bool 0 or 1; 64-bit integers are bigint). Every result is rounded or wrapped to its
 * dtype, so float32 arithmetic rounds once per operation. Functions go through float64 and are then rounded.
 */
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { fromBFloat16, fromFloat16, toBFloat16, toFloat16 } from '../shape/host.ts';
import { erf } from './erf.ts';
import { fma32, fma64 } from './exact-fma.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from './ir.ts';

export type Value = number | bigint;

/** The nearest value of the dtype: rounding for floats, wrapping for integers, `!= 0` for bool. */
export function toDType(dtype: DType, x: Value): Value {
  switch (dtype) {
    case 'float64':
      return Number(x);
    case 'float32':
      return Math.fround(Number(x));
    case 'float16':
      return fromFloat16(toFloat16(Number(x)));
    case 'bfloat16':
      return fromBFloat16(toBFloat16(Number(x)));
    case 'int8':
      return (Number(x) << 24) >> 24;
    case 'int16':
      return (Number(x) << 16) >> 16;
    case 'int32':
      return Number(x) | 0;
    case 'uint8':
      return Number(x) & 0xff;
    case 'uint16':
      return Number(x) & 0xffff;
    case 'uint32':
      return Number(x) >>> 0;
    case 'int64':
      return BigInt.asIntN(64, BigInt(x));
    case 'uint64':
      return BigInt.asUintN(64, BigInt(x));
    case 'bool':
      return x ? 1 : 0;
    default:
      return dtype satisfies never;
  }
}

const halfEven = (x: number): number => {
  const floor = Math.floor(x);
  const rest = x - floor;
  const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
  const rounded = up ? floor + 1 : floor;
  return rounded === 0 && (x < 0 || Object.is(x, -0)) ? -0 : rounded;
};

type FloatUnary = Exclude<UnaryOp, 'NOT' | 'ISNAN'>;
const functions: Readonly<Record<FloatUnary, (x: number) => number>> = {
  NEG: (x) => -x,
  ABS: Math.abs,
  SQRT: Math.sqrt,
  FLOOR: Math.floor,
  CEIL: Math.ceil,
  TRUNC: Math.trunc,
  ROUND: halfEven,
  EXP: Math.exp,
  EXP2: (x) => 2 ** x,
  EXPM1: Math.expm1,
  LOG: Math.log,
  LOG2: Math.log2,
  LOG1P: Math.log1p,
  SIN: Math.sin,
  COS: Math.cos,
  TAN: Math.tan,
  ASIN: Math.asin,
  ACOS: Math.acos,
  ATAN: Math.atan,
  SINH: Math.sinh,
  COSH: Math.cosh,
  TANH: Math.tanh,
  ERF: erf,
  RSQRT: (x) => 1 / Math.sqrt(x),
  RECIP: (x) => 1 / x,
};

/** One unary operation on a value of `dtype`. */
export function evalUnary(op: UnaryOp, dtype: DType, x: Value): Value {
  if (op === 'ISNAN') return Number.isNaN(x) ? 1 : 0;
  if (op === 'NOT') return dtype === 'bool' ? (x ? 0 : 1) : toDType(dtype, typeof x === 'bigint' ? ~x : ~x);
  if (typeof x === 'bigint') {
    if (op === 'NEG') return toDType(dtype, -x);
    if (op === 'ABS') return toDType(dtype, x < 0n ? -x : x);
    throw new Error(`[interpret] ${op} has no meaning for ${dtype}`);
  }
  return toDType(dtype, functions[op](x));
}

function divide(op: 'IDIV' | 'IREM', dtype: DType, a: Value, b: Value): Value {
  if (Number(b) === 0) throw new RangeError(`[interpret] ${op} by zero: ${a} / ${b}`);
  if (typeof a === 'bigint' && typeof b === 'bigint') return toDType(dtype, op === 'IDIV' ? a / b : a % b);
  const [x, y] = [Number(a), Number(b)];
  return toDType(dtype, op === 'IDIV' ? Math.trunc(x / y) : x % y);
}

function compareFloats(op: 'MAX' | 'MIN', a: number, b: number): number {
  return op === 'MAX' ? Math.max(a, b) : Math.min(a, b); // Both propagate NaN and order -0 below 0.
}

/** One binary operation on values of `dtype` (for comparisons: the operands' dtype). */
export function evalBinary(op: BinaryOp, dtype: DType, a: Value, b: Value): Value {
  switch (op) {
    case 'LT':
      return a < b ? 1 : 0;
    case 'LE':
      return a <= b ? 1 : 0;
    case 'EQ':
      return a === b ? 1 : 0;
    case 'IDIV':
    case 'IREM':
      return divide(op, dtype, a, b);
    case 'MULHI':
      return Number((BigInt(a) * BigInt(b)) >> 32n);
    default:
      break;
  }
  if (typeof a === 'bigint' || typeof b === 'bigint') return toDType(dtype, wide(op, BigInt(a), BigInt(b)));
  return toDType(dtype, narrow(op, dtype, a, b));
}

type Arithmetic = Exclude<BinaryOp, 'LT' | 'LE' | 'EQ' | 'IDIV' | 'IREM' | 'MULHI'>;

function narrow(op: Arithmetic, dtype: DType, a: number, b: number): number {
  const float = dtypeInfo[dtype].kind === 'float';
  switch (op) {
    case 'ADD':
      return a + b;
    case 'SUB':
      return a - b;
    case 'MUL':
      return float ? a * b : Math.imul(a, b);
    case 'DIV':
      return a / b;
    case 'FREM':
      return a % b;
    case 'MAX':
    case 'MIN':
      return compareFloats(op, a, b);
    case 'POW':
      return a === 1 ? 1 : a ** b;
    case 'ATAN2':
      return Math.atan2(a, b);
    case 'AND':
      return a & b;
    case 'OR':
      return a | b;
    case 'XOR':
      return a ^ b;
    case 'SHL':
      return a << b;
    case 'SHR':
      return dtypeInfo[dtype].kind === 'uint' ? a >>> b : a >> b;
    default:
      return op satisfies never;
  }
}

function wide(op: Arithmetic, a: bigint, b: bigint): bigint {
  switch (op) {
    case 'ADD':
      return a + b;
    case 'SUB':
      return a - b;
    case 'MUL':
      return a * b;
    case 'MAX':
      return a > b ? a : b;
    case 'MIN':
      return a < b ? a : b;
    case 'AND':
      return a & b;
    case 'OR':
      return a | b;
    case 'XOR':
      return a ^ b;
    case 'SHL':
      return a << (b & 63n);
    case 'SHR':
      return a >> (b & 63n);
    case 'DIV':
    case 'FREM':
    case 'POW':
    case 'ATAN2':
      throw new Error(`[interpret] ${op} has no meaning for 64-bit integers`);
    default:
      return op satisfies never;
  }
}

/** One ternary operation; the condition of WHERE is `a`. MULADD is fused here. */
export function evalTernary(op: TernaryOp, dtype: DType, a: Value, b: Value, c: Value): Value {
  if (op === 'WHERE') return a ? b : c;
  if (dtypeInfo[dtype].kind !== 'float') return evalBinary('ADD', dtype, evalBinary('MUL', dtype, a, b), c);
  const [x, y, z] = [Number(a), Number(b), Number(c)];
  return dtype === 'float64' ? fma64(x, y, z) : toDType(dtype, fma32(x, y, z));
}

/** Conversion with the contract's saturation. */
export function evalCast(from: DType, to: DType, x: Value): Value {
  const target = dtypeInfo[to];
  if (dtypeInfo[from].kind !== 'float' || target.kind === 'float') return toDType(to, x);
  if (target.kind === 'bool') return Number(x) !== 0 ? 1 : 0;
  const value = Number(x);
  if (Number.isNaN(value)) return toDType(to, target.bytes === 8 ? 0n : 0);
  const bits = BigInt(target.bytes * 8);
  const low = target.kind === 'uint' ? 0n : -(1n << (bits - 1n));
  const high = target.kind === 'uint' ? (1n << bits) - 1n : (1n << (bits - 1n)) - 1n;
  const clamped = value <= Number(low) ? low : value >= Number(high) ? high : BigInt(Math.trunc(value));
  return toDType(to, target.bytes === 8 ? clamped : Number(clamped));
}
