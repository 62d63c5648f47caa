/**
 * Places of temporaries: which bytes of which shared block each one gets, by when it is needed.
 *
 * Largest first, each at the lowest offset where nothing that lives at the same time lies: within a few percent of the best
 * in practice. Engines that cannot bind parts of one buffer side by side get whole blocks, shared one after the other.
 */

/** Something that needs `bytes` bytes from dispatch `first` to dispatch `last`. */
export interface Lifetime {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

export interface Placement {
  /** Bytes of each block to allocate for one run. */
  readonly blocks: readonly number[];
  /** One per lifetime. */
  readonly places: readonly { readonly block: number; readonly offset: number }[];
}

function overlaps(a: Lifetime, b: Lifetime): boolean {
  return a.first <= b.last && b.first <= a.last;
}

function largestFirst(items: readonly Lifetime[]): number[] {
  return items.map((_, i) => i).sort((a, b) => items[b]!.bytes - items[a]!.bytes || a - b);
}

/** All in one block, at aligned offsets. */
export function placeInArena(items: readonly Lifetime[], align: number): Placement {
  const places = new Array<{ block: number; offset: number }>(items.length);
  /** What has its place, by offset. */
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

/** Each at the start of a block that nothing else uses at the same time. */
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
