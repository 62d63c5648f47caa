/**
 * Vectors whose elements are near each other in a few rows, with steps or repeated: the rows are loaded in a few wide windows, and lanes are moved
 * from there. Pooling, strided convolutions and their gradients read in this way, and channels that become the last axis. Windows begin at fixed
 * positions of a row, so that vectors share them.
 */
import { idOf, type KNode, type KNodeOf, type RunPlace } from '@polygrad/core/kernel';
import type { Element } from './elements.ts';
import type { Block, Reg, Lowered } from '../form/code.ts';
import { makeParts, usedBytes } from '../form/vector-parts.ts';
import type { Context } from '../form/machine.ts';

/** Most windows of a part: moving lanes from each takes one instruction, loading one element takes two. */
const mostWindows = 4;

/** One part: its windows, with the window and position of each lane, or two halves that read windows of their own. */
export type Picked =
  | readonly [Picked, Picked]
  | {
      /** Elements of a window. */
      readonly size: number;
      readonly windows: readonly Window[];
      readonly lanes: readonly { readonly window: number; readonly at: number }[];
    };

/** Elements from `at` of a row on. */
interface Window {
  readonly run: RunPlace['run'];
  readonly at: number;
}

function isHalves(picked: Picked): picked is readonly [Picked, Picked] {
  return Array.isArray(picked);
}

/** The windows of a part, or null if loading its elements one by one is as good. */
export function pickWide(lanes: readonly Element[], places: ReadonlyMap<Element, RunPlace>): Picked | null {
  return pickOne(lanes, places) ?? pickHalves(lanes, places);
}

function pickHalves(lanes: readonly Element[], places: ReadonlyMap<Element, RunPlace>): Picked | null {
  if (lanes.length <= 4) return null;
  const low = pickWide(lanes.slice(0, lanes.length / 2), places);
  const high = low === null ? null : pickWide(lanes.slice(lanes.length / 2), places);
  return low === null || high === null ? null : [low, high];
}

function pickOne(lanes: readonly Element[], places: ReadonlyMap<Element, RunPlace>): Picked | null {
  const found: RunPlace[] = [];
  for (const n of lanes) {
    const place = places.get(n);
    if (place === undefined) return null;
    found.push(place);
  }
  let size = lanes.length;
  while (found.some(({ run }) => size > run.length)) size /= 2;
  const most = lanes.length === 4 ? mostWindows - 1 : mostWindows;
  const windows: Window[] = [];
  const windowOf = ({ run, position }: RunPlace): number =>
    windows.findIndex((w) => w.run === run && position >= w.at && position < w.at + size);
  for (const place of [...found].sort((a, b) => a.position - b.position)) {
    if (windowOf(place) >= 0) continue;
    if (windows.length === most) return null;
    const { run, position } = place;
    windows.push({ run, at: Math.min(position - (position % size), run.length - size) });
  }
  return {
    size,
    windows,
    lanes: found.map((place) => {
      const window = windowOf(place);
      return { window, at: place.position - windows[window]!.at };
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
    const { size, windows, lanes } = picked;
    const loaded = windows.map(({ run, at }) => this.#window(run.first, (run.from ?? 0) + at, size));
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
