/**
 * What the partition knows before it decides: facts about every node, sources first, and the numbers its rules compare.
 *
 * Costs are in units of one addition on one element. They only choose between kernels that compute the same values; no
 * fact depends on threads or devices, so the choice is the same everywhere.
 */
import { sameShape } from '@polygrad/compiler/shape/view';
import { isPlanOp, type PlanGraph, type PlanNode, type PlanSize, typicalOf } from '../capture/plan-graph.ts';
import { definitionOf } from '../../graph/definition.ts';

/** Reading an element that some kernel wrote. */
export const loadCost = 4;
/** Writing an element. */
export const storeCost = 6;
/** What another kernel costs by itself: a launch, and loops over small extents. */
export const kernelCost = 20_000;
/** Operands of a contraction are read about this often, whatever the loops say: contraction/ packs them. */
export const operandReads = 8;
/** Reductions with at most this much work are computed wherever that saves a kernel. */
export const smallWork = 32_768;
/** Rows longer than this do not stay in cache between the loops of one kernel. */
export const longestRow = 16_384;
/** Reductions that one kernel computes at most. */
export const mostReductions = 16;
/** Fewer rows than this leave too little to do in parallel. */
export const fewestRows = 16;
/** Rows that are enough to do in parallel whatever one of them takes, and the most work in a row where there are fewer. */
export const manyRows = 64;
export const longestWork: number = 2 ** 17;

export interface Facts {
  /** Cost of one element computed from what is in memory. */
  readonly cost: Float64Array;
  /** Length of the longest chain of reductions below a node. */
  readonly depth: Int32Array;
  /** Elements read per result element of a reduction; 1 for everything else. */
  readonly reduced: Float64Array;
  /** Contraction whose loops an elementwise node could share, if everything between belongs to it alone. */
  readonly anchor: readonly (PlanNode | null)[];
  /** The last contraction from which only elementwise work and other shapes lead to a node, whoever else needs what is between. */
  readonly origin: readonly (PlanNode | null)[];
  /** Equal for nodes of one shape that are connected by elementwise nodes of that shape. */
  readonly component: Int32Array;
}

const costLimit = 1e9;

/** True if the node's value is in memory whatever the partition decides. */
function surelyInMemory(node: PlanNode): boolean {
  return node.forced || node.leaf !== null || node.role === 'contraction' || node.role === 'program';
}

export function factsOf(graph: PlanGraph): Facts {
  const { nodes } = graph;
  const cost = new Float64Array(nodes.length);
  const depth = new Int32Array(nodes.length);
  const reduced = new Float64Array(nodes.length).fill(1);
  const anchor: (PlanNode | null)[] = [];
  const origin: (PlanNode | null)[] = [];
  const parent = new Int32Array(nodes.length);
  nodes.forEach((node, i) => {
    parent[i] = i;
    const { work } = definitionOf(node.op);
    let below = 0;
    let sum = work;
    for (const s of node.role === 'pass' ? node.src.slice(0, 1) : node.src) {
      below = Math.max(below, depth[s.index]!);
      // A smaller source is computed once for many elements.
      sum +=
        (surelyInMemory(s) ? loadCost : cost[s.index]!) *
        Math.min(1, typicalOf(graph.size, s.size) / typicalOf(graph.size, node.size));
    }
    const reduces = node.role === 'reduce' || node.role === 'contraction';
    depth[i] = below + (reduces ? 1 : 0);
    if (reduces) reduced[i] = elementsPerResult(node, graph.size);
    cost[i] = Math.min(
      costLimit,
      node.role === 'reduce' ? sum * reduced[i]! : node.role === 'contraction' ? costLimit : sum,
    );
    anchor.push(anchorOf(node, anchor, (s) => s.users === 1 && !s.forced));
    origin.push(anchorOf(node, origin, () => true));
    if (node.role === 'elementwise' || node.role === 'materialize') {
      for (const s of node.src) if (sameShape(s.shape, node.shape)) join(parent, i, s.index);
    }
  });
  const component = parent.map((_, i) => find(parent, i));
  return { cost, depth, reduced, anchor, origin, component };
}

function elementsPerResult(node: PlanNode, sizes: PlanSize | null): number {
  const at = (n: number): number => typicalOf(sizes, n);
  if (isPlanOp(node, 'reduce') || isPlanOp(node, 'argReduce'))
    return at(node.src[0]!.size) / Math.max(1, at(node.size));
  if (isPlanOp(node, 'fold'))
    return node.attr.size.reduce(
      (n, size, i) => n * (node.attr.dilation[i] === 1 ? Math.ceil(size / node.attr.stride[i]!) : size),
      1,
    );
  if (isPlanOp(node, 'scatterAdd')) return at(node.src[1]!.size);
  if (isPlanOp(node, 'dotGeneral'))
    return node.attr.lhsContract.reduce((n, axis) => n * at(node.src[0]!.shape[axis]!), 1);
  if (isPlanOp(node, 'conv')) return at(node.src[1]!.size) / at(node.src[1]!.shape[0]!);
  return 1;
}

function anchorOf(
  node: PlanNode,
  anchor: readonly (PlanNode | null)[],
  leads: (source: PlanNode) => boolean,
): PlanNode | null {
  if (node.role === 'contraction') return node;
  const passes =
    node.role === 'elementwise' || node.role === 'materialize' || node.op === 'reshape' || node.op === 'permute';
  if (!passes) return null;
  let best: PlanNode | null = null;
  for (const s of node.src) {
    const found = anchor[s.index];
    if (s.size === node.size && leads(s) && found != null && (best === null || found.index > best.index)) best = found;
  }
  return best;
}

function find(parent: Int32Array, i: number): number {
  let root = i;
  while (parent[root] !== root) root = parent[root]!;
  for (let at = i; at !== root; ) {
    const next = parent[at]!;
    parent[at] = root;
    at = next;
  }
  return root;
}

function join(parent: Int32Array, a: number, b: number): void {
  const x = find(parent, a);
  const y = find(parent, b);
  if (x !== y) parent[Math.max(x, y)] = Math.min(x, y);
}
