/**
 * Vectors whose elements are near each other in one row, with steps or repeated: the row is loaded in a few wide windows, and lanes are moved
 * from there. Pooling, strided convolutions and their gradients read in this way. Windows begin at fixed positions of the row, so that vectors share them.
 */
import { idOf, type KNode, type KNodeOf, type RunPlace } from '@polygrad/core/kernel';
import type { Block, Reg } from '../form/code.ts';
import { type Context, type Lowered, makeParts, usedBytes } from '../form/context.ts';

/** Most windows of a part: moving lanes from each takes one instruction, loading one element takes two. */
const mostWindows = 4;

/** One part: its windows, with the window and position of each lane, or two halves that read two rows. */
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

/** The windows of a part, or null if loading its elements one by one is as good. */
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
  /** Windows in registers, for each block. */
  readonly #loaded = new Map<Block, Map<string, Reg>>();

  /** @param row loads elements, `at` elements behind those of a load */
  constructor(ctx: Context, row: (load: KNodeOf<'LOAD'>, at: number, lanes: number) => Reg) {
    this.#ctx = ctx;
    this.#row = row;
  }

  /** A vector of such parts. */
  vector(n: KNode, parts: readonly Picked[]): Lowered {
    const bytes = usedBytes(this.#ctx, n.lanes, 4);
    return makeParts(this.#ctx, n.lanes, 4, (p) => this.#part(parts[p]!, bytes));
  }

  #part(picked: Picked, bytes: number): Reg {
    if (isHalves(picked))
      return this.#ctx.machine.lanes.join(
        this.#ctx,
        this.#part(picked[0], bytes / 2),
        this.#part(picked[1], bytes / 2),
        bytes,
      );
    const { first, size, windows, lanes } = picked;
    const loaded = windows.map((at) => this.#window(first, at, size));
    if (windows.length === 1 && size === lanes.length && lanes.every(({ at }, i) => at === i)) return loaded[0]!;
    return this.#ctx.machine.lanes.pick(this.#ctx, loaded, lanes, bytes);
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
