/**
 * The order in which kernels run, and which independent small ones run as one.
 *
 * A unit is one or more drafts that become one kernel side by side: many small kernels of an optimizer step cost a few
 * launches that way. Only drafts at the same distance from the inputs are put together, so units never wait in a circle.
 */
import { type KernelDraft, extentOf } from './draft.ts';
import type { Partition } from './partition.ts';
import type { PlanNode } from './plan-graph.ts';

export type Unit = readonly KernelDraft[];

/** Kernels with at most this much work are put together. */
const smallKernel = 1 << 20;
/** At most this many nests in one kernel. */
const mostNests = 24;

/** Everything a kernel binds: nodes in memory that it reads or writes. */
export function bindingsOf(p: Partition): Map<KernelDraft, Set<PlanNode>> {
  const bindings = new Map(p.kernels.map((kernel) => [kernel, new Set<PlanNode>()]));
  for (const node of p.graph.nodes) {
    if (node.role === 'leaf' && node.leaf === null) continue;
    for (const demand of p.demandsOf(node)) if (!demand.inline) bindings.get(demand.kernel)?.add(node);
    for (const reader of p.readersOf(node)) bindings.get(reader)?.add(node);
  }
  for (const kernel of p.kernels) for (const { demand } of kernel.stores) bindings.get(kernel)?.add(demand.node);
  return bindings;
}

/** Longest way from the inputs, counted in kernels. */
function levelsOf(order: readonly KernelDraft[]): Map<KernelDraft, number> {
  const levels = new Map(order.map((kernel) => [kernel, 0]));
  for (const kernel of order) {
    const next = (levels.get(kernel) as number) + 1;
    for (const reader of kernel.readers) if ((levels.get(reader) as number) < next) levels.set(reader, next);
  }
  return levels;
}

/** Puts small independent kernels together as far as `maxBindings` allows, and orders the result. */
export function unitsOf(p: Partition, maxBindings: number): Unit[] {
  const alone = order(p.kernels.map((kernel) => [kernel])).flat();
  const levels = levelsOf(alone);
  const bindings = bindingsOf(p);
  const open = new Map<number, { drafts: KernelDraft[]; bound: Set<PlanNode> }>();
  const units: KernelDraft[][] = [];
  for (const kernel of alone) {
    const work = extentOf(kernel.axes) * kernel.stores.reduce((sum, s) => sum + 1 + (p.facts.cost[s.demand.node.index] as number), 0);
    const own = bindings.get(kernel) as Set<PlanNode>;
    if (kernel.closed || kernel.contraction !== null || work > smallKernel) {
      units.push([kernel]);
      continue;
    }
    const level = levels.get(kernel) as number;
    const unit = open.get(level);
    const bound = unit === undefined ? own : new Set([...unit.bound, ...own]);
    if (unit !== undefined && bound.size <= maxBindings && unit.drafts.length < mostNests) {
      unit.drafts.push(kernel);
      unit.bound = bound;
    } else {
      const drafts = [kernel];
      units.push(drafts);
      open.set(level, { drafts, bound: new Set(own) });
    }
  }
  return order(units);
}

/** Producers first, otherwise as the nodes were recorded. */
function order(units: readonly Unit[]): Unit[] {
  const unitOf = new Map<KernelDraft, Unit>();
  for (const unit of units) for (const kernel of unit) unitOf.set(kernel, unit);
  const readers = new Map(units.map((unit) => [unit, new Set(unit.flatMap((kernel) => [...kernel.readers].map((r) => unitOf.get(r) as Unit)))]));
  const waiting = new Map(units.map((unit) => [unit, 0]));
  for (const unit of units) for (const reader of readers.get(unit) as Set<Unit>) waiting.set(reader, (waiting.get(reader) as number) + 1);
  const rank = new Map(units.map((unit) => [unit, Math.min(...unit.flatMap((kernel) => kernel.stores.map((s) => s.demand.node.index)))]));
  const ready = units.filter((unit) => waiting.get(unit) === 0);
  const result: Unit[] = [];
  while (ready.length > 0) {
    let best = 0;
    for (let i = 1; i < ready.length; i++) if ((rank.get(ready[i] as Unit) as number) < (rank.get(ready[best] as Unit) as number)) best = i;
    const unit = ready[best] as Unit;
    ready[best] = ready[ready.length - 1] as Unit;
    ready.pop();
    result.push(unit);
    for (const reader of readers.get(unit) as Set<Unit>) {
      const left = (waiting.get(reader) as number) - 1;
      waiting.set(reader, left);
      if (left === 0) ready.push(reader);
    }
  }
  if (result.length !== units.length) throw new Error(`[plan] ${units.length - result.length} kernels wait for each other; this is a bug in the partition`);
  return result;
}
