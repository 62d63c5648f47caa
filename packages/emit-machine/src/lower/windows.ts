/**
 * Vectors whose elements lie near each other in one row, with steps or more than once: the row is loaded in few wide windows, and lanes are moved
 * from there. Pooling, strided convolutions and their gradients read so. Windows lie at fixed places of the row, so that vectors share them.
 */
import { idOf, type KNode, type KNodeOf, type RunPlace } from '@polygrad/core/kernel';
import type { Block, Reg } from '../code.ts';
import { type Context, join, type Lowered, makeParts, usedBytes } from './context.ts';

/** Windows of a part at most: moving lanes from each takes an instruction, and loading one element takes two. */
const mostWindows = 4;

/** One part: either its windows, and of each lane the window and the place in it, or two halves that read two rows. */
export type Picked =
  | readonly [Picked, Picked]
  | {
      readonly first: KNodeOf<'LOAD'>;
      /** Elements of a window, and where each begins. */
      readonly size: number;
      readonly windows: readonly number[];
      readonly lanes: readonly { readonly window: number; readonly at: number }[];
    };

function isHalves(picked: Picked): picked is readonly [Picked, Picked] {
  return Array.isArray(picked);
}

/** The windows of a part, or null where loading its elements one by one is as good. */
export function pickWide(lanes: readonly KNode[], places: ReadonlyMap<KNode, RunPlace>): Picked | null {
  return pickOne(lanes, places) ?? pickHalves(lanes, places);
}

function pickHalves(lanes: readonly KNode[], places: ReadonlyMap<KNode, RunPlace>): Picked | null {
  if (lanes.length <= 4) return null;
  const low = pickWide(lanes.slice(0, lanes.length / 2), places);
  const high = low === null ? null : pickWide(lanes.slice(lanes.length / 2), places);
  return low === null || high === null ? null : [low, high];
}

function pickOne(lanes: readonly KNode[], places: ReadonlyMap<KNode, RunPlace>): Picked | null {
  const found = lanes.map((n) => places.get(n));
  const run = found[0]?.run;
  if (run === undefined || found.some((p) => p?.run !== run)) return null;
  const positions = found.map((p) => p!.position);
  let size = lanes.length;
  while (size > run.length) size /= 2;
  const windows: number[] = [];
  const inside = (start: number, p: number): boolean => p >= start && p < start + size;
  for (const p of [...positions].sort((a, b) => a - b)) {
    if (windows.some((start) => inside(start, p))) continue;
    if (windows.length === (lanes.length === 4 ? mostWindows - 1 : mostWindows)) return null;
    windows.push(Math.min(p - (p % size), run.length - size));
  }
  return {
    first: run.first,
    size,
    windows,
    lanes: positions.map((p) => {
      const window = windows.findIndex((start) => inside(start, p));
      return { window, at: p - windows[window]! };
    }),
  };
}

/** Writes such vectors. */
export class Windows {
  readonly #ctx: Context;
  readonly #row: (load: KNodeOf<'LOAD'>, at: number, lanes: number) => Reg;
  /** Windows that are in registers, of each block. */
  readonly #loaded = new Map<Block, Map<string, Reg>>();

  /** @param row loads so many elements, `at` behind that of a load */
  constructor(ctx: Context, row: (load: KNodeOf<'LOAD'>, at: number, lanes: number) => Reg) {
    this.#ctx = ctx;
    this.#row = row;
  }

  /** A vector made of such parts. */
  vector(n: KNode, parts: readonly Picked[]): Lowered {
    const bytes = usedBytes(this.#ctx, n.lanes, 4);
    return makeParts(this.#ctx, n.lanes, 4, (p) => this.#part(parts[p]!, bytes));
  }

  #part(picked: Picked, bytes: number): Reg {
    if (isHalves(picked))
      return join(this.#ctx, this.#part(picked[0], bytes / 2), this.#part(picked[1], bytes / 2), bytes);
    const { first, size, windows, lanes } = picked;
    const loaded = windows.map((at) => this.#window(first, at, size));
    if (windows.length === 1 && size === lanes.length && lanes.every(({ at }, i) => at === i)) return loaded[0]!;
    if (bytes === 16) {
      const few = this.#short(loaded, lanes);
      if (few !== null) return few;
    }
    return this.#ctx.target.isa === 'x64-v4' ? this.#moved(loaded, lanes, bytes) : this.#blended(loaded, lanes, bytes);
  }

  /** Four lanes by one instruction, where there is one: of one window, or the first two lanes of one and the last two of another. */
  #short(loaded: readonly Reg[], lanes: readonly { readonly window: number; readonly at: number }[]): Reg | null {
    const { b } = this.#ctx;
    const [w, x, y, z] = lanes as [(typeof lanes)[0], (typeof lanes)[0], (typeof lanes)[0], (typeof lanes)[0]];
    const how = w.at | (x.at << 2) | (y.at << 4) | (z.at << 6);
    if (loaded.length === 1) return b.op('vpshufd', 16, loaded[0]!, how);
    if (w.window !== x.window || y.window !== z.window) return null;
    return b.op('vshufps', 16, loaded[w.window]!, loaded[y.window]!, how);
  }

  /** AVX-512: lanes of two windows at a time; then those of each further one among what is there. */
  #moved(
    loaded: readonly Reg[],
    lanes: readonly { readonly window: number; readonly at: number }[],
    bytes: number,
  ): Reg {
    const { b } = this.#ctx;
    const width = bytes / 4;
    if (loaded.length === 1)
      return b.op(
        'vpermps',
        bytes,
        words(
          this.#ctx,
          lanes.map(({ at }) => at),
        ),
        loaded[0]!,
      ); // prettier-ignore
    let made = loaded[0]!;
    for (let next = 1; next < loaded.length; next++) {
      const to = b.copy(made, bytes);
      const from = lanes.map(({ window, at }, lane) =>
        window === next ? width + at : window > next ? 0 : next === 1 ? at : lane,
      );
      b.ins('vpermt2ps', bytes, to, words(this.#ctx, from), loaded[next]!);
      made = to;
    }
    return made;
  }

  /** AVX2: lanes of each window moved to their places, and then taken from there. */
  #blended(
    loaded: readonly Reg[],
    lanes: readonly { readonly window: number; readonly at: number }[],
    bytes: number,
  ): Reg {
    const { b } = this.#ctx;
    const placed = loaded.map((reg, i) => {
      const from = lanes.map(({ window, at }) => (window === i ? at : 0));
      if (bytes === 16)
        return b.op(
          'vpshufd',
          16,
          reg,
          from.reduce((sum, at, lane) => sum | (at << (2 * lane)), 0),
        );
      return b.op('vpermps', bytes, words(this.#ctx, from), reg);
    });
    return placed.reduce((made, reg, i) =>
      b.op(
        'vblendps',
        bytes,
        made,
        reg,
        lanes.reduce((mask, { window }, lane) => mask | (Number(window === i) << lane), 0),
      ),
    );
  }

  #window(first: KNodeOf<'LOAD'>, at: number, size: number): Reg {
    const { b } = this.#ctx;
    let all = this.#loaded.get(b.current);
    if (all === undefined) this.#loaded.set(b.current, (all = new Map()));
    const key = `${idOf(first)}+${at}x${size}`;
    let made = all.get(key);
    if (made === undefined) all.set(key, (made = this.#row(first, at, size)));
    return made;
  }
}

/** A vector of integers that is a constant. */
function words({ b }: Context, values: readonly number[]): Reg {
  return b.vector(new Uint8Array(new Uint32Array(values).buffer));
}
