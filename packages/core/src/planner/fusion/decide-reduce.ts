/**
 * Reductions: inside the kernel that uses the result, if that computes each result once, else in a kernel of their own.
 *
 * This is what makes softmax, layer norm and losses one kernel: the reduction's index depends only on the outer loops of
 * the kernel, so it runs between them and the inner loops.
 */
import type { Range } from '../../ir/expr.ts';
import { sizeOf } from '../../ir/free-ranges.ts';
import type { PlanNode } from '../capture/plan-graph.ts';
import { mostReductions, smallWork } from './cost.ts';
import type { Demand, KernelDraft } from './draft.ts';
import type { Partition } from './partition.ts';
import { addRow, evaluations, rangesOf, rowFits } from './places.ts';
import { isBelow } from './reach.ts';

/** A place where a reduction may be computed: all loops of the kernel, its outer ones, or inside another reduction. */
interface Place {
  readonly demand: Demand;
  /** Loops of the kernel around it, or null inside another reduction. */
  readonly ranges: readonly Range[] | null;
}

export function decideReduce(p: Partition, node: PlanNode): void {
  const demands = p.demandsOf(node);
  const kernels = new Set(demands.map((d) => d.kernel));
  const places: Place[] = [];
  for (const kernel of kernels) {
    const demand = p.onlyDemand(kernel, node);
    const place = demand === null ? null : placeFor(p, demand);
    if (place !== null) places.push(place);
  }
  const everywhere = places.length === kernels.size;
  const stored = p.mustStore(node);
  if (!stored && everywhere && (kernels.size === 1 || kernels.size * workOf(p, node) <= smallWork)) {
    for (const place of places) take(p, place);
    return;
  }
  if (!p.alone.has(node)) {
    // Kernels made later in the sweep run earlier.
    places.sort((a, b) => b.demand.kernel.id - a.demand.kernel.id);
    for (const place of places) {
      if (place.ranges === null || !p.mayStoreAt(place.demand) || !p.canServe(place.demand.kernel, node)) continue;
      take(p, place);
      p.store(place.demand, place.ranges);
      return;
    }
  }
  let source = node.src[0]!;
  while (source.op === 'reshape') source = source.src[0]!;
  const key = `reduce ${node.shape.join()} of ${source.shape.join()} ${p.facts.component[source.index]}`;
  const fits = (kernel: KernelDraft): boolean => kernel.contraction === null && hasRoom(kernel);
  const { kernel } = p.storeWithKin(node, key, fits);
  kernel.reductions++;
  kernel.reduced += node.size * p.facts.reduced[node.index]!;
}

function workOf(p: Partition, node: PlanNode): number {
  return node.size * p.facts.cost[node.index]!;
}

function take(p: Partition, place: Place): void {
  const { kernel, node } = place.demand;
  kernel.reductions++;
  kernel.reduced += evaluations(p.context, place.demand) * p.facts.reduced[node.index]!;
  if (place.ranges !== null) addRow(kernel, place.ranges);
  p.inline(place.demand);
}

/** Kernels of very many reductions take long to lower and gain nothing more. */
function hasRoom(kernel: KernelDraft): boolean {
  return !kernel.closed && kernel.reductions < mostReductions;
}

function placeFor(p: Partition, demand: Demand): Place | null {
  const { kernel, node } = demand;
  if (kernel.contraction !== null || demand.operand || !hasRoom(kernel)) return null;
  const ranges = rangesOf(p.context, demand);
  if (ranges === null) return null;
  if (!ranges.every((range) => kernel.axes.includes(range))) {
    const once = evaluations(p.context, demand) <= node.size;
    return once && workOf(p, node) <= smallWork ? { demand, ranges: null } : null;
  }
  if (kernel.anchor !== null && !dependsOn(node, kernel.anchor)) return null;
  if (ranges.length === kernel.axes.length) return { demand, ranges };
  return rowFits(kernel, ranges, p.facts.reduced[node.index]!) ? { demand, ranges } : null;
}

/** True if computing `node` needs `other`. */
function dependsOn(node: PlanNode, other: PlanNode): boolean {
  return isBelow(node, other, ({ src }) => src.filter((s) => s.index >= other.index));
}

// Contractions: their loops are those of a kernel that uses every result once (that kernel is then their epilogue), or
// their own.

export function decideContraction(p: Partition, node: PlanNode): void {
  const home = p.alone.has(node) ? null : epilogueFor(p, node);
  if (home === null) {
    const demand = p.storeInNewKernel(node);
    demand.kernel.contraction = demand;
    return;
  }
  const { kernel } = home;
  kernel.contraction = home;
  const others = p.mustStore(node) || p.demandsOf(node).some((d) => d.kernel !== kernel);
  if (others) p.store(home, kernel.axes);
  else p.inline(home);
}

/** A demand by a kernel whose loops are the contraction's, or null. */
function epilogueFor(p: Partition, node: PlanNode): Demand | null {
  let best: Demand | null = null;
  for (const demand of p.demandsOf(node)) {
    const { kernel } = demand;
    if (kernel.closed || kernel.reductions > 0 || kernel.contraction !== null || demand.operand || demand.gate !== null)
      continue;
    if (best !== null && best.kernel.id > kernel.id) continue;
    if (sizeOf(kernel.axes) !== node.size || kernel.stores.some((s) => s.ranges.length !== kernel.axes.length))
      continue;
    if (p.onlyDemand(kernel, node) !== demand) continue;
    const ranges = rangesOf(p.context, demand);
    if (ranges === null || ranges.length !== kernel.axes.length || !p.canServe(kernel, node)) continue;
    best = demand;
  }
  return best;
}
