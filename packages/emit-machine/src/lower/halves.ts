/**
 * float16 between its bits and float32. Vectors of it are packed, 16 bits a lane, unlike all else in this package: their parts have half the bytes of
 * those of float32. Scalars are in vector registers.
 */
import type { KNode } from '@polygrad/core/kernel';
import { partBytes } from '../form/vector-parts.ts';
import type { Context } from '../form/machine.ts';
import type { Lowered } from '../form/code.ts';
import { kindOf, refuse } from '../target.ts';

/** True for a vector of bits that is only converted from or to float16: it stays packed. */
export function isPacked(n: KNode, user: KNode | undefined): boolean {
  if (n.dtype !== 'uint16' || n.lanes === 1 || user === undefined) return false;
  if (n.op === 'LOAD') return user.op === 'BITCAST' && user.dtype === 'float16' && !isGated(n);
  return n.op === 'BITCAST' && n.src[0].dtype === 'float16' && user.op === 'STORE' && user.src[0].op !== 'REG';
}

/** True if a gate may replace the loaded value. */
function isGated(n: KNode): boolean {
  const alt = n.src[3];
  return alt !== undefined && !(alt.op === 'CONST' && Number(alt.arg.value) === 0);
}

/** A CAST from or to float16. */
export function castHalf(ctx: Context, n: KNode): Lowered {
  const [source] = n.src as readonly [KNode];
  const { b, machine } = ctx;
  const widens = source.dtype === 'float16';
  if (kindOf(widens ? n.dtype : source.dtype) !== 'f32') refuse(`no cast from ${source.dtype} to ${n.dtype}`);
  const bytes = n.lanes === 1 ? 16 : partBytes(ctx, n.lanes, 4);
  const { widen, narrow } = machine.halves;
  return { parts: ctx.get(source).parts.map((v) => (widens ? widen : narrow)(b, v, bytes)), width: 4 };
}

/** A BITCAST from or to float16. `packed`: both sides are. */
export function bitcastHalf(ctx: Context, n: KNode, packed: boolean): Lowered {
  const [source] = n.src as readonly [KNode];
  const value = ctx.get(source);
  if (packed) return value;
  if (source.dtype !== 'uint16' && n.dtype !== 'uint16') refuse(`no bitcast from ${source.dtype} to ${n.dtype}`);
  const { b, machine } = ctx;
  const { casts, halves } = machine;
  const [first] = value.parts;
  if (n.dtype === 'float16') {
    if (n.lanes === 1) return { parts: [casts.bits(b, 'f32', first!)], width: 4 };
    return { parts: value.parts.map((v) => halves.pack(ctx, v, partBytes(ctx, n.lanes, 4))), width: 4 };
  }
  if (n.lanes === 1) return { parts: [casts.wrap(b, casts.bits(b, 'u32', first!), 16, false)], width: 4 };
  return { parts: value.parts.map((v) => halves.unpack(b, v, partBytes(ctx, n.lanes, 4))), width: 4 };
}
