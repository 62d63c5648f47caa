import { kernelCost, loadCost, operandReads, storeCost } from './cost.ts';
import { keepRow } from './decide-stage.ts';
import type { Demand } from './draft.ts';
import type { Partition } from './partition.ts';
import { addRow, evaluations, rangesOf } from './places.ts';
import { isPlanOp, type PlanNode } from '../capture/plan-graph.ts';

/** Work per element that one kernel may do a few times over rather than be cut in two. */
const cheapAgain = 64;
/** How many times. */
const fewTimes = 4;
/** Parts of a concatenation that an element may be chosen from where it is needed. */
const mostChoices = 3;

export function decideElementwise(p: Partition, node: PlanNode): void {
  const demands = p.demandsOf(node);
  const free = isFree(p, node);
  if (!p.mustStore(node)) {
    if (free) p.inlineAll(node);
    else if (node.role === 'movement' && node.src.length > mostChoices) storeSomewhere(p, node);
    else if (keepRow(p, node, [...demands])) return;
    else if (cheaperInPlace(p, node, demands)) p.inlineAll(node);
    else storeSomewhere(p, node);
    return;
  }
  storeSomewhere(p, node);
  if (free) p.inlineAll(node);
}

/** Views, constants and numbers made of bound numbers cost nothing wherever they are needed. */
function isFree(p: Partition, node: PlanNode): boolean {
  const cost = p.facts.cost[node.index]!;
  if (node.role === 'pass' || (node.role === 'movement' && node.src.length === 1)) return true;
  if (node.role === 'generate') return cost <= 1;
  return cost <= (node.size === 1 ? 64 : 8) && madeOfNumbers(node);
}

/** True if only numbers and positions are behind the node, nothing in memory; such chains are short. */
function madeOfNumbers(node: PlanNode): boolean {
  const stack = [node];
  for (let count = 0; stack.length > 0; count++) {
    const at = stack.pop()!;
    if (
      at.leaf !== null ||
      at.role === 'reduce' ||
      at.role === 'contraction' ||
      at.role === 'gather' ||
      at.forced ||
      count > 64
    )
      return false;
    stack.push(...at.src);
  }
  return true;
}

function cheaperInPlace(p: Partition, node: PlanNode, demands: readonly Demand[]): boolean {
  const cost = p.facts.cost[node.index]!;
  let again = 0;
  let reads = 0;
  const kernels = new Set(demands.map((d) => d.kernel));
  for (const demand of demands) {
    const turns = demand.operand
      ? Math.min(evaluations(p.context, demand), operandReads * node.size)
      : evaluations(p.context, demand);
    again += turns * cost;
    reads += turns * loadCost;
  }
  if (demands.length === 1 && again <= 2 * node.size * cost && !demands[0]!.operand) return true;
  const alreadyOnce = node.size * cost;
  const anchored = p.facts.anchor[node.index] !== null;
  const launch = anchored || demands.some((d) => p.mayStoreAt(d)) ? 0 : kernelCost;
  const write = anchored ? 0 : node.size * storeCost;
  if (again <= alreadyOnce + write + reads + launch) return true;
  if (anchored || kernels.size > 1 || demands.some((d) => d.operand)) return false;
  return demands.length <= fewTimes && cost <= cheapAgain && again <= fewTimes * alreadyOnce;
}

/** True if one kernel may compute the node for all these demands of its own. */
function mayRepeat(p: Partition, node: PlanNode, demands: readonly Demand[]): boolean {
  if (demands.length === 1) return true;
  const { kernel } = demands[0]!;
  if (kernel.contraction !== null || kernel.anchor !== null || demands.length > fewTimes) return false;
  if (demands.some((d) => d.operand) || p.facts.cost[node.index]! > cheapAgain) return false;
  return demands.every((d) => evaluations(p.context, d) <= node.size);
}

/** Stores the node in a kernel that runs through its elements anyway, beside its like, or in a kernel of its own. */
function storeSomewhere(p: Partition, node: PlanNode): void {
  if (isPlanOp(node, 'concat')) {
    p.storeParts(node, node.attr.axis);
    return;
  }
  if (!p.alone.has(node)) {
    // Kernels made later in the sweep run earlier: what they compute need not wait, nor keep its sources, for the others.
    for (const demand of [...p.demandsOf(node)].sort((a, b) => b.kernel.id - a.kernel.id)) {
      const same = p.demandsOf(node).filter((d) => d.kernel === demand.kernel);
      if (!p.runsThrough(demand) || !mayRepeat(p, node, same) || !p.canServe(demand.kernel, node)) continue;
      const ranges = rangesOf(p.context, demand)!;
      addRow(demand.kernel, ranges);
      keepRow(p, node, same);
      p.store(demand, ranges);
      for (const other of same) p.inline(other);
      return;
    }
  }
  const key = `each ${node.shape.join()} ${p.facts.component[node.index]}`;
  p.storeWithKin(node, key, (kernel) => !kernel.closed);
}
