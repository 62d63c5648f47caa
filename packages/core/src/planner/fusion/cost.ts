/**
 * What the partition knows before it decides: facts about every node, sources first, and the constants its rules compare with.
 *
 * Costs are in units of one addition on one element. They only choose between kernels that compute the same values; no
 * fact depends on threads or devices, so the choice is the same everywhere.
 */
import { isFloat } from '@polygrad/compiler/shape/dtype';
import { sameShape } from '@polygrad/compiler/shape/view';
import { isPlanOp, type PlanGraph, type PlanNode, type PlanSize, typicalOf } from '../capture/plan-graph.ts';
import { definitionOf } from '../../graph/definition.ts';

/** Reading an element that some kernel wrote. */
export const loadCost = 4;
/** Writing an element. */
export const storeCost = 6;
/** Fixed cost of one more kernel: a launch, and loops over small extents. */
export const kernelCost = 20_000;
/** How often an operand of a contraction is read, whatever the loops say, because contraction/ packs operands. */
export const operandReads = 8;
/** Reductions with at most this much work are recomputed wherever that saves a kernel, unless the results are compared (`Facts.compared`). */
export const smallWork = 32_768;
/** Longer rows fall out of the cache between two loops of one kernel. */
export const longestRow = 16_384;
/** Most reductions in one kernel. */
export const mostReductions = 16;
/** With fewer rows than this, too few groups run in parallel. */
export const fewestRows = 16;
/** With this many rows the work of a row does not matter; with fewer, the most work that a row may have. */
export const manyRows = 64;
export const longestWork: number = 2 ** 17;

/** Facts about the nodes of a graph, each a list by node index. */
export interface Facts {
  /** Cost of computing one element from what is in memory. */
  readonly cost: Float64Array;
  /** Length of the longest chain of reductions below a node. */
  readonly depth: Int32Array;
  /** Elements read for each result of a reduction; 1 for other nodes. */
  readonly reduced: Float64Array;
  /** Contraction whose loops an elementwise node could share, if the nodes between have no other users. */
  readonly anchor: readonly (PlanNode | null)[];
  /** The last contraction that leads to a node through elementwise nodes and movements only, other users or not. */
  readonly origin: readonly (PlanNode | null)[];
  /** 1 for sums that are compared with each other or with an extreme of such, and for what leads to them: a sum in another order would not be equal. */
  readonly compared: Uint8Array;
  /** Number of the set of elementwise nodes of one shape that are connected with each other. */
  readonly component: Int32Array;
}

const costLimit = 1e9;

/** True if the node's value is in memory whatever the partition decides. */
function surelyInMemory(node: PlanNode): boolean {
  return node.forced || node.leaf !== null || node.role === 'contraction' || node.role === 'program';
}

/** Whether the order of a reduction cannot be seen in its results. */
export function isExact(node: PlanNode): boolean {
  return !isFloat(node.dtype) || (isPlanOp(node, 'reduce') && (node.attr.op === 'max' || node.attr.op === 'min'));
}

/** Computes the facts in one pass, sources first. */
export function factsOf(graph: PlanGraph): Facts {
  const { nodes } = graph;
  const cost = new Float64Array(nodes.length);
  const depth = new Int32Array(nodes.length);
  const reduced = new Float64Array(nodes.length).fill(1);
  const anchor: (PlanNode | null)[] = [];
  const origin: (PlanNode | null)[] = [];
  const parent = new Int32Array(nodes.length);
  // Bits: 1 for sums that a kernel may take again, 2 for what was selected of such sums.
  const sums = new Uint8Array(nodes.length);
  nodes.forEach((node, i) => {
    parent[i] = i;
    let sum = definitionOf(node.op).work;
    for (const s of node.role === 'pass' ? node.src.slice(0, 1) : node.src) {
      depth[i] = Math.max(depth[i]!, depth[s.index]!);
      sums[i]! |= sums[s.index]!;
      // A smaller source is computed once for many elements of the result.
      sum +=
        (surelyInMemory(s) ? loadCost : cost[s.index]!) *
        Math.min(1, typicalOf(graph.size, s.size) / typicalOf(graph.size, node.size));
      if ((node.role === 'elementwise' || node.role === 'materialize') && sameShape(s.shape, node.shape)) {
        const x = find(parent, i);
        const y = find(parent, s.index);
        parent[Math.max(x, y)] = Math.min(x, y);
      }
    }
    if (node.role === 'reduce' || node.role === 'contraction') {
      depth[i]!++;
      sums[i] = isExact(node) ? sums[i]! && 2 : 1;
      reduced[i] = elementsPerResult(node, graph.size);
    }
    cost[i] = node.role === 'contraction' ? costLimit : Math.min(costLimit, sum * reduced[i]!);
    anchor.push(anchorOf(node, anchor, (s) => s.users === 1 && !s.forced));
    origin.push(anchorOf(node, origin, () => true));
  });
  const component = parent.map((_, i) => find(parent, i));
  const compared = new Uint8Array(nodes.length);
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i]!;
    // Both sides come from sums, or one from sums and a selection of such. A comparison with a constant is right in any order.
    const equals = 'eq lt le'.includes(node.op) && (sums[i]! > 2 || node.src.every((s) => sums[s.index]));
    if (equals || (compared[i] && !surelyInMemory(node))) for (const s of node.src) compared[s.index] = 1;
  }
  return { cost, depth, reduced, anchor, origin, compared, component };
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
  if (!(node.role === 'elementwise' || node.role === 'materialize' || node.op === 'reshape' || node.op === 'permute'))
    return null;
  let best: PlanNode | null = null;
  for (const s of node.src) {
    const found = anchor[s.index];
    if (s.size === node.size && leads(s) && found != null && (best === null || found.index > best.index)) best = found;
  }
  return best;
}

function find(parent: Int32Array, i: number): number {
  let at = i;
  while (parent[at] !== at) {
    parent[at] = parent[parent[at]!]!;
    at = parent[at]!;
  }
  return at;
}
