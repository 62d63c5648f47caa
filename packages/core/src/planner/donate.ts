/**
 * Outputs written over dead inputs: which leaf's memory serves which output.
 *
 * A leaf may give its memory to an output if nobody can name the leaf afterwards (the cone says so), the output is stored
 * by the last kernel that reads the leaf, and that kernel reads each element of it only where it writes it.
 */
import type { Demand, KernelDraft, StoreDraft } from './fusion/draft.ts';
import { flatten } from './lowering/index-map.ts';
import type { Unit } from './fusion/order.ts';
import type { Partition } from './fusion/partition.ts';
import type { PlanNode } from './capture/plan-graph.ts';
import { isBelow } from './fusion/reach.ts';

/** From output to the leaf whose memory it takes. */
export type Donations = ReadonlyMap<PlanNode, PlanNode>;

/** Finds donations. `outputs` get buffers of their own, `pinned` have an output that is a view of them. */
export function findDonations(
  p: Partition,
  units: readonly Unit[],
  outputs: ReadonlySet<PlanNode>,
  pinned: ReadonlySet<PlanNode>,
): Donations {
  const donations = new Map<PlanNode, PlanNode>();
  const position = new Map(units.flatMap((unit, i) => unit.map((kernel): [KernelDraft, number] => [kernel, i])));
  for (const leaf of p.graph.nodes) {
    if (leaf.leaf === null || !leaf.leaf.donatable || pinned.has(leaf)) continue;
    const found = outputFor(p, leaf, position, outputs, donations);
    if (found !== null) donations.set(found, leaf);
  }
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
  // Read by kernels that run side by side, gathered from, or read in several places.
  for (const demand of demands) if (demand.kernel !== kernel && at(demand.kernel) === at(kernel)) return null;
  for (const reader of p.readersOf(leaf)) if (at(reader) >= at(kernel)) return null;
  if (last.gate !== null || last.operand || p.onlyDemand(kernel, leaf) !== last) return null;
  const { e } = p.context;
  const info = leaf.leaf!;
  const read = flatten(e, leaf.shape, last.index, info.strides, info.shift);
  // Whoever reads the leaf must do so at the same point of the same loops as the store, where all reads come before all writes.
  // Stores outside all loops are not ordered so.
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

/** True if computing one demand takes the other's value. */
function needs(demand: Demand, other: Demand): boolean {
  return isBelow(demand, other, ({ staged, parts }) => (staged === null ? parts : [staged.from]));
}
