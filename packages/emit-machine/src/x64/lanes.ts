/** Lanes of vectors in x86-64: halves, one scalar in all of them, one of them as a scalar. */
import type { Builder } from '../form/builder.ts';
import type { Reg, Lowered } from '../form/code.ts';
import { makeParts, usedBytes } from '../form/vector-parts.ts';
import type { Context, Lanes } from '../form/machine.ts';
import { type Kind, widthOf } from '../target.ts';
import { pickLanes } from './windows.ts';

function half({ b }: Context, v: Reg, bytes: number, upper: boolean): Reg {
  if (!upper) return v;
  if (bytes === 64) return b.op('vextractf64x4', 64, v, 1);
  return bytes === 32 ? b.op('vextractf128', 32, v, 1) : b.op('vmovhlps', 16, v, v);
}

function join({ b }: Context, low: Reg, high: Reg, bytes: number): Reg {
  if (bytes === 64) return b.op('vinsertf64x4', 64, low, high, 1);
  return bytes === 32 ? b.op('vinsertf128', 32, low, high, 1) : b.op('vmovlhps', 16, low, high);
}

function lowWords(ctx: Context, v: Reg, bytes: number): Reg {
  const { b } = ctx;
  if (bytes === 16) return b.op('vpshufd', 16, v, 0x08);
  if (ctx.target.isa === 'x64-v4') return b.op('vpmovqd', bytes, v);
  return b.op('vshufps', 16, v, half(ctx, v, bytes, true), 0x88);
}

function splat({ b }: Context, kind: Kind, scalar: Reg, bytes: number): Reg {
  if (scalar.cls === 'v') return spread(b, scalar, widthOf(kind), bytes);
  const long = widthOf(kind) === 8;
  return spread(b, b.op(long ? 'vmovq' : 'vmovd', 16, scalar), long ? 8 : 4, bytes);
}

function spread(b: Builder, x: Reg, width: 4 | 8, bytes: number): Reg {
  if (width === 4) return b.op('vbroadcastss', bytes, x);
  return bytes === 16 ? b.op('vmovddup', 16, x) : b.op('vbroadcastsd', bytes, x);
}

function extract(ctx: Context, kind: Kind, { parts, width }: Lowered, lane: number): Reg {
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

function gather(ctx: Context, kind: Kind, lanes: number, laneOf: (i: number) => Reg): Lowered {
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

/** Two elements of each of two vectors: operands of `vshufps`. */
const shuffles = { even: 0x88, odd: 0xdd, first: 0x44, last: 0xee } as const;

export const lanes: Lanes = {
  half,
  join,
  lowWords,
  splat,
  extract,
  gather,
  pairs: ({ b }, which, x, y, bytes) => b.op('vshufps', bytes, x, y, shuffles[which]),
  pick: pickLanes,
};
