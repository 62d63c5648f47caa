/**
 * What is known of a result before anything runs: its value, where operands are literals, and its bounds.
 *
 * Constant folding gives exactly what an engine would compute. Only operations whose result is fixed by IEEE-754 or by integer arithmetic are folded; EXP, SIN and the like are left
 * to the engine, whose own rounding a fold would not reproduce. `undefined` means "not folded".
 */
import { type DType, dtypeInfo, highest, lowest } from '../../shape/dtype.ts';
import { type Literal, normalize } from '../../shape/host.ts';
import type { KNode } from '../ir.ts';
import type { BinaryOp, UnaryOp } from '../operations.ts';
import type { Known, NodeObject } from '../node.ts';

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

// Bounds of integer and bool expressions, from the bounds of their operands.
//
// Called once per node. Anything that might wrap, and anything not listed, has the bounds of its dtype.

type Interval = readonly [number, number];

/** Sets `lo` and `hi` of a new node. Floats keep infinite bounds. */
export function setBounds(n: NodeObject): void {
  const { dtype } = n;
  // Most nodes are floats or int32.
  if (dtype === 'float32' || dtype === 'void' || dtype.includes('float')) return;
  const full = dtypeRange[dtype];
  const found = dtype !== 'int32' && dtype.endsWith('64') ? null : boundsOf(n as unknown as KNode);
  const fits = found !== null && found[0] >= full[0] && found[1] <= full[1];
  n.lo = fits ? found[0] : full[0];
  n.hi = fits ? found[1] : full[1];
}

function boundsOf(n: KNode): Interval | null {
  const { src } = n;
  const a = src[0] as unknown as NodeObject;
  const b = src[1] as unknown as NodeObject;
  switch (n.op) {
    case 'CONST':
      return [n.arg.value as number, n.arg.value as number];
    case 'RANGE':
      return [0, Math.max(0, n.arg.extent - 1)];
    case 'LOOP':
      return [0, Math.max(0, a.hi - 1)];
    case 'IOTA':
      return [0, n.lanes - 1];
    case 'SPECIAL':
      return [0, 2147483647];
    case 'LANE':
      return [a.lo, a.hi];
    case 'VEC': {
      let { lo, hi } = a;
      for (let i = 1; i < src.length; i++) {
        const s = src[i] as Known;
        lo = Math.min(lo, s.lo);
        hi = Math.max(hi, s.hi);
      }
      return [lo, hi];
    }
    case 'CAST':
      return a.dtype === 'bool' || (a.dtype !== 'void' && !a.dtype.includes('float')) ? [a.lo, a.hi] : null;
    case 'NEG':
      return [-a.hi, -a.lo];
    case 'ABS':
      return a.lo >= 0 ? [a.lo, a.hi] : [0, Math.max(a.hi, -a.lo)];
    case 'NOT':
      return n.dtype === 'bool' ? [1 - a.hi, 1 - a.lo] : null;
    case 'ADD':
      return [a.lo + b.lo, a.hi + b.hi];
    case 'SUB':
      return [a.lo - b.hi, a.hi - b.lo];
    case 'MUL': {
      const p = a.lo * b.lo;
      const q = a.lo * b.hi;
      const r = a.hi * b.lo;
      const s = a.hi * b.hi;
      return [Math.min(p, q, r, s), Math.max(p, q, r, s)];
    }
    case 'IDIV': {
      if (b.lo > 0) {
        return [Math.trunc(a.lo / (a.lo < 0 ? b.lo : b.hi)), Math.trunc(a.hi / (a.hi < 0 ? b.hi : b.lo))];
      }
      return a.lo >= 0 && b.lo >= 0 ? [0, a.hi] : null;
    }
    case 'IREM': {
      if (a.lo >= 0) return [0, b.lo > 0 ? Math.min(a.hi, b.hi - 1) : a.hi];
      if (b.lo <= 0) return null;
      return [Math.max(a.lo, 1 - b.hi), Math.max(0, Math.min(a.hi, b.hi - 1))];
    }
    case 'MAX':
      return [Math.max(a.lo, b.lo), Math.max(a.hi, b.hi)];
    case 'MIN':
      return [Math.min(a.lo, b.lo), Math.min(a.hi, b.hi)];
    case 'AND':
      if (n.dtype === 'bool') return [Math.min(a.lo, b.lo), Math.min(a.hi, b.hi)];
      if (a.lo >= 0 && b.lo >= 0) return [0, Math.min(a.hi, b.hi)];
      return a.lo >= 0 ? [0, a.hi] : b.lo >= 0 ? [0, b.hi] : null;
    case 'OR':
      return n.dtype === 'bool' ? [Math.max(a.lo, b.lo), Math.max(a.hi, b.hi)] : null;
    case 'SHR':
      return a.lo >= 0 && b.lo === b.hi ? [Math.floor(a.lo / 2 ** b.lo), Math.floor(a.hi / 2 ** b.lo)] : null;
    case 'SHL':
      return b.lo === b.hi && b.lo >= 0 && b.lo < 31 ? [a.lo * 2 ** b.lo, a.hi * 2 ** b.lo] : null;
    case 'WHERE': {
      const c = n.src[2] as Known;
      return [Math.min(b.lo, c.lo), Math.max(b.hi, c.hi)];
    }
    case 'REDUCE':
      switch (n.arg.op) {
        case 'max':
        case 'min':
          return [a.lo, a.hi];
        case 'argmax':
        case 'argmin':
          return [0, Math.max(0, rangesSize(n.src) - 1)];
        default:
          return null;
      }
    default:
      return null;
  }
}

function rangesSize(src: readonly KNode[]): number {
  let size = 1;
  for (let i = 1; i < src.length; i++) {
    const r = src[i]!;
    if (r.op === 'RANGE') size *= r.arg.extent;
  }
  return size;
}
