/** Lanes of vectors in arm64. */
import type { Builder } from '../form/builder.ts';
import type { Reg, Lowered } from '../form/code.ts';
import { makeParts, usedBytes } from '../form/vector-parts.ts';
import type { Context, Lanes } from '../form/machine.ts';
import { isFloat, type Kind, widthOf } from '../target.ts';

/** For each splat the register whose lowest lane it holds. */
const spread = new WeakMap<Reg, Reg>();

/** Copies the lowest lane to all lanes. */
export function spreadLane(b: Builder, from: Reg, width: 4 | 8): Reg {
  const d = b.op(width === 8 ? 'dup:2d' : 'dup:4s', 16, from, 0);
  // A register that may change was read now, so it is not noted.
  if (!from.mutable) spread.set(d, from);
  return d;
}

/** The register whose lowest lane fills all lanes of this one, or null. */
export function laneOf(v: Reg): Reg | null {
  return spread.get(v) ?? null;
}

function extract({ b, target }: Context, kind: Kind, { parts, width }: Lowered, lane: number): Reg {
  const perPart = target.vectorBytes / width;
  const part = parts[Math.floor(lane / perPart)]!;
  const at = lane % perPart;
  if (!isFloat(kind)) return b.op(width === 8 ? 'mov:get_x' : 'mov:get_w', 8, part, at);
  if (at === 0) return b.copy(part, 16);
  return b.op(width === 8 ? 'mov:lane_d' : 'mov:lane_s', 16, part, at);
}

function gather(ctx: Context, kind: Kind, lanes: number, laneOf: (i: number) => Reg): Lowered {
  const { b } = ctx;
  const width = widthOf(kind);
  const perPart = usedBytes(ctx, lanes, width) / width;
  const make = (from: number): Reg => {
    const first = laneOf(from);
    // Lane 0 of a new register first, then the other lanes.
    const d =
      first.cls === 'v'
        ? perPart === 1
          ? first
          : b.copy(first, 16)
        : b.op(width === 8 ? 'fmov:dx' : 'fmov:sw', 16, first);
    for (let i = 1; i < perPart; i++) {
      const r = laneOf(from + i);
      if (r.cls === 'g') b.ins(width === 8 ? 'mov:set_x' : 'mov:set_w', 16, d, i, r);
      else if (width === 4) b.ins('mov:set_s', 16, d, i, r, 0);
      else b.ins('zip1:2d', 16, d, d, r);
    }
    return d;
  };
  return makeParts(ctx, lanes, width, (p) => make(p * perPart));
}

const pairs = { even: 'uzp1:4s', odd: 'uzp2:4s', first: 'zip1:2d', last: 'zip2:2d' } as const;

/** Table lookup indices: where each lane's bytes are in one of the vectors; out of range for other lanes, which gives 0. */
function table(lanes: readonly { readonly window: number; readonly at: number }[], window: number): Uint8Array {
  const bytes = new Uint8Array(16).fill(0xff);
  for (const [i, lane] of lanes.entries())
    if (lane.window === window) for (let k = 0; k < 4; k++) bytes[i * 4 + k] = lane.at * 4 + k;
  return bytes;
}

export const lanes: Lanes = {
  half: ({ b }, v, _bytes, upper) => (upper ? b.op('mov:lane_d', 16, v, 1) : v),
  join: ({ b }, low, high) => b.op('zip1:2d', 16, low, high),
  lowWords: ({ b }, v) => b.op('xtn:2s', 16, v),
  splat({ b }, kind, scalar) {
    if (scalar.cls === 'v') return spreadLane(b, scalar, widthOf(kind));
    return b.op(widthOf(kind) === 8 ? 'dup:x' : 'dup:w', 16, scalar);
  },
  extract,
  gather,
  pairs: ({ b }, which, x, y) => b.op(pairs[which], 16, x, y),
  pick({ b }, vectors, places) {
    const d = b.op('tbl:16b', 16, vectors[0]!, b.vector(table(places, 0)));
    for (let i = 1; i < vectors.length; i++) b.ins('tbx:16b', 16, d, vectors[i]!, b.vector(table(places, i)));
    return d;
  },
};
