/**
 * The order of kernels, and which small independent ones run as one kernel.
 *
 * A unit is one kernel made of one or more drafts side by side, which saves launches: an optimizer step has many small kernels.
 * Drafts are joined only where neither depends on the other.
 */
import { told } from '#shown-as';
import { fault } from '@polygrad/compiler/shape/errors';
import { sizeOf } from '@polygrad/compiler/ir/free-ranges';
import type { KernelDraft } from './draft.ts';
import type { Partition } from './partition.ts';
import { type PlanNode, typicalOf } from '../capture/plan-graph.ts';

export type Unit = readonly KernelDraft[];

/** Kernels with at most this much work may be joined. */
const smallKernel = 1 << 20;
/** Most nests in one kernel. */
const mostNests = 24;

/**
 * Most values in one kernel: bound numbers (the CPU engine has room for 1024) and steps of its expressions. A longer chain of
 * operations becomes several kernels, which are equal where the chain repeats.
 */
export const mostValues = 1024;

/** The nodes in memory that each kernel reads or writes. */
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

/** Joins small independent kernels as far as `maxBindings` allows, and orders the result. */
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
    // Looked for where they are asked for, as each takes a walk through all kernels.
    let before: Set<Unit> | undefined;
    let after: Set<Unit> | undefined;
    const home = open.find((unit) => {
      if (unit.drafts.length >= mostNests || unit.values + kernel.demands.length > mostValues) return false;
      let count = unit.bound.size;
      for (const node of own) if (!unit.bound.has(node)) count++;
      if (count > maxBindings) return false;
      before ??= reached(drafts, (k) => sources.get(k)!, unitOf);
      if (before.has(unit.drafts)) return false;
      after ??= reached(drafts, (k) => k.readers, unitOf);
      return !after.has(unit.drafts);
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

/** Units that depend on a unit or that it depends on, by the kernels after or before each. */
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
 * Producers first, otherwise in the order of recording. `soon`: a unit whose result the plan does not read runs as soon as no other
 * unit reads its inputs, which frees them. Weight gradients that go into new weights are recorded behind the whole derivative.
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
    throw fault('plan', told && `${units.length - result.length} kernels wait for each other`);
  return result;
}

/** For units whose results the plan does not read, but that read others: the greatest rank among their inputs and the other readers of those. */
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
