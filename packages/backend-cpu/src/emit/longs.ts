/**
 * Operations on vectors of 64-bit integers that need more than one instruction. Scalars are done as those of 32 bits.
 */
import * as S from '../asm/simd.ts';
import { type Context, splatConst, vop } from './context.ts';
import type { Val } from './lir.ts';
import type { Reg } from './target.ts';

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
