/**
 * Places of temporaries: bytes of shared blocks, by their lifetimes.
 *
 * They are placed largest first, each at the lowest free offset: within a few percent of the best in practice.
 * Engines that cannot bind disjoint parts of one buffer in one dispatch get whole blocks, shared over time.
 */
import type { EngineCaps } from '../engine/engine.ts';

/** A temporary of `bytes` bytes, live from dispatch `first` to dispatch `last`. */
export interface Lifetime {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

export interface Placement {
  /** Bytes of each block to allocate for one run. */
  readonly blocks: readonly number[];
  /** The place of each lifetime. */
  readonly places: readonly { readonly block: number; readonly offset: number }[];
}

function overlaps(a: Lifetime, b: Lifetime): boolean {
  return a.first <= b.last && b.first <= a.last;
}

function largestFirst(items: readonly Lifetime[]): number[] {
  return items.map((_, i) => i).sort((a, b) => items[b]!.bytes - items[a]!.bytes || a - b);
}

/** Places all in one block, at aligned offsets. */
export function placeInArena(items: readonly Lifetime[], align: number): Placement {
  const places = new Array<{ block: number; offset: number }>(items.length);
  /** Placed items, by offset. */
  const placed: { readonly item: Lifetime; readonly from: number; readonly to: number }[] = [];
  let size = 0;
  for (const i of largestFirst(items)) {
    const item = items[i]!;
    let offset = 0;
    for (const { item: other, from, to } of placed) {
      if (!overlaps(item, other)) continue;
      if (offset + item.bytes <= from) break;
      offset = Math.max(offset, Math.ceil(to / align) * align);
    }
    places[i] = { block: 0, offset };
    const after = placed.findIndex(({ from }) => from > offset);
    placed.splice(after < 0 ? placed.length : after, 0, { item, from: offset, to: offset + item.bytes });
    size = Math.max(size, offset + item.bytes);
  }
  return { blocks: items.length > 0 ? [size] : [], places };
}

/** Places each at the start of a block that has no other user at the time. */
export function placeInBlocks(items: readonly Lifetime[]): Placement {
  const blocks: { bytes: number; users: Lifetime[] }[] = [];
  const places = new Array<{ block: number; offset: number }>(items.length);
  for (const i of largestFirst(items)) {
    const item = items[i]!;
    let block = blocks.findIndex(({ users }) => users.every((other) => !overlaps(item, other)));
    if (block < 0) block = blocks.push({ bytes: item.bytes, users: [] }) - 1;
    (blocks[block] as { users: Lifetime[] }).users.push(item);
    places[i] = { block, offset: 0 };
  }
  return { blocks: blocks.map((b) => b.bytes), places };
}

/** Places all in memory of an engine: in an arena where it may, and where that is not too large for one buffer. */
export function layOut(
  items: readonly Lifetime[],
  { arena, bindAlign, maxBufferBytes }: Pick<EngineCaps, 'arena' | 'bindAlign' | 'maxBufferBytes'>,
): Placement {
  const placed = arena ? placeInArena(items, Math.max(64, bindAlign)) : null;
  return placed !== null && (placed.blocks[0] ?? 0) <= maxBufferBytes ? placed : placeInBlocks(items);
}
