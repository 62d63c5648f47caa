/**
 * Vectors from scalars and scalars from vectors.
 */
import type { KNode } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import { type Context, type Lowered, partCount, shuffle32, vop } from './context.ts';
import type { Val } from './lir.ts';
import { laneCodes } from './tables.ts';
import { type Reg, regOf } from './target.ts';

/** The 16-byte parts of a vector. */
export function makeParts(lanes: number, width: 4 | 8, make: (p: number) => Val): Val[] {
  const count = partCount(lanes, width);
  const out: Val[] = [];
  for (let p = 0; p < count; p++) out.push(make(p));
  return out;
}

/** VEC: one scalar in all lanes, or lane by lane. */
export function lowerVec(ctx: Context, n: KNode): Lowered {
  const reg = regOf(n.dtype);
  const scalarOf = (s: KNode): Val => ctx.get(s).parts[0]!;
  if (n.src.length > 1) return gather(ctx, reg, n.lanes, (i) => scalarOf(n.src[i]!));
  const scalar = scalarOf(n.src[0]);
  // A scalar load that only this splat needs was made a splat load (memory.ts).
  const one = scalar.type === T.v128 ? scalar : vop(ctx, laneCodes[reg.kind].splat, toLane(ctx, reg, scalar));
  return { parts: makeParts(n.lanes, reg.width, () => one), width: reg.width };
}

/** A vector of the scalars `laneOf(0)`, `laneOf(1)`, ... */
export function gather(ctx: Context, reg: Reg, lanes: number, laneOf: (i: number) => Val): Lowered {
  const { splat, replace } = laneCodes[reg.kind];
  const perPart = Math.min(16 / reg.width, lanes);
  const parts = makeParts(lanes, reg.width, (p) => {
    const first = laneOf(p * perPart);
    let v = vop(ctx, splat, toLane(ctx, reg, first));
    for (let i = 1; i < perPart; i++) {
      const x = laneOf(p * perPart + i);
      if (x !== first) v = ctx.fn.op(replace, T.v128, [v, toLane(ctx, reg, x)], i);
    }
    return v;
  });
  return { parts, width: reg.width };
}

/** The columns of a square whose rows are vectors: two of 8-byte lanes or four of 4-byte ones. */
export function transposeSquare(ctx: Context, rows: readonly Val[]): readonly Val[] {
  const halves = (a: Val, b: Val): readonly Val[] => [
    shuffle32(ctx, a, b, [0, 1, 4, 5]),
    shuffle32(ctx, a, b, [2, 3, 6, 7]),
  ];
  const [a, b, c, d] = rows as readonly [Val, Val, Val?, Val?];
  if (c === undefined || d === undefined) return halves(a, b);
  const turns = (x: Val, y: Val): readonly [Val, Val] => [
    shuffle32(ctx, x, y, [0, 4, 1, 5]),
    shuffle32(ctx, x, y, [2, 6, 3, 7]),
  ];
  const [low, high] = [turns(a, b), turns(c, d)];
  return [...halves(low[0], high[0]), ...halves(low[1], high[1])];
}

/** A scalar as it stands in a lane: true is all bits. */
function toLane(ctx: Context, reg: Reg, v: Val): Val {
  return reg.kind === 'bool' ? ctx.fn.op(W.i32Sub, T.i32, [ctx.fn.i32(0), v]) : v;
}

/** Lane `lane` as a scalar. */
export function extract(ctx: Context, reg: Reg, v: Lowered, lane: number): Val {
  const perPart = 16 / v.width;
  const part = v.parts[Math.floor(lane / perPart)]!;
  const at = lane % perPart;
  if (reg.kind !== 'bool') return ctx.fn.op(laneCodes[reg.kind].extract, reg.type, [part], at);
  const bits = ctx.fn.op(S.i32Extract, T.i32, [part], (at * v.width) / 4);
  return ctx.fn.op(W.i32And, T.i32, [bits, ctx.fn.i32(1)]);
}

/** The integer all lanes of a vector have as an i32 (a count to shift by), if that is known. */
export function uniformScalar(ctx: Context, n: KNode): Val | null {
  if (n.op === 'CONST') return ctx.fn.i32(Number(n.arg.value));
  if (n.op === 'VEC' && n.src.length === 1) {
    const v = ctx.get(n.src[0]).parts[0]!;
    if (v.type === T.i64) return ctx.fn.op(W.i32WrapI64, T.i32, [v]);
    return v.type === T.v128 ? ctx.fn.op(S.i32Extract, T.i32, [v], 0) : v;
  }
  return null;
}
