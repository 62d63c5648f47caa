/**
 * Vectors of 8- and 16-bit integers between memory and lanes of 32 bits: wide accesses, widening and narrowing instructions; and casts to them.
 */
import type { KNode } from '@polygrad/core/kernel/ir';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { Address } from './address.ts';
import { type Context, type Lowered, mapParts, partCount, splatConst, vop } from './context.ts';
import type { MemoryClass, Val } from './lir.ts';
import { type Reg, regOf, smallBits } from './target.ts';

/** Loads `lanes` elements as parts of four lanes (fewer lanes: one part). */
export function loadSmall(
  ctx: Context,
  dtype: KNode['dtype'],
  lanes: number,
  { base, offset }: Address,
  cls: MemoryClass | null,
): Val[] {
  const signed = dtype === 'int8' || dtype === 'int16';
  const load = (code: number, at: number): Val => ctx.fn.load(code, T.v128, base, offset + at, cls);
  const [low, high] = signed ? [S.i32ExtendLowI16S, S.i32ExtendHighI16S] : [S.i32ExtendLowI16U, S.i32ExtendHighI16U];
  const parts: Val[] = [];
  if (smallBits(dtype) === 16) {
    if (lanes === 2) return [vop(ctx, low, load(S.load32Zero, 0))];
    for (let p = 0; p < partCount(lanes, 4); p++) parts.push(load(signed ? S.load16x4S : S.load16x4U, p * 8));
    return parts;
  }
  if (lanes <= 4) {
    const raw =
      lanes === 2 ? vop(ctx, S.i32Splat, ctx.fn.load(W.i32Load16U, T.i32, base, offset, cls)) : load(S.load32Zero, 0);
    return [vop(ctx, low, vop(ctx, signed ? S.i16ExtendLowI8S : S.i16ExtendLowI8U, raw))];
  }
  for (let p = 0; p < partCount(lanes, 4); p += 2) {
    const eight = load(signed ? S.load8x8S : S.load8x8U, p * 4);
    parts.push(vop(ctx, low, eight), vop(ctx, high, eight));
  }
  return parts;
}

/** Stores the low bits of all lanes. `short`: the others are zero. */
export function storeSmall(
  ctx: Context,
  bits: 8 | 16,
  lanes: number,
  { base, offset }: Address,
  parts: readonly Val[],
  cls: MemoryClass,
  short: boolean,
): void {
  const { fn } = ctx;
  const cut = (p: number): Val =>
    short ? parts[p]! : vop(ctx, S.and, parts[p]!, splatConst(ctx, regOf('int32'), 2 ** bits - 1));
  const count = parts.length;
  const step = bits / 8;
  const store = (v: Val, n: number, at: number): void => {
    const bytes = n * step;
    if (bytes === 16) fn.store(S.store, base, v, offset + at, cls);
    else {
      const code = bytes === 8 ? S.store64Lane : bytes === 4 ? S.store32Lane : S.store16Lane;
      fn.store(code, base, v, offset + at, cls, 0);
    }
  };
  /** Eight numbers of 16 bits from parts p and p + 1. */
  const halves = (p: number): Val => {
    const first = cut(p);
    return vop(ctx, S.i16NarrowI32U, first, p + 1 < count ? cut(p + 1) : first);
  };
  if (bits === 16) {
    for (let p = 0; p < count; p += 2) store(halves(p), Math.min(lanes - p * 4, 8), p * 8);
    return;
  }
  for (let p = 0; p < count; p += 4) {
    const first = halves(p);
    const bytes = vop(ctx, S.i8NarrowI16U, first, p + 2 < count ? halves(p + 2) : first);
    store(bytes, Math.min(lanes - p * 4, 16), p * 4);
  }
}

/** True for unsigned numbers that are made so that all bits from `bits` on are zero. */
export function isShort(n: KNode, bits: number, depth = 4): boolean {
  if (depth === 0) return false;
  const short = (x: KNode): boolean => isShort(x, bits, depth - 1);
  const [a, b] = n.src;
  switch (n.op) {
    case 'OR':
    case 'XOR':
      return short(a) && short(b);
    case 'AND':
      return short(a) || short(b);
    case 'SHR':
      return n.dtype === 'uint32' && b.op === 'CONST' && Number(b.arg.value) >= 32 - bits;
    case 'CONST':
      return n.arg.value >= 0 && n.arg.value < 2 ** bits;
    case 'WHERE':
      return short(b) && short(n.src[2]);
    default:
      return false;
  }
}

/** What a cut to a small integer is made of: storing cuts by itself. */
export function uncut(value: KNode): KNode {
  if (value.op !== 'CAST') return value;
  const from = value.src[0];
  return from.dtype === 'int32' || from.dtype === 'uint32' ? from : value;
}

/** 32 bits cut to those of a small integer and extended again. */
export function wrapSmall(ctx: Context, n: KNode, { kind, width }: Reg, x: Lowered): Lowered {
  const { fn } = ctx;
  const bits = smallBits(n.dtype);
  if (n.lanes === 1) {
    const [v] = x.parts as [Val];
    if (kind === 'u32') return { parts: [fn.int(W.i32And, T.i32, v, fn.i32(2 ** bits - 1))], width };
    return { parts: [fn.op(bits === 8 ? W.i32Extend8S : W.i32Extend16S, T.i32, [v])], width };
  }
  const by = fn.i32(32 - bits);
  const shift = kind === 'u32' ? S.i32ShrU : S.i32ShrS;
  return { parts: mapParts([x.parts], ([v]) => vop(ctx, shift, vop(ctx, S.i32Shl, v!, by), by)), width };
}
