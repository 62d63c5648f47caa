/**
 * What the lowering functions share: the function under construction and the values found so far.
 */
import { told } from '#listing';
import type { KNode } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { Fn } from './fn.ts';
import type { Val } from './lir.ts';
import { type EmitTarget, type Reg, refuse } from './target.ts';

/**
 * A lowered IR value: one Val for a scalar, ceil(lanes * width / 16) vectors of 16 bytes otherwise. Vectors shorter than
 * 16 bytes use the low lanes. `width` is the size of a lane; masks (vectors of bool) come in both.
 */
export interface Lowered {
  readonly parts: readonly Val[];
  readonly width: 4 | 8;
  /** Scalars only: the value in all lanes of a vector (bool: a mask), once something needed it so (scalar-select.ts). */
  wide?: Val;
}

export interface Context {
  readonly fn: Fn;
  readonly target: EmitTarget;
  /** The lowered form of a source that stands earlier in the body. */
  get(node: KNode): Lowered;
  /** How many live nodes use this one (index arithmetic that became addresses does not count). */
  uses(node: KNode): number;
}

/** Number of 16-byte vectors that hold `lanes` lanes; throws for vectors no register holds. */
export function partCount(lanes: number, width: number): number {
  if (lanes * width === 16) return 1;
  if ((lanes & (lanes - 1)) !== 0) refuse(told && `vectors must have a power of two lanes: got ${lanes}`);
  return Math.max(1, (lanes * width) / 16);
}

/** Applies `make` to each part of equally wide operands; operands that are the same in all parts are computed once. */
export function mapParts(operands: readonly (readonly Val[])[], make: (vals: Val[]) => Val): Val[] {
  const count = operands[0]!.length;
  if (count === 1) return [make(operands.map((o) => o[0]!))];
  const out: Val[] = [];
  for (let p = 0; p < count; p++) {
    if (p > 0 && operands.every((o) => o[p] === o[p - 1])) out.push(out[p - 1]!);
    else out.push(make(operands.map((o) => o[p]!)));
  }
  return out;
}

/** A vector instruction. */
export function vop(ctx: Context, code: number, ...args: Val[]): Val {
  return ctx.fn.op(code, T.v128, args);
}

/** `i8x16.shuffle` choosing 32-bit lanes 0-3 of `a` and 4-7 of `b`. */
export function shuffle32(ctx: Context, a: Val, b: Val, lanes: readonly [number, number, number, number]): Val {
  const pattern = new Uint8Array(16);
  for (let i = 0; i < 16; i++) pattern[i] = lanes[i >> 2]! * 4 + (i & 3);
  return ctx.fn.op(S.shuffle, T.v128, [a, b], 0, pattern);
}

/** The upper 8 bytes moved to the lower half. */
export function highHalf(ctx: Context, v: Val): Val {
  return shuffle32(ctx, v, v, [2, 3, 2, 3]);
}

/** A scalar constant of this register kind. */
export function scalarConst(ctx: Context, reg: Reg, value: number | bigint): Val {
  if (reg.type === T.i64) return ctx.fn.i64(value);
  if (reg.kind === 'f32') return ctx.fn.f32(Number(value));
  if (reg.kind === 'f64') return ctx.fn.f64(Number(value));
  return ctx.fn.i32(Number(value));
}

const bytes16 = new Uint8Array(16);
const f32Lanes = new Float32Array(bytes16.buffer);
const f64Lanes = new Float64Array(bytes16.buffer);
const i32Lanes = new Int32Array(bytes16.buffer);
const i64Lanes = new BigInt64Array(bytes16.buffer);

/** A vector constant; `valueAt` gives lane i of the part. On masks 1 means all bits set. */
export function vectorConst(ctx: Context, reg: Reg, width: 4 | 8, valueAt: (lane: number) => number | bigint): Val {
  const count = 16 / width;
  for (let i = 0; i < count; i++) {
    if (reg.type === T.i64) {
      i64Lanes[i] = BigInt.asIntN(64, BigInt(valueAt(i)));
      continue;
    }
    const value = Number(valueAt(i));
    if (reg.kind === 'f32') f32Lanes[i] = value;
    else if (reg.kind === 'f64') f64Lanes[i] = value;
    else if (reg.kind !== 'bool') i32Lanes[i] = value;
    else for (let w = 0; w < width / 4; w++) i32Lanes[(i * width) / 4 + w] = value === 0 ? 0 : -1;
  }
  return ctx.fn.v128(bytes16.slice());
}

/** All lanes equal. */
export function splatConst(ctx: Context, reg: Reg, value: number | bigint): Val {
  return vectorConst(ctx, reg, reg.width, () => value);
}

/** Masks with lanes of the wanted width. */
export function maskOfWidth(ctx: Context, mask: Lowered, laneCount: number, width: 4 | 8): readonly Val[] {
  if (mask.width === width) return mask.parts;
  const count = partCount(laneCount, width);
  const out: Val[] = [];
  for (let p = 0; p < count; p++) {
    if (width === 8) out.push(vop(ctx, p & 1 ? S.i64ExtendHighI32S : S.i64ExtendLowI32S, mask.parts[p >> 1]!));
    else {
      const low = mask.parts[2 * p]!;
      out.push(shuffle32(ctx, low, mask.parts[2 * p + 1] ?? low, [0, 2, 4, 6]));
    }
  }
  return out;
}

/** `a ? b : c` on scalars. */
export function select(ctx: Context, cond: Val, a: Val, b: Val): Val {
  return ctx.fn.op(W.select, a.type, [a, b, cond]);
}

/** Whether a condition holds (or fails) in some lane, as a scalar; null where its vectors are not full. */
export function someLane(ctx: Context, { parts, width }: Lowered, lanes: number, holds: boolean): Val | null {
  const { fn } = ctx;
  if (lanes === 1) return holds ? parts[0]! : fn.op(W.i32Eqz, T.i32, [parts[0]!]);
  if ((lanes * width) % 16 !== 0) return null;
  const all = parts.reduce((a, b) => (a === b ? a : vop(ctx, holds ? S.or : S.and, a, b)));
  if (holds) return fn.op(S.anyTrue, T.i32, [all]);
  return fn.op(W.i32Eqz, T.i32, [fn.op(S.i32AllTrue, T.i32, [all])]);
}
