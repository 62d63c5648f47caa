/**
 * Where each node of a graph is computed, by its role: staged rows, reductions and contractions, elementwise nodes.
 *
 * One sweep, consumers before producers: when it reaches a node, every kernel that needs the node is known, and at which index.
 *
 * Staged rows: several loops of one kernel may need a value for every element of a row. Then it is computed once
 * per row into group-private memory, instead of once per loop.
 *
 * Example: in softmax one loop sums the exponentials and the next divides them by the sum. Engines without room for
 * the row recompute it (codegen/loops/optimize.ts). Sums in it may then be taken in another order, so a row of sums that is compared is none.
 */
import { rareForms } from '#rare';
import type { Range } from '@polygrad/compiler/ir/expr';
import { sizeOf } from '@polygrad/compiler/ir/free-ranges';
import { isPlanOp, type PlanGraph, type PlanNode, typicalOf } from '../capture/plan-graph.ts';
import { isExact, kernelCost, loadCost, mostReductions, operandReads, smallWork, storeCost } from './cost.ts';
import { type Demand, isBelow, type KernelDraft } from './draft.ts';
import { Partition } from './partition.ts';
import { addRow, evaluations, rangesOf, rowFits } from './places.ts';

/** An element that costs less is recomputed as fast as it is read. */
const worthKeeping = 8;

/** Tries to serve the demands from a staged row. False if they are not of that kind; then nothing has changed. */
function keepRow(p: Partition, node: PlanNode, demands: readonly Demand[]): boolean {
  const [first] = demands;
  if (first === undefined || demands.length < 2 || p.facts.cost[node.index]! < worthKeeping) return false;
  const { kernel } = first;
  if (kernel.contraction !== null || kernel.closed) return false;
  if (demands.some((d) => d.kernel !== kernel || d.operand || d.gate !== null)) return false;
  return rareForms()?.keepRow(p, node, demands, first) ?? false;
}

// Reductions: inside the kernel that uses the result, if that kernel needs each result once, else in a separate kernel.
//
// This is what makes softmax, layer norm and losses one kernel: the reduction's index depends only on the outer loops of
// the kernel, so it runs between them and the inner loops.

/** A place where a reduction may be computed: within all loops of the kernel, within its outer ones, or inside another reduction. */
interface Place {
  readonly demand: Demand;
  /** The loops of the kernel around it, or null inside another reduction. */
  readonly ranges: readonly Range[] | null;
}

function decideReduce(p: Partition, node: PlanNode): void {
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
  const again = kernels.size * workOf(p, node) <= smallWork && (isExact(node) || p.facts.compared[node.index] === 0);
  if (!stored && everywhere && (kernels.size === 1 || again)) {
    for (const place of places) take(p, place);
    return;
  }
  if (!p.alone.has(node)) {
    // Kernels made later in the sweep run earlier, so they come first.
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
  // Sums of rows and of columns, which a square matrix has as many of, read memory in two orders.
  const along = isPlanOp(node, 'reduce') || isPlanOp(node, 'argReduce') ? node.attr.axes.at(-1)! : 0;
  const inner = node.src[0]!.shape.slice(along + 1);
  const key = `reduce ${node.shape.join()} of ${source.shape.join()} ${inner.join()} ${p.facts.component[source.index]}`;
  const fits = (kernel: KernelDraft): boolean => kernel.contraction === null && hasRoom(kernel);
  const { kernel } = p.storeWithKin(node, key, fits);
  kernel.reductions++;
  kernel.reduced += typicalSize(p, node) * p.facts.reduced[node.index]!;
}

function typicalSize(p: Partition, node: PlanNode): number {
  return typicalOf(p.context.size, node.size);
}

function workOf(p: Partition, node: PlanNode): number {
  return typicalSize(p, node) * p.facts.cost[node.index]!;
}

function take(p: Partition, place: Place): void {
  const { kernel, node } = place.demand;
  kernel.reductions++;
  kernel.reduced += evaluations(p.context, place.demand) * p.facts.reduced[node.index]!;
  if (place.ranges !== null) addRow(kernel, place.ranges);
  p.inline(place.demand);
}

/** False for kernels with so many reductions that another gains nothing and lowering takes long. */
function hasRoom(kernel: KernelDraft): boolean {
  return !kernel.closed && kernel.reductions < mostReductions;
}

function placeFor(p: Partition, demand: Demand): Place | null {
  const { kernel, node } = demand;
  if (kernel.contraction !== null || demand.operand || !hasRoom(kernel)) return null;
  const ranges = rangesOf(p.context, demand);
  if (ranges === null) return null;
  if (!ranges.every((range) => kernel.axes.includes(range))) {
    const once = evaluations(p.context, demand) <= typicalSize(p, node);
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

// Contractions: they use the loops of a kernel that needs each result once (that kernel is then their epilogue), or
// loops of a new kernel.

function decideContraction(p: Partition, node: PlanNode): void {
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

/** The only demand, if its kernel can become the contraction's epilogue; else null. */
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

/** Up to this much work per element a kernel may repeat it a few times, so as not to be cut in two. */
const cheapAgain = 64;
/** How often it may be repeated. */
const fewTimes = 4;
/** A concatenation of at most this many parts is computed where it is needed, by a choice per element. */
const mostChoices = 3;

function decideElementwise(p: Partition, node: PlanNode): void {
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

/** Views, constants and expressions of bound numbers cost nothing wherever they are needed. */
function isFree(p: Partition, node: PlanNode): boolean {
  const cost = p.facts.cost[node.index]!;
  if (node.role === 'pass' || (node.role === 'movement' && node.src.length === 1)) return true;
  if (node.role === 'generate') return cost <= 1;
  return cost <= (node.size === 1 ? 64 : 8) && madeOfNumbers(node);
}

/** True if the node depends only on numbers and positions, not on memory; such chains are short. */
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
  const size = typicalSize(p, node);
  let again = 0;
  let reads = 0;
  const kernels = new Set(demands.map((d) => d.kernel));
  for (const demand of demands) {
    const turns = demand.operand
      ? Math.min(evaluations(p.context, demand), operandReads * size)
      : evaluations(p.context, demand);
    again += turns * cost;
    reads += turns * loadCost;
  }
  if (demands.length === 1 && again <= 2 * size * cost && !demands[0]!.operand) return true;
  const alreadyOnce = size * cost;
  const anchored = p.facts.anchor[node.index] !== null;
  const launch = anchored || demands.some((d) => p.mayStoreAt(d)) ? 0 : kernelCost;
  const write = anchored ? 0 : size * storeCost;
  if (again <= alreadyOnce + write + reads + launch) return true;
  if (anchored || kernels.size > 1 || demands.some((d) => d.operand)) return false;
  return demands.length <= fewTimes && cost <= cheapAgain && again <= fewTimes * alreadyOnce;
}

/** True if one kernel may compute the node for all these demands, instead of loading it. */
function mayRepeat(p: Partition, node: PlanNode, demands: readonly Demand[]): boolean {
  if (demands.length === 1) return true;
  const { kernel } = demands[0]!;
  if (kernel.contraction !== null || kernel.anchor !== null || demands.length > fewTimes) return false;
  if (demands.some((d) => d.operand) || p.facts.cost[node.index]! > cheapAgain) return false;
  return demands.every((d) => evaluations(p.context, d) <= typicalSize(p, node));
}

/** Stores the node in a kernel that visits its elements anyway, in a similar kernel, or in a new one. */
function storeSomewhere(p: Partition, node: PlanNode): void {
  if (isPlanOp(node, 'concat')) {
    p.storeParts(node, node.attr.axis);
    return;
  }
  if (!p.alone.has(node)) {
    // Kernels made later in the sweep run earlier. Stored there, the node is ready sooner and its sources are freed sooner.
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

function decide(p: Partition, node: PlanNode): void {
  switch (node.role) {
    case 'leaf':
      return;
    case 'generate':
    case 'movement':
    case 'elementwise':
    case 'materialize':
    case 'gather':
    case 'pass':
      decideElementwise(p, node);
      return;
    case 'reduce':
      decideReduce(p, node);
      return;
    case 'contraction':
      decideContraction(p, node);
      return;
    case 'program':
      p.storeProgram(node);
      return;
    default:
      // Loops are run by the runtime, not by kernels of the plan.
      node.role satisfies 'loop';
  }
}

/** The partition of a graph, every node decided. Nodes in `alone` are stored by kernels of their own; no kernel binds more than `maxBindings` nodes if it can be helped. */
export function decided(graph: PlanGraph, alone: ReadonlySet<PlanNode>, maxBindings: number): Partition {
  const p = new Partition(graph, alone, maxBindings);
  for (let i = graph.nodes.length - 1; i >= 0; i--) decide(p, graph.nodes[i]!);
  return p;
}
