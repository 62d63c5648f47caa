/**
 * Integer division, remainder and high products, which WebAssembly has for scalars with traps, or not at all.
 *
 * The contract: division truncates, x / 0 and x % 0 give 0, INT_MIN / -1 wraps.
 */
import { highOf, type KNode, lowOf } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import { type Context, highHalf, scalarConst, select, shuffle32, splatConst, vop } from './context.ts';
import type { Val } from './lir.ts';
import { type Reg, regOf } from './target.ts';

/** Scalar IDIV or IREM. `n` is the IR node where there is one; bounds of 32-bit numbers allow cheaper forms. */
export function divideScalar(ctx: Context, op: 'IDIV' | 'IREM', reg: Reg, a: Val, b: Val, n: KNode | null): Val {
  const { fn } = ctx;
  const { type } = reg;
  const long = type === T.i64;
  const by = n?.src[1];
  const bounded = long ? null : n;
  const nonNegative =
    bounded !== null &&
    lowOf(bounded.src[0]) >= 0 &&
    lowOf(bounded.src[1]) >= 0 &&
    highOf(bounded.src[0]) <= 0x7fffffff;
  const unsigned = reg.kind[0] === 'u' || nonNegative;
  const int = (code: number, x: Val, y: Val): Val => fn.int(long ? code + T.toLong : code, type, x, y);
  const of = (value: number): Val => scalarConst(ctx, reg, value);
  const code = op === 'IDIV' ? (unsigned ? W.i32DivU : W.i32DivS) : unsigned ? W.i32RemU : W.i32RemS;
  if (by?.op === 'CONST') {
    const d = BigInt.asIntN(long ? 64 : 32, BigInt(by.arg.value));
    if (d === 0n) return of(0);
    if (d === -1n && !unsigned) return op === 'IDIV' ? int(W.i32Sub, of(0), a) : of(0);
    return int(code, a, b);
  }
  if (bounded !== null && lowOf(bounded.src[1]) > 0) return int(code, a, b);
  if (unsigned) {
    const isZero = fn.op(long ? W.i64Eqz : W.i32Eqz, T.i32, [b]);
    const one = long ? fn.op(W.i64ExtendI32U, T.i64, [isZero]) : isZero;
    return select(ctx, isZero, of(0), int(code, a, int(W.i32Or, b, one)));
  }
  // Divisors 0 and -1 are replaced by 1; then the quotient is a * b and the remainder 0.
  const regular = fn.op(long ? W.i64GtU : W.i32GtU, T.i32, [int(W.i32Add, b, of(1)), of(1)]);
  const quotient = int(code, a, select(ctx, regular, b, of(1)));
  return select(ctx, regular, quotient, op === 'IDIV' ? int(W.i32Mul, a, b) : of(0));
}

/** 1.5 * 2^52: adding it to an integer below 2^51 in size leaves that integer's low 32 bits in the low word of the double. */
const toLowBits = 6755399441055744;

/**
 * Vector IDIV or IREM through doubles: a quotient of 32-bit integers rounded to 53 bits truncates to the exact integer quotient.
 * For a quotient that is no integer is at least 2^-32 (relative) away from the next one.
 */
export function divideVector(ctx: Context, op: 'IDIV' | 'IREM', kind: 'i32' | 'u32', a: Val, b: Val): Val {
  const convert = kind === 'i32' ? S.f64ConvertLowI32S : S.f64ConvertLowI32U;
  const magic = splatConst(ctx, regOf('float64'), toLowBits);
  const half = (x: Val, y: Val): Val => {
    const q = vop(ctx, S.f64Div, vop(ctx, convert, x), vop(ctx, convert, y));
    return vop(ctx, S.f64Add, vop(ctx, S.f64Trunc, q), magic);
  };
  const quotient = shuffle32(ctx, half(a, b), half(highHalf(ctx, a), highHalf(ctx, b)), [0, 2, 4, 6]);
  const result = op === 'IDIV' ? quotient : vop(ctx, S.i32Sub, a, vop(ctx, S.i32Mul, quotient, b));
  return vop(ctx, S.and, result, vop(ctx, S.i32Ne, b, ctx.fn.zero128()));
}

/**
 * Vector IDIV or IREM by a constant: shifts for powers of two, a multiplication by the reciprocal for numbers known not to be
 * negative. Null where neither applies.
 */
export function divideByConstant(ctx: Context, n: KNode, kind: 'i32' | 'u32', a: Val): Val | null {
  const by = n.src[1];
  const d = by.op === 'CONST' ? Number(by.arg.value) : 0;
  if (d <= 0) return null;
  const x = n.src[0];
  const nonNegative = lowOf(x) >= 0 && highOf(x) <= 0x7fffffff;
  const bits = Math.ceil(Math.log2(d));
  const count = ctx.fn.i32(bits);
  let quotient: Val;
  if (d === 2 ** bits) {
    if (nonNegative || kind === 'u32') {
      if (n.op === 'IDIV') return vop(ctx, S.i32ShrU, a, count);
      return vop(ctx, S.and, a, splatConst(ctx, regOf('int32'), d - 1));
    }
    if (bits === 0) return n.op === 'IDIV' ? a : ctx.fn.zero128();
    // Shifts round down; adding d - 1 to negative numbers first makes them truncate.
    const sign = vop(ctx, S.i32ShrS, a, ctx.fn.i32(31));
    const biased = vop(ctx, S.i32Add, a, vop(ctx, S.i32ShrU, sign, ctx.fn.i32(32 - bits)));
    quotient = vop(ctx, S.i32ShrS, biased, count);
    if (n.op === 'IDIV') return quotient;
    return vop(ctx, S.i32Sub, a, vop(ctx, S.i32Shl, quotient, count));
  }
  if (!nonNegative) return null;
  // x / d = x * ceil(2^p / d) >> p for x below 2^31 and p = 31 + ceil(log2 d).
  const shift = ctx.fn.i32(31 + bits);
  const factor = splatConst(ctx, regOf('uint32'), reciprocal(d, 31 + bits));
  const half = (code: number): Val => vop(ctx, S.i64ShrU, vop(ctx, code, a, factor), shift);
  quotient = shuffle32(ctx, half(S.i64ExtmulLowI32U), half(S.i64ExtmulHighI32U), [0, 2, 4, 6]);
  if (n.op === 'IDIV') return quotient;
  const divisor = splatConst(ctx, regOf('int32'), d);
  return vop(ctx, S.i32Sub, a, vop(ctx, S.i32Mul, quotient, divisor));
}

/** `2^power / d`, rounded up. */
function reciprocal(d: number, power: number): number {
  return Number((2n ** BigInt(power) + BigInt(d - 1)) / BigInt(d));
}

/** High half of a uint32 product. */
export function mulHighScalar(ctx: Context, a: Val, b: Val): Val {
  const { fn } = ctx;
  const wide = [a, b].map((x) => fn.op(W.i64ExtendI32U, T.i64, [x]));
  const product = fn.op(W.i64Mul, T.i64, wide);
  return fn.op(W.i32WrapI64, T.i32, [fn.op(W.i64ShrU, T.i64, [product, fn.i64(32)])]);
}

export function mulHighVector(ctx: Context, a: Val, b: Val): Val {
  return shuffle32(ctx, vop(ctx, S.i64ExtmulLowI32U, a, b), vop(ctx, S.i64ExtmulHighI32U, a, b), [1, 3, 5, 7]);
}
