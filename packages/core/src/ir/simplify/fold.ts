/**
 * Constant folding: what an operation on literals gives, exactly as an engine would compute it.
 *
 * Only operations whose result is fixed by IEEE-754 or by integer arithmetic are folded; EXP, SIN and the like are left
 * to the engine, whose own rounding a fold would not reproduce. `undefined` means "not folded".
 */
import { type DType, dtypeInfo, highest, lowest } from '../../shape/dtype.ts';
import { type Literal, normalize } from '../../shape/host.ts';
import type { BinaryOp, UnaryOp } from '../ir.ts';

const f64 = new Float64Array(1);
const u64 = new BigUint64Array(f64.buffer);
const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);
const i32 = new Int32Array(f32.buffer);
const i64 = new BigInt64Array(f64.buffer);

/** Smallest and largest value of integer dtypes of up to 32 bits and of bool; infinities elsewhere. */
export const dtypeRange: Readonly<Record<DType, readonly [number, number]>> = /* @__PURE__ */ ranges();

function ranges(): Record<DType, readonly [number, number]> {
  const small = (bound: Literal, infinity: number): number => (typeof bound === 'bigint' ? infinity : bound);
  const rangeOf = (dtype: DType): [number, number] => [
    small(lowest(dtype), Number.NEGATIVE_INFINITY),
    small(highest(dtype), Number.POSITIVE_INFINITY),
  ];
  const dtypes = Object.keys(dtypeInfo) as DType[];
  return Object.fromEntries(dtypes.map((dtype) => [dtype, rangeOf(dtype)])) as Record<DType, [number, number]>;
}

/** Result of a unary operation on a literal of `dtype`. */
export function foldUnary(op: UnaryOp, dtype: DType, x: Literal): Literal | undefined {
  switch (op) {
    case 'NEG':
      return normalize(dtype, -x);
    case 'NOT':
      return dtype === 'bool' ? 1 - Number(x) : normalize(dtype, ~x);
    case 'ABS':
      return normalize(dtype, typeof x === 'number' ? Math.abs(x) : x < 0n ? -x : x);
  }
  if (typeof x === 'bigint') return undefined;
  switch (op) {
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

/** JavaScript's own operators, which take two numbers or two bigints; `normalize` cuts fractions of quotients off. */
const operators: Readonly<Partial<Record<BinaryOp, (a: number, b: number) => number | boolean>>> = {
  ADD: (a, b) => a + b,
  SUB: (a, b) => a - b,
  MUL: (a, b) => a * b,
  DIV: (a, b) => a / b,
  IDIV: (a, b) => a / b,
  IREM: (a, b) => a % b,
  FREM: (a, b) => a % b,
  AND: (a, b) => a & b,
  OR: (a, b) => a | b,
  XOR: (a, b) => a ^ b,
  SHL: (a, b) => a << b,
  SHR: (a, b) => a >> b,
  LT: (a, b) => a < b,
  LE: (a, b) => a <= b,
  EQ: (a, b) => a === b,
  MULHI: (a, b) => Number((BigInt(a) * BigInt(b)) >> 32n),
};

/** Result of a binary operation on two literals of `dtype`. */
export function foldBinary(op: BinaryOp, dtype: DType, a: Literal, b: Literal): Literal | undefined {
  const { kind, bytes } = dtypeInfo[dtype];
  if ((op === 'IDIV' || op === 'IREM') && Number(b) === 0) return normalize(dtype, 0);
  if ((op === 'SHL' || op === 'SHR') && !(b >= 0 && b < 8 * bytes)) return undefined;
  const x = a as number;
  const y = b as number;
  if (bytes < 8 && kind !== 'float') {
    if (op === 'MUL') return normalize(dtype, Math.imul(x, y));
    if (op === 'SHR' && kind === 'uint') return x >>> y;
  }
  if (op === 'MAX' || op === 'MIN') {
    if (typeof a === 'number') return op === 'MAX' ? Math.max(x, y) : Math.min(x, y);
    return (op === 'MAX') === a > b ? a : b;
  }
  const result = operators[op]?.(x, y);
  if (typeof result === 'boolean') return Number(result);
  return result === undefined ? undefined : normalize(dtype, result);
}

/** Value conversion of a literal: float to integer saturates and NaN gives 0, integers wrap, anything to bool is `!= 0`. */
export function foldCast(from: DType, to: DType, x: Literal): Literal {
  if (to === 'bool') return typeof x === 'bigint' ? (x !== 0n ? 1 : 0) : x !== 0 ? 1 : 0;
  if (!from.includes('float') || to.includes('float')) return normalize(to, x);
  const [low, high] = [lowest(to), highest(to)];
  const near = x <= Number(low) ? low : x >= Number(high) ? high : x;
  return normalize(to, Number.isNaN(x) ? 0 : near);
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
