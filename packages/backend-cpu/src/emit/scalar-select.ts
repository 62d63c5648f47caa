/**
 * Scalar WHERE, MAX and MIN without branches.
 *
 * V8 turns `select` on x64 into a jump. It costs 15 to 20 cycles whenever data decide it (the scalar rest of a maximum with
 * positions, say). Vectors select with a blend, so scalar selections on floats, and those decided by floats, are done in
 * vectors whose lanes are all equal; a value once there stays there for further selections.
 */
import type { KNode } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import { type Context, type Lowered, splatConst, vop } from './context.ts';
import type { Val } from './lir.ts';
import { compareCodes, laneCodes } from './tables.ts';
import { type RegKind, regOf } from './target.ts';

/** Deeper conditions are computed as scalars. */
const maxDepth = 8;

/** The lowered WHERE, or null where a plain `select` is as good. */
export function selectScalar(ctx: Context, n: KNode): Lowered | null {
  const reg = regOf(n.dtype);
  const [cond, a, b] = n.src;
  if (reg.kind === 'bool' || (!isFloat(reg.kind) && !comparesFloats(cond, 0))) return null;
  const mask = wideMask(ctx, cond, 0);
  const [x, y] = [wide(ctx, a), wide(ctx, b)];
  const chosen = ctx.target.laneSelect
    ? vop(ctx, S.i32RelaxedLaneselect, x, y, mask)
    : vop(ctx, S.bitselect, x, y, mask);
  return {
    parts: [ctx.fn.op(laneCodes[reg.kind].extract, reg.type, [chosen], 0)],
    width: reg.width,
    wide: chosen,
  };
}

/**
 * Scalar MAX and MIN of floats likewise: V8 compares and jumps for them. Running maxima (one operand is a register of the
 * program) stay scalars: their jump is predicted well and the next iteration waits for the result.
 */
export function extremumScalar(ctx: Context, n: KNode, vector: (args: Val[]) => Val): Lowered | null {
  const reg = regOf(n.dtype);
  const [a, b] = n.src;
  if (!isFloat(reg.kind) || isRegister(a) || isRegister(b)) return null;
  const result = vector([wide(ctx, a), wide(ctx, b)]);
  return {
    parts: [ctx.fn.op(laneCodes[reg.kind].extract, reg.type, [result], 0)],
    width: reg.width,
    wide: result,
  };
}

function isRegister(n: KNode): boolean {
  return n.op === 'LOAD' && n.src[0].op === 'REG';
}

function isFloat(kind: RegKind): boolean {
  return kind === 'f32' || kind === 'f64';
}

/** True if the condition depends on a comparison of floats. */
function comparesFloats(n: KNode, depth: number): boolean {
  switch (n.op) {
    case 'LT':
    case 'LE':
    case 'EQ':
    case 'ISNAN':
      return isFloat(regOf(n.src[0].dtype).kind);
    case 'NOT':
    case 'AND':
    case 'OR':
    case 'XOR':
      return depth < maxDepth && n.src.some((s) => comparesFloats(s, depth + 1));
    default:
      return false;
  }
}

/** The scalar in all lanes. */
function wide(ctx: Context, n: KNode): Val {
  const lowered = ctx.get(n);
  if (lowered.wide === undefined) {
    const reg = regOf(n.dtype);
    // Kept for other users, so it must not stay inside a condition.
    lowered.wide = ctx.fn.speculate(() =>
      n.op === 'CONST' ? splatConst(ctx, reg, n.arg.value) : vop(ctx, laneCodes[reg.kind].splat, lowered.parts[0]!),
    );
  }
  return lowered.wide;
}

/** The condition as a mask of all bits. */
function wideMask(ctx: Context, n: KNode, depth: number): Val {
  const lowered = ctx.get(n);
  lowered.wide ??= ctx.fn.speculate(() => makeMask(ctx, n, depth));
  return lowered.wide;
}

function makeMask(ctx: Context, n: KNode, depth: number): Val {
  const [a, b] = n.src;
  const inner = (s: KNode): Val => wideMask(ctx, s, depth + 1);
  if (depth < maxDepth && comparesFloats(n, depth)) {
    switch (n.op) {
      case 'LT':
      case 'LE':
      case 'EQ':
        return vop(ctx, compareCodes[n.op]![regOf(a.dtype).kind]![1], wide(ctx, a), wide(ctx, b));
      case 'ISNAN':
        return vop(ctx, compareCodes.NE![regOf(a.dtype).kind]![1], wide(ctx, a), wide(ctx, a));
      case 'NOT':
        return vop(ctx, S.not, inner(a));
      case 'AND':
        if (b.op === 'NOT') return vop(ctx, S.andnot, inner(a), inner(b.src[0]));
        return vop(ctx, S.and, inner(a), inner(b));
      case 'OR':
        return vop(ctx, S.or, inner(a), inner(b));
      case 'XOR':
        return vop(ctx, S.xor, inner(a), inner(b));
    }
  }
  const bits = ctx.fn.op(W.i32Sub, T.i32, [ctx.fn.i32(0), ctx.get(n).parts[0]!]);
  return vop(ctx, S.i32Splat, bits);
}
