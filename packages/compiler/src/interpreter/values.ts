/**
 * Scalar meaning of the value operations, per dtype, for the reference interpreter.
 *
 * Values are JavaScript numbers (bool 0 or 1; 64-bit integers are bigint). Every result is rounded or wrapped to its
 * dtype, so float32 arithmetic rounds once per operation. Functions go through float64 and are then rounded.
 */
import type { BinaryOp, TernaryOp, UnaryOp } from '../ir/operations.ts';
import { foldCast } from '../ir/simplify/fold.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { getElement, hostArrays, normalize, setElement } from '../shape/host.ts';

export type Value = number | bigint;
type Unary = (x: Value) => Value;
type Binary = (x: Value, y: Value) => Value;
type Ternary = (x: Value, y: Value, z: Value) => Value;

/** The nearest value of the dtype: rounding for floats, wrapping for integers, `!= 0` for bool. */
export function toDType(dtype: DType, x: Value): Value {
  return normalize(dtype, x);
}

/** Rounding of results, the common dtypes without a detour. */
function rounding(dtype: DType): (x: number) => Value {
  switch (dtype) {
    case 'float32':
      return Math.fround;
    case 'float64':
      return (x) => x;
    case 'int32':
      return (x) => x | 0;
    case 'uint32':
      return (x) => x >>> 0;
    case 'bool':
      return (x) => (x === 0 ? 0 : 1);
    default:
      return (x) => normalize(dtype, x);
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
  LOG10: Math.log10,
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
  ROUNDED: (x) => x,
};

function unsupported(op: string, dtype: DType): never {
  throw new Error(`[interpret] ${op} has no meaning for ${dtype}`);
}

/** One unary operation on values of `dtype`. */
export function unaryFunction(op: UnaryOp, dtype: DType): Unary {
  if (op === 'ISNAN') return (x) => (Number.isNaN(x) ? 1 : 0);
  if (dtype === 'int64' || dtype === 'uint64') return wideUnary(op, dtype);
  const round = rounding(dtype);
  const number =
    (f: (x: number) => number): Unary =>
    (x) =>
      round(f(x as number));
  if (op === 'NOT') return dtype === 'bool' ? (x) => (x === 0 ? 1 : 0) : number((x) => ~x);
  return number(functions[op]);
}

function wideUnary(op: UnaryOp, dtype: DType): Unary {
  const wide =
    (f: (x: bigint) => bigint): Unary =>
    (x) =>
      normalize(dtype, f(x as bigint));
  if (op === 'NEG') return wide((x) => -x);
  if (op === 'NOT') return wide((x) => ~x);
  return op === 'ABS' ? wide((x) => (x < 0n ? -x : x)) : unsupported(op, dtype);
}

type Compare = 'LT' | 'LE' | 'EQ';
const comparisons: Readonly<Record<Compare, Binary>> = {
  LT: (a, b) => (a < b ? 1 : 0),
  LE: (a, b) => (a <= b ? 1 : 0),
  EQ: (a, b) => (a === b ? 1 : 0),
};

type Arithmetic = Exclude<BinaryOp, Compare | 'IDIV' | 'IREM' | 'MULHI'>;
const narrow: Readonly<Record<Arithmetic, (a: number, b: number) => number>> = {
  ADD: (a, b) => a + b,
  SUB: (a, b) => a - b,
  MUL: (a, b) => a * b,
  DIV: (a, b) => a / b,
  FREM: (a, b) => a % b,
  // Both propagate NaN and order -0 below 0.
  MAX: Math.max,
  MIN: Math.min,
  // JavaScript's 1 ** Infinity is NaN.
  POW: (a, b) => (a === 1 ? 1 : a ** b),
  ATAN2: Math.atan2,
  AND: (a, b) => a & b,
  OR: (a, b) => a | b,
  XOR: (a, b) => a ^ b,
  SHL: (a, b) => a << b,
  SHR: (a, b) => a >> b,
};
// biome-ignore-start lint/complexity/useMathMinMax: bigint
const wide: Readonly<Partial<Record<Arithmetic, (a: bigint, b: bigint) => bigint>>> = {
  ADD: (a, b) => a + b,
  SUB: (a, b) => a - b,
  MUL: (a, b) => a * b,
  MAX: (a, b) => (a > b ? a : b),
  MIN: (a, b) => (a < b ? a : b),
  AND: (a, b) => a & b,
  OR: (a, b) => a | b,
  XOR: (a, b) => a ^ b,
  SHL: (a, b) => a << (b & 63n),
  SHR: (a, b) => a >> (b & 63n),
};
// biome-ignore-end lint/complexity/useMathMinMax: bigint

/** Integer division truncates; by zero it gives 0. */
function division(op: 'IDIV' | 'IREM', dtype: DType): Binary {
  const round = rounding(dtype);
  return (a, b) => {
    if (Number(b) === 0) return normalize(dtype, 0);
    if (typeof a === 'bigint' && typeof b === 'bigint') return normalize(dtype, op === 'IDIV' ? a / b : a % b);
    const [x, y] = [a as number, b as number];
    return round(op === 'IDIV' ? Math.trunc(x / y) : x % y);
  };
}

/** One binary operation on values of `dtype` (for comparisons: the operands' dtype). */
export function binaryFunction(op: BinaryOp, dtype: DType): Binary {
  if (op === 'LT' || op === 'LE' || op === 'EQ') return comparisons[op];
  if (op === 'IDIV' || op === 'IREM') return division(op, dtype);
  if (op === 'MULHI') return (a, b) => Number((BigInt(a) * BigInt(b)) >> 32n);
  if (dtype === 'int64' || dtype === 'uint64') {
    const f = wide[op] ?? unsupported(op, dtype);
    return (a, b) => normalize(dtype, f(a as bigint, b as bigint));
  }
  const round = rounding(dtype);
  const { kind } = dtypeInfo[dtype];
  let f = narrow[op];
  if (op === 'MUL' && kind !== 'float') f = Math.imul;
  if (op === 'SHR' && kind === 'uint') f = (a, b) => a >>> b;
  return (a, b) => round(f(a as number, b as number));
}

/** One ternary operation; the condition of WHERE comes first. MULADD is fused here. */
export function ternaryFunction(op: TernaryOp, dtype: DType): Ternary {
  if (op === 'WHERE') return (a, b, c) => (a ? b : c);
  if (dtype === 'float64') return (a, b, c) => fma64(a as number, b as number, c as number);
  if (dtypeInfo[dtype].kind === 'float')
    return (a, b, c) => normalize(dtype, fma32(a as number, b as number, c as number));
  const [product, sum] = [binaryFunction('MUL', dtype), binaryFunction('ADD', dtype)];
  return (a, b, c) => sum(product(a, b), c);
}

/** Conversion with the contract's saturation. */
export function castFunction(from: DType, to: DType): Unary {
  if (dtypeInfo[from].kind !== 'float' || dtypeInfo[to].kind === 'float') {
    const round = rounding(to);
    const small = from !== 'int64' && from !== 'uint64' && to !== 'int64' && to !== 'uint64';
    return small ? (x) => round(x as number) : (x) => normalize(to, x);
  }
  return (x) => foldCast(from, to, x);
}

export function evalUnary(op: UnaryOp, dtype: DType, x: Value): Value {
  return unaryFunction(op, dtype)(x);
}

export function evalBinary(op: BinaryOp, dtype: DType, a: Value, b: Value): Value {
  return binaryFunction(op, dtype)(a, b);
}

export function evalTernary(op: TernaryOp, dtype: DType, a: Value, b: Value, c: Value): Value {
  return ternaryFunction(op, dtype)(a, b, c);
}

export function evalCast(from: DType, to: DType, x: Value): Value {
  return castFunction(from, to)(x);
}

// a * b + c rounded once, in software: the meaning of FMA for the reference interpreter.

const float = new Float64Array(1);
const long = new BigInt64Array(float.buffer);
/** The halves of its bits, the lower one first where the machine stores it first. */
const words = new Uint32Array(float.buffer);
const low = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? 0 : 1;

function bitsOf(x: number): bigint {
  float[0] = x;
  return long[0]!;
}

/**
 * Fused multiply-add of float32 values. The product of two float32 is exact in float64; the sum is rounded to odd
 * there. Rounding to float32 is right after that (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
 * IEEE Trans. Computers 57(4), 2008).
 */
export function fma32(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  if (!Number.isFinite(sum) || sum === 0) return Math.fround(sum);
  // Two-sum: the exact error of the addition.
  const back = sum - product;
  const error = product - (sum - back) + (c - back);
  if (error === 0) return Math.fround(sum);
  float[0] = sum;
  const word = words[low]!;
  if (word & 1) return Math.fround(sum);
  // Even: step to the odd neighbour on the side of the exact value.
  if (error > 0 === sum > 0) words[low] = word + 1;
  else {
    words[low] = word - 1;
    if (word === 0) words[1 - low]!--;
  }
  return Math.fround(float[0]!);
}

/** A finite float64 as integer times a power of two. */
function split(x: number): { readonly mantissa: bigint; readonly exponent: number } {
  const bits = BigInt.asUintN(64, bitsOf(x));
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const mantissa = biased === 0 ? fraction : fraction | (1n << 52n);
  return { mantissa: x < 0 || Object.is(x, -0) ? -mantissa : mantissa, exponent: Math.max(biased, 1) - 1075 };
}

/** Fused multiply-add of float64 values, exact by integer arithmetic. */
export function fma64(a: number, b: number, c: number): number {
  const quick = a * b + c;
  if (!Number.isFinite(a) || !Number.isFinite(b) || !Number.isFinite(c) || a === 0 || b === 0 || c === 0) return quick;
  const [x, y, z] = [split(a), split(b), split(c)];
  const product = { mantissa: x.mantissa * y.mantissa, exponent: x.exponent + y.exponent };
  const exponent = Math.min(product.exponent, z.exponent);
  const sum = (product.mantissa << BigInt(product.exponent - exponent)) + (z.mantissa << BigInt(z.exponent - exponent));
  if (sum === 0n) return 0;
  return roundToDouble(sum, exponent);
}

/** value * 2^exponent to nearest even. */
function roundToDouble(value: bigint, exponent: number): number {
  const sign = value < 0n ? -1 : 1;
  let magnitude = value < 0n ? -value : value;
  const length = magnitude.toString(2).length;
  // The last kept bit has weight 2^lowest; denormals stop at 2^-1074.
  const lowest = Math.max(exponent + length - 53, -1074);
  const drop = lowest - exponent;
  if (drop > 0) {
    const shift = BigInt(drop);
    const rest = magnitude & ((1n << shift) - 1n);
    const half = 1n << (shift - 1n);
    magnitude >>= shift;
    if (rest > half || (rest === half && (magnitude & 1n) === 1n)) magnitude += 1n;
    exponent = lowest;
  }
  // Two steps, so that the power of two itself neither overflows nor underflows.
  const first = Math.max(-1000, Math.min(1000, exponent));
  return sign * Number(magnitude) * 2 ** first * 2 ** (exponent - first);
}

/**
 * Error function in float64, for the reference interpreter.
 *
 * Below 3 it is Kummer's series erf(x) = 2x/sqrt(pi) exp(-x^2) sum (2x^2)^n / (1*3*...*(2n+1)). All of its terms are
 * positive, so nothing cancels. Above, the continued fraction of erfc (Abramowitz and Stegun 7.1.6 and 7.1.14).
 */
export function erf(x: number): number {
  if (Number.isNaN(x) || x === 0) return x;
  const z = Math.abs(x);
  const sign = Math.sign(x);
  if (z > 6) return sign;
  if (z < 3) {
    let term = 1;
    let sum = 1;
    for (let n = 1; n < 120; n++) {
      term *= (2 * z * z) / (2 * n + 1);
      sum += term;
      if (term < 1e-18 * sum) break;
    }
    return (sign * 2 * z * Math.exp(-z * z) * sum) / Math.sqrt(Math.PI);
  }
  let fraction = z;
  for (let n = 80; n >= 1; n--) fraction = z + n / 2 / fraction;
  return sign * (1 - Math.exp(-z * z) / (fraction * Math.sqrt(Math.PI)));
}

// The same bits as another dtype: BITCAST of the reference interpreter.

/** The function from an `x` of dtype `from` to its bits read as dtype `to` of the same size. */
export function reinterpretFunction(from: DType, to: DType): (x: number | bigint) => number | bigint {
  const bytes = new ArrayBuffer(8);
  const written = new hostArrays[from](bytes, 0, 1);
  const seen = new hostArrays[to](bytes, 0, 1);
  return (x) => {
    setElement(written, from, 0, x);
    const read = getElement(seen, to, 0);
    return typeof read === 'boolean' ? Number(read) : read;
  };
}
