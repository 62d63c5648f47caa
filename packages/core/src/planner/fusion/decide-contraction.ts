/**
 * Contractions: their loops are those of a kernel that uses every result once (that kernel is then their epilogue), or
 * their own.
 */
import { sizeOf } from '../../ir/free-ranges.ts';
import type { Demand } from './draft.ts';
import type { Partition } from './partition.ts';
import { rangesOf } from './places.ts';
import type { PlanNode } from '../capture/plan-graph.ts';

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
