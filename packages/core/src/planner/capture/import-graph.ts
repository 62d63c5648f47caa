/**
 * Imports a captured graph into the planner's graph (value numbering and simplification), and finds which nodes must be in memory.
 *
 * In: a CapturedGraph. Out: a PlanGraph, and for each output the node whose memory holds it, with a view. An output that only
 * moves elements already in memory becomes a view of them, without a kernel.
 */
import { rareForms } from '#rare';
import type { PoolBuffer } from '../../engine/pool.ts';
import type { Node } from '../../graph/node.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import {
  expandView,
  permuteView,
  reshapeView,
  rowMajorStrides,
  type Shape,
  sliceView,
  type View,
} from '@polygrad/compiler/shape/view';
import { type CapturedGraph, viewBase } from './captured-graph.ts';
import { isPlanOp, type Phases, PlanGraph, type PlanNode, type SizedGraph } from './plan-graph.ts';
import { rewriteNode } from './rewrite.ts';

/** Where an output's value is: a view of a node in memory (offset counts from that node's first element), or nowhere if it is empty. */
export interface OutputPlace {
  /** Null for outputs without elements. */
  readonly base: PlanNode | null;
  readonly view: View;
}

export interface ImportedGraph {
  readonly graph: PlanGraph;
  /** One per output of the captured graph, in its order. */
  readonly places: readonly OutputPlace[];
}

/** What the import must know of the engine. */
export interface ImportOptions {
  readonly elementBytes: readonly number[];
  readonly bindAlign: number;
  readonly phases?: Phases | undefined;
}

/** @param sized the captured graph at the capacity of a class of sizes, for a plan that is bound to each of them */
export function importGraph(
  captured: CapturedGraph,
  options: ImportOptions,
  sized: SizedGraph | null = null,
): ImportedGraph {
  const graph = new PlanGraph(rewriteNode, sized?.size, options.phases);
  const made = importNodes(graph, captured, options, sized);
  const outputs = captured.outputs.values().map((local) => made[local]!);
  for (const node of outputs) if (isComputed(node) && node.size > 0) node.forced = true;
  const places = outputs.map((node) => place(graph, node));
  graph.finish();
  return { graph, places };
}

/** The nodes of a captured graph in the planner's graph, by local number. */
function importNodes(
  graph: PlanGraph,
  captured: CapturedGraph,
  { elementBytes, bindAlign }: ImportOptions,
  sized: SizedGraph | null,
): readonly PlanNode[] {
  const donatable = new Set(captured.donatable.values());
  const uses = usesOf(captured);
  const leaf = (node: Node, shape: Shape, local: number): PlanNode => {
    const { dtype } = node;
    const { buffer, view } = captured.storageOf(node);
    const strides = sized === null ? view.strides : sized.stridesOf(local, view.strides);
    if (shape.includes(0)) return graph.constant(0, shape, dtype);
    const base = viewBase(shape, strides, view.offset);
    const bytes = elementBytes[dtypeInfo[dtype].id]!;
    const aligned = ((base * bytes) % bindAlign) / bytes;
    const span = shape.reduce((sum, n, axis) => sum + Math.abs(strides[axis]!) * (n - 1), 1);
    return graph.leaf(shape, dtype, {
      local,
      strides,
      shift: aligned + view.offset - base,
      span: aligned + span,
      buffer: (buffer as PoolBuffer).index,
      donatable: donatable.has(local),
    });
  };
  const made: PlanNode[] = [];
  const one = (local: number): PlanNode => {
    const node = captured.nodes[local]!;
    const { op, dtype } = node;
    const shape = sized === null ? node.shape : sized.shapeOf(local);
    const attr = sized === null ? node.attr : (sized.attrOf(local) as Node['attr']);
    if (node.storage !== null) return leaf(node, shape, local);
    if (op === 'scalar') return graph.scalar(dtype, local);
    if (sized?.isBound(local)) {
      const ones = shape.map(() => 1);
      return graph.make('expand', { shape }, [graph.reshape(graph.scalar(dtype, local), ones)], shape, dtype);
    }
    const src = node.src.map((source) => made[source.index]!);
    if (op === 'add' && node.src.every((source) => neededOnce(source, uses))) {
      const sum = src.every(isProduct) ? rareForms()?.sumOfProducts(graph, src[0]!, src[1]!) : null;
      if (sum) return sum;
    }
    graph.given = shape;
    return graph.make(op, attr, sized === null ? src : sized.size.forPrograms(graph, op, attr, src), shape, dtype);
  };
  for (let local = 0; local < captured.count; local++) made.push(one(local));
  return made;
}

/** Number of uses of each node of a captured graph; being an output counts as one. */
function usesOf(captured: CapturedGraph): Uint32Array {
  const uses = new Uint32Array(captured.count);
  for (const local of captured.outputs.values()) uses[local]!++;
  for (let local = 0; local < captured.count; local++) {
    const node = captured.nodes[local]!;
    if (node.storage === null) for (const source of node.src) uses[source.index]!++;
  }
  return uses;
}

/** True if the node, and the nodes it only rearranges, have one user. */
function neededOnce(node: Node, uses: Uint32Array): boolean {
  let at = node;
  while (uses[at.index] === 1 && at.op === 'permute' && at.storage === null) at = at.src[0]!;
  return uses[at.index] === 1;
}

/** True for nodes that get their own memory when forced, rather than a view of other memory. */
function isComputed(node: PlanNode): boolean {
  return node.role !== 'leaf' && node.role !== 'movement';
}

/** View of `node` over something in memory, where movements allow; else the node is forced into memory itself. */
function place(graph: PlanGraph, node: PlanNode): OutputPlace {
  if (node.size === 0) return { base: null, view: { strides: rowMajorStrides(node.shape), offset: 0 } };
  const path: PlanNode[] = [];
  let base = node;
  while (base.role === 'movement' && base.src.length === 1) {
    path.push(base);
    base = base.src[0]!;
  }
  if (base.forced || base.leaf !== null) {
    let view: View | null = { strides: base.leaf?.strides ?? rowMajorStrides(base.shape), offset: 0 };
    let shape: Shape = base.shape;
    for (let i = path.length - 1; i >= 0 && view !== null; i--) {
      view = moved(graph, path[i]!, shape, view);
      shape = path[i]!.shape;
    }
    if (view !== null) return { base, view };
  }
  const copy = graph.exactly('contiguous', null, [node], node.shape, node.dtype);
  copy.forced = true;
  return { base: copy, view: { strides: rowMajorStrides(node.shape), offset: 0 } };
}

function moved({ size }: PlanGraph, node: PlanNode, from: Shape, view: View): View | null {
  if (isPlanOp(node, 'reshape')) return reshapeView(from, view, node.shape);
  if (isPlanOp(node, 'permute')) return permuteView(view, node.attr.axes);
  if (isPlanOp(node, 'expand')) return expandView(from, view, node.shape);
  if (isPlanOp(node, 'slice')) {
    const { start, step } = node.attr;
    // An offset that depends on a size is unknown until that is bound.
    return size?.startsLater(start, from, view.strides) ? null : sliceView(view, start, step);
  }
  return null;
}

/** True for a matrix product, maybe with axes in another order. */
function isProduct(node: PlanNode): boolean {
  return isPlanOp(node, 'permute') ? isProduct(node.src[0]!) : node.op === 'dotGeneral';
}
