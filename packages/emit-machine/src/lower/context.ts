/** What the lowering functions share: values found so far, and vectors in parts as wide as the machine's. */
import type { KNode } from '@polygrad/core/kernel';
import type { Builder } from '../builder.ts';
import type { Reg } from '../code.ts';
import { type Kind, type MachineTarget, refuse, widthOf } from '../target.ts';
import type { Masks } from './masks.ts';

/**
 * A lowered value: one register for a scalar, otherwise the parts of a vector, all as wide as `vectorBytes` of the target if there is more than one.
 * `width` is the size of a lane. Masks have one register with v4, and parts of either width with v3.
 */
export interface Lowered {
  readonly parts: readonly Reg[];
  readonly width: 4 | 8;
}

export interface Context {
  readonly b: Builder;
  readonly target: MachineTarget;
  readonly masks: Masks;
  /** The lowered form of a source that stands earlier in the body. */
  get(node: KNode): Lowered;
  /** How many live nodes use this one. */
  uses(node: KNode): number;
}

/** Parts that hold so many lanes. */
export function partCount({ target }: Context, lanes: number, width: number): number {
  if ((lanes & (lanes - 1)) !== 0) refuse(`vectors must have a power of two lanes: got ${lanes}`);
  return Math.max(1, (lanes * width) / target.vectorBytes);
}

/** Bytes that each part holds. */
export function usedBytes({ target }: Context, lanes: number, width: number): number {
  return Math.min(target.vectorBytes, lanes * width);
}

/** Bytes of the registers that hold the parts: 16 at least. */
export function partBytes(ctx: Context, lanes: number, width: number): number {
  return Math.max(16, usedBytes(ctx, lanes, width));
}

export function makeParts(ctx: Context, lanes: number, width: 4 | 8, make: (part: number) => Reg): Lowered {
  return { parts: Array.from({ length: partCount(ctx, lanes, width) }, (_, p) => make(p)), width };
}

/** The lower or upper half of a vector of so many bytes. */
export function half({ b }: Context, v: Reg, bytes: number, upper: boolean): Reg {
  if (!upper) return v;
  if (bytes === 64) return b.op('vextractf64x4', 64, v, 1);
  return bytes === 32 ? b.op('vextractf128', 32, v, 1) : b.op('vmovhlps', 16, v, v);
}

/** Two halves as one vector of so many bytes. */
export function join({ b }: Context, low: Reg, high: Reg, bytes: number): Reg {
  if (bytes === 64) return b.op('vinsertf64x4', 64, low, high, 1);
  return bytes === 32 ? b.op('vinsertf128', 32, low, high, 1) : b.op('vmovlhps', 16, low, high);
}

/** The lower four bytes of every eight, in half as many bytes. */
export function lowWords(ctx: Context, v: Reg, bytes: number): Reg {
  const { b } = ctx;
  if (bytes === 16) return b.op('vpshufd', 16, v, 0x08);
  if (ctx.target.isa === 'x64-v4') return b.op('vpmovqd', bytes, v);
  return b.op('vshufps', 16, v, half(ctx, v, bytes, true), 0x88);
}

/** A scalar in all lanes. */
export function splat({ b }: Context, kind: Kind, scalar: Reg, bytes: number): Reg {
  if (scalar.cls === 'v') return spread(b, scalar, widthOf(kind), bytes);
  const long = widthOf(kind) === 8;
  return spread(b, b.op(long ? 'vmovq' : 'vmovd', 16, scalar), long ? 8 : 4, bytes);
}

function spread(b: Builder, x: Reg, width: 4 | 8, bytes: number): Reg {
  if (width === 4) return b.op('vbroadcastss', bytes, x);
  return bytes === 16 ? b.op('vmovddup', 16, x) : b.op('vbroadcastsd', bytes, x);
}

/** A lane of a vector that is no mask, as a scalar of its kind. */
export function extract(ctx: Context, kind: Kind, { parts, width }: Lowered, lane: number): Reg {
  const { b, target } = ctx;
  const perPart = target.vectorBytes / width;
  const part = parts[Math.floor(lane / perPart)]!;
  const at = (lane % perPart) * width;
  let x = part;
  if (at >= 32) x = b.op('vextractf64x4', 64, x, 1);
  if (at % 32 >= 16) x = b.op('vextractf128', 32, x, 1);
  const inside = at % 16;
  if (inside !== 0) {
    if (inside === 8) x = b.op('vpshufd', 16, x, 0xee);
    else x = b.op('vpshufd', 16, x, (inside / 4) * 0x55);
  }
  if (kind === 'f32' || kind === 'f64') return x === part ? b.copy(x, 16) : x;
  return b.op(width === 8 ? 'vmovq:get' : 'vmovd:get', 16, x);
}

/** A vector of scalars that are no bools. */
export function gather(ctx: Context, kind: Kind, lanes: number, laneOf: (i: number) => Reg): Lowered {
  const { b } = ctx;
  const width = widthOf(kind);
  const used = usedBytes(ctx, lanes, width);
  const inVector = (i: number): Reg => {
    const r = laneOf(i);
    return r.cls === 'v' ? r : b.op(width === 8 ? 'vmovq' : 'vmovd', 16, r);
  };
  /** `bytes` from lane `at` on. */
  const make = (at: number, bytes: number): Reg => {
    if (bytes > 16) return join(ctx, make(at, bytes / 2), make(at + bytes / 2 / width, bytes / 2), bytes);
    const first = inVector(at);
    if (width === 8) return bytes === 8 ? first : b.op('vmovlhps', 16, first, inVector(at + 1));
    let v = first;
    for (let i = 1; i < bytes / 4; i++) v = b.op('vinsertps', 16, v, inVector(at + i), i << 4);
    return v;
  };
  return makeParts(ctx, lanes, width, (p) => make((p * used) / width, used));
}
