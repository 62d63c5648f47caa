/**
 * Donation: outputs written over dead inputs.
 *
 * A leaf may give its memory to an output under three conditions. No caller can read the leaf afterwards (the captured graph says so). The last
 * kernel that reads the leaf stores the output. That kernel reads each element of the leaf only where it writes it, or is a program
 * that updates it in place.
 */
import { definitionOf } from '../graph/definition.ts';
import type { PlanNode } from './capture/plan-graph.ts';
import { type Demand, isBelow, type KernelDraft, type StoreDraft } from './fusion/draft.ts';
import type { Unit } from './fusion/order.ts';
import type { Partition } from './fusion/partition.ts';
import { flatten } from './lowering/index-map.ts';

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
