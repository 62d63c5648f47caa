/**
 * Memory of a plan: places of temporaries, and outputs written over dead inputs.
 *
 * Temporaries are placed by their lifetimes in shared blocks, largest first, each at the lowest free offset: within a few percent of the best in practice.
 * Engines that cannot bind disjoint parts of one buffer in one dispatch get whole blocks, shared over time.
 *
 * A leaf may give its memory to an output (a donation) under three conditions. No caller can read the leaf afterwards (the captured graph says so). The last
 * kernel that reads the leaf stores the output. That kernel reads each element of the leaf only where it writes it, or is a program
 * that updates it in place.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { definitionOf } from '../graph/definition.ts';
import type { PlanNode } from './capture/plan-graph.ts';
import { type Demand, isBelow, type KernelDraft, type StoreDraft } from './fusion/draft.ts';
import type { Unit } from './fusion/order.ts';
import type { Partition } from './fusion/partition.ts';
import { flatten } from './lowering/index-map.ts';

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

/** For each output the leaf whose memory it takes. */
export type Donations = ReadonlyMap<PlanNode, PlanNode>;

/** Finds donations. `outputs` have their own buffers; other outputs are views of `pinned` nodes. */
export function findDonations(
  p: Partition,
  units: readonly Unit[],
  outputs: ReadonlySet<PlanNode>,
  pinned: ReadonlySet<PlanNode>,
): Donations {
  const donations = new Map<PlanNode, PlanNode>();
  const position = new Map(units.flatMap((unit, i) => unit.map((kernel): [KernelDraft, number] => [kernel, i])));
  for (const leaf of p.graph.nodes) {
    if (!leaf.leaf?.donatable || pinned.has(leaf)) continue;
    const found = outputFor(p, leaf, position, outputs, donations);
    if (found !== null) donations.set(found, leaf);
  }
  for (const kernel of p.kernels)
    definitionOf(kernel.stores[0]!.target.op).updates?.(kernel, p, outputs, pinned, donations, position);
  return donations;
}

/** The output that may take the leaf's memory, or null. */
function outputFor(
  p: Partition,
  leaf: PlanNode,
  position: ReadonlyMap<KernelDraft, number>,
  outputs: ReadonlySet<PlanNode>,
  taken: Donations,
): PlanNode | null {
  const demands = p.demandsOf(leaf);
  let last: Demand | null = null;
  const at = (kernel: KernelDraft): number => position.get(kernel)!;
  for (const demand of demands) if (last === null || at(demand.kernel) > at(last.kernel)) last = demand;
  if (last === null) return null;
  const { kernel } = last;
  // Several kernels read it, or one reads it by gather or at several indices.
  for (const demand of demands) if (demand.kernel !== kernel && at(demand.kernel) === at(kernel)) return null;
  for (const reader of p.readersOf(leaf)) if (at(reader) >= at(kernel)) return null;
  if (last.gate !== null || last.operand || p.onlyDemand(kernel, leaf) !== last) return null;
  const { e } = p.context;
  const info = leaf.leaf!;
  const read = flatten(e, leaf.shape, last.index, info.strides, info.shift);
  // Every read of the leaf must be in the same iteration of the same loops as the store: there all reads come before all writes.
  // Stores outside of loops have no such order.
  const readers = kernel.stores.filter((store) => needs(store.demand, last));
  for (const { demand, ranges, target: node, at: place } of kernel.stores) {
    const together = (store: StoreDraft): boolean =>
      store.demand === demand ||
      (ranges.length > 0 && store.ranges.length === ranges.length && store.ranges.every((r) => ranges.includes(r)));
    if (!readers.every(together)) continue;
    if (!outputs.has(node) || taken.has(node) || node.dtype !== leaf.dtype || node.size !== info.span) continue;
    if (flatten(e, node.shape, place) === read) return node;
  }
  return null;
}

/** True if computing one demand uses the other's value. */
function needs(demand: Demand, other: Demand): boolean {
  return isBelow(demand, other, ({ staged, parts }) => (staged === null ? parts : [staged.from]));
}
