/**
 * The order in which kernels run, and which independent small ones run as one.
 *
 * A unit is one or more drafts that become one kernel side by side: many small kernels of an optimizer step cost a few
 * launches that way. Drafts are put together only where no way leads from one unit to the other.
 */
import { sizeOf } from '@polygrad/compiler/ir/free-ranges';
import type { KernelDraft } from './draft.ts';
import type { Partition } from './partition.ts';
import { type PlanNode, typicalOf } from '../capture/plan-graph.ts';

export type Unit = readonly KernelDraft[];

/** Kernels with at most this much work are put together. */
const smallKernel = 1 << 20;
/** At most this many nests in one kernel. */
const mostNests = 24;

/**
 * At most this many values in one kernel: numbers it takes (the CPU engine has room for 1024) and steps of its expressions. Long chains of
 * operations become several kernels, which are alike where the chain is.
 */
export const mostValues = 1024;

/** Everything a kernel binds: nodes in memory that it reads or writes. */
export function bindingsOf(p: Partition): Map<KernelDraft, Set<PlanNode>> {
  const bindings = new Map(p.kernels.map((kernel) => [kernel, new Set<PlanNode>()]));
  for (const node of p.graph.nodes) {
    if (node.role === 'leaf' && node.leaf === null) continue;
    for (const demand of p.demandsOf(node)) if (!demand.inline) bindings.get(demand.kernel)?.add(node);
    for (const reader of p.readersOf(node)) bindings.get(reader)?.add(node);
  }
  for (const kernel of p.kernels) for (const { target } of kernel.stores) bindings.get(kernel)?.add(target);
  return bindings;
}

/** Puts small independent kernels together as far as `maxBindings` allows, and orders the result. */
export function unitsOf(p: Partition, maxBindings: number): Unit[] {
  const units: KernelDraft[][] = [];
  const unitOf = new Map<KernelDraft, KernelDraft[]>();
  const open: { drafts: KernelDraft[]; bound: Set<PlanNode>; values: number }[] = [];
  const bindings = bindingsOf(p);
  const sources = new Map(p.kernels.map((kernel) => [kernel, new Set<KernelDraft>()]));
  for (const kernel of p.kernels) for (const reader of kernel.readers) sources.get(reader)?.add(kernel);
  for (const [kernel] of order(
    p.kernels.map((kernel): [KernelDraft] => [kernel]),
    false,
  ) as [KernelDraft][]) {
    const drafts = [kernel];
    unitOf.set(kernel, drafts);
    units.push(drafts);
  }
  for (const drafts of [...units]) {
    const [kernel] = drafts as [KernelDraft];
    const own = bindings.get(kernel)!;
    if (kernel.handwritten || kernel.contraction !== null || workOf(p, kernel) > smallKernel) continue;
    const before = reached(drafts, (k) => sources.get(k)!, unitOf);
    const after = reached(drafts, (k) => k.readers, unitOf);
    const home = open.find((unit) => {
      if (unit.drafts.length >= mostNests || unit.values + kernel.demands.length > mostValues) return false;
      let count = unit.bound.size;
      for (const node of own) if (!unit.bound.has(node)) count++;
      return count <= maxBindings && !before.has(unit.drafts) && !after.has(unit.drafts);
    });
    if (home === undefined) {
      open.push({ drafts, bound: new Set(own), values: kernel.demands.length });
      continue;
    }
    home.drafts.push(kernel);
    home.values += kernel.demands.length;
    for (const node of own) home.bound.add(node);
    unitOf.set(kernel, home.drafts);
    units.splice(units.indexOf(drafts), 1);
  }
  return order(units, true);
}

function workOf(p: Partition, kernel: KernelDraft): number {
  return kernel.stores.reduce(
    (sum, s) => sum + typicalOf(p.context.size, sizeOf(s.ranges)) * (1 + p.facts.cost[s.demand.node.index]!),
    0,
  );
}

/** The other units that a unit leads to, or that lead to it, by the kernels after or before each. */
function reached(
  from: Unit,
  next: (kernel: KernelDraft) => Iterable<KernelDraft>,
  unitOf: ReadonlyMap<KernelDraft, Unit>,
): Set<Unit> {
  const seen = new Set<Unit>();
  const stack = [from];
  for (let unit = stack.pop(); unit !== undefined; unit = stack.pop()) {
    for (const kernel of unit) {
      for (const neighbour of next(kernel)) {
        const other = unitOf.get(neighbour)!;
        if (seen.has(other)) continue;
        seen.add(other);
        stack.push(other);
      }
    }
  }
  return seen;
}

/**
 * Producers first, otherwise as the nodes were recorded. `soon`: what nobody in the plan reads comes as soon as what it reads has no other
 * readers left, so that this need not stay: gradients of weights that go into new weights are recorded behind the whole derivative.
 */
function order(units: readonly Unit[], soon: boolean): Unit[] {
  const unitOf = new Map<KernelDraft, Unit>();
  for (const unit of units) for (const kernel of unit) unitOf.set(kernel, unit);
  const readers = new Map(
    units.map((unit) => [unit, new Set(unit.flatMap((kernel) => [...kernel.readers].map((r) => unitOf.get(r)!)))]),
  );
  const waiting = new Map(units.map((unit) => [unit, 0]));
  for (const unit of units) for (const reader of readers.get(unit)!) waiting.set(reader, waiting.get(reader)! + 1);
  const rank = new Map(
    units.map((unit) => [unit, Math.min(...unit.flatMap((kernel) => kernel.stores.map((s) => s.target.index)))]),
  );
  if (soon) for (const [unit, last] of lastReaders(readers, rank)) rank.set(unit, last + 0.5);
  const ready = units.filter((unit) => waiting.get(unit) === 0);
  const result: Unit[] = [];
  while (ready.length > 0) {
    let best = 0;
    for (let i = 1; i < ready.length; i++) if (rank.get(ready[i]!)! < rank.get(ready[best]!)!) best = i;
    const unit = ready[best]!;
    ready[best] = ready[ready.length - 1]!;
    ready.pop();
    result.push(unit);
    for (const reader of readers.get(unit)!) {
      const left = waiting.get(reader)! - 1;
      waiting.set(reader, left);
      if (left === 0) ready.push(reader);
    }
  }
  if (result.length !== units.length)
    throw new Error(
      `[plan] ${units.length - result.length} kernels wait for each other; this is a bug in the partition`,
    );
  return result;
}

/** Of units that nobody reads, but that read others: the greatest rank among those and who else reads them. */
function lastReaders(
  readers: ReadonlyMap<Unit, ReadonlySet<Unit>>,
  rank: ReadonlyMap<Unit, number>,
): Map<Unit, number> {
  const last = new Map<Unit, number>();
  for (const [unit, own] of readers) {
    let most = rank.get(unit)!;
    for (const reader of own) if (readers.get(reader)!.size > 0) most = Math.max(most, rank.get(reader)!);
    for (const reader of own)
      if (readers.get(reader)!.size === 0) last.set(reader, Math.max(last.get(reader) ?? 0, most));
  }
  return last;
}
