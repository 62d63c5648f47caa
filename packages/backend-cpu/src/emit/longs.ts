/**
 * Operations on 64-bit integers that need more than one instruction. The contract is that of 32-bit ones (integers.ts).
 */
import type { KNode } from '@polygrad/core/kernel';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import { type Context, select, splatConst, vop } from './context.ts';
import type { Val } from './lir.ts';
import type { Reg } from './target.ts';

type LongKind = 'i64' | 'u64';

const i64 = (ctx: Context, code: number, ...args: Val[]): Val => ctx.fn.op(code, T.i64, args);
const bool = (ctx: Context, code: number, ...args: Val[]): Val => ctx.fn.op(code, T.i32, args);

/** Scalars; null where 32-bit integers do the same. */
export function longScalar(
  ctx: Context,
  op: string,
  kind: LongKind,
  args: readonly Val[],
  n: KNode | null,
): Val | null {
  const { fn } = ctx;
  const [a, b] = args as [Val, Val];
  switch (op) {
    case 'NOT':
      return i64(ctx, W.i64Xor, a, fn.i64(-1));
    case 'NEG':
      return i64(ctx, W.i64Sub, fn.i64(0), a);
    case 'ABS': {
      if (kind === 'u64') return a;
      const sign = i64(ctx, W.i64ShrS, a, fn.i64(63));
      return i64(ctx, W.i64Sub, i64(ctx, W.i64Xor, a, sign), sign);
    }
    case 'MAX':
    case 'MIN': {
      const less = bool(ctx, kind === 'i64' ? W.i64LtS : W.i64LtU, a, b);
      return op === 'MAX' ? select(ctx, less, b, a) : select(ctx, less, a, b);
    }
    case 'IDIV':
    case 'IREM':
      return divide(ctx, op, kind, a, b, n);
    default:
      return null;
  }
}

function divide(ctx: Context, op: 'IDIV' | 'IREM', kind: LongKind, a: Val, b: Val, n: KNode | null): Val {
  const { fn } = ctx;
  const unsigned = kind === 'u64';
  const code = op === 'IDIV' ? (unsigned ? W.i64DivU : W.i64DivS) : unsigned ? W.i64RemU : W.i64RemS;
  const by = n?.src[1];
  if (by?.op === 'CONST') {
    const d = BigInt(by.arg.value);
    if (d === 0n) return fn.i64(0);
    if (d === -1n) return op === 'IDIV' ? i64(ctx, W.i64Sub, fn.i64(0), a) : fn.i64(0);
    return i64(ctx, code, a, b);
  }
  if (unsigned) {
    const isZero = bool(ctx, W.i64Eqz, b);
    return select(ctx, isZero, fn.i64(0), i64(ctx, code, a, select(ctx, isZero, fn.i64(1), b)));
  }
  // Divisors 0 and -1 are replaced by 1; then the quotient is a * b and the remainder 0.
  const regular = bool(ctx, W.i64GtU, i64(ctx, W.i64Add, b, fn.i64(1)), fn.i64(1));
  const quotient = i64(ctx, code, a, select(ctx, regular, b, fn.i64(1)));
  return select(ctx, regular, quotient, op === 'IDIV' ? i64(ctx, W.i64Mul, a, b) : fn.i64(0));
}

/** Vectors, applied part by part; null for what is done lane by lane. */
export function longVector(ctx: Context, op: string, reg: Reg): ((v: Val[]) => Val) | null {
  const unsigned = reg.kind === 'u64';
  // Unsigned numbers compare as signed ones with the highest bit inverted.
  const ordered = (v: Val): Val => (unsigned ? vop(ctx, S.xor, v, splatConst(ctx, reg, 2n ** 63n)) : v);
  const compare = (code: number, a: Val, b: Val): Val => vop(ctx, code, ordered(a), ordered(b));
  switch (op) {
    case 'LT':
      return ([a, b]) => compare(S.i64LtS, a!, b!);
    case 'LE':
      return ([a, b]) => compare(S.i64LeS, a!, b!);
    case 'WHERE':
      return ([m, a, b]) => vop(ctx, S.bitselect, a!, b!, m!);
    case 'MAX':
      return ([a, b]) => vop(ctx, S.bitselect, b!, a!, compare(S.i64LtS, a!, b!));
    case 'MIN':
      return ([a, b]) => vop(ctx, S.bitselect, a!, b!, compare(S.i64LtS, a!, b!));
    case 'NOT':
      return ([a]) => vop(ctx, S.not, a!);
    case 'NEG':
      return ([a]) => vop(ctx, S.i64Neg, a!);
    case 'ABS':
      return ([a]) => (unsigned ? a! : vop(ctx, S.i64Abs, a!));
    default:
      return null;
  }
}
