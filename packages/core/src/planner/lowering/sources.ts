/**
 * What each primitive needs of its sources: one rule per primitive, from "element at this index" to "elements at those".
 *
 * Rules run while kernels are being decided, consumers first, so they may use index expressions and loops but not values.
 * Making the value from the sources' values is the other half, in values.ts; a rule leaves in `notes` the conditions that
 * half needs.
 */
import type { PrimitiveName } from '../../graph/attrs.ts';
import type { Exprs, Range } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import type { Demand } from '../fusion/draft.ts';
import { bothGates, broadcastIndex, type Index, reshapeIndex, within } from './index-map.ts';
import { definitionOf } from '../../graph/definition.ts';
import { isPlanOp, type PlanNode } from '../capture/plan-graph.ts';

/** What a rule works with. `need` asks for a source; what it makes is `parts` of the demand, in order of the calls. */
export interface SourceContext {
  readonly e: Exprs;
  readonly demand: Demand;
  need(source: PlanNode, index: Index, gate?: KNode | null): void;
  /** As `need`, inside loops of a reduction; `operand` for sources of a contraction. */
  needInside(source: PlanNode, index: Index, gate: KNode | null, loops: readonly Range[], operand: boolean): void;
  /** Loops of this node's reduction, shared with reductions that may run together. */
  loops(extents: readonly number[]): readonly KNode[];
  /** Loops of its own. */
  ownLoops(extents: readonly number[]): readonly KNode[];
  note(condition: KNode): void;
  /** A source that must be in memory because its index is not known yet. */
  needInMemory(source: PlanNode): void;
}

export type SourceRule<P extends PrimitiveName> = (c: SourceContext, node: PlanNode<P>, index: Index) => void;

const source = (node: PlanNode, i = 0): PlanNode => node.src[i] as PlanNode;

const nothing = (): void => {};

function elementwise(c: SourceContext, node: PlanNode, index: Index): void {
  for (const s of node.src) c.need(s, broadcastIndex(c.e, s.shape, index.length, index));
}

function movement(c: SourceContext, node: PlanNode, index: Index): void {
  c.need(source(node), moveIndex(c.e, node, index));
}

/** Index into the source of a movement without gates. */
export function moveIndex(e: Exprs, node: PlanNode, index: Index): Index {
  const from = source(node).shape;
  if (isPlanOp(node, 'reshape')) return reshapeIndex(e, node.shape, from, index);
  if (isPlanOp(node, 'permute')) {
    const result = new Array<KNode>(from.length);
    node.attr.axes.forEach((axis, i) => {
      result[axis] = index[i] as KNode;
    });
    return result;
  }
  if (isPlanOp(node, 'expand')) return broadcastIndex(e, from, index.length, index);
  if (isPlanOp(node, 'slice')) {
    const { start, step } = node.attr;
    return index.map((x, i) => e.add(e.mul(x, e.i32(step[i] as number)), start[i] as number));
  }
  throw new Error(`[lower] ${node.op} is not a plain movement`);
}

/** The node whose memory plain movements lead to. */
export function movedFrom(node: PlanNode): PlanNode {
  let base = node;
  while (['reshape', 'permute', 'expand', 'slice'].includes(base.op) && !base.forced) base = source(base);
  return base;
}

/** Index into a reduction's source: `own` at the reduced axes, the result's index elsewhere. */
function insertAxes(rank: number, axes: readonly number[], index: Index, own: readonly KNode[]): KNode[] {
  const result = new Array<KNode>(rank);
  let kept = 0;
  for (let axis = 0; axis < rank; axis++) {
    const at = axes.indexOf(axis);
    result[axis] = (at >= 0 ? own[at] : index[kept++]) as KNode;
  }
  return result;
}

function reduceOver(c: SourceContext, node: PlanNode<'reduce'> | PlanNode<'argReduce'>, index: Index): void {
  const x = source(node);
  const own = c.loops(node.attr.axes.map((axis) => x.shape[axis] as number));
  c.needInside(x, insertAxes(x.shape.length, node.attr.axes, index, own), null, ranges(own), false);
}

/** The loops among index expressions (axes of size 1 have none). */
export function ranges(own: readonly KNode[]): Range[] {
  return own.filter((n): n is Range => n.op === 'RANGE');
}

/** How many windows of `size` at steps of `stride` can cover one element. */
export function windowsOver(size: number, stride: number): number {
  return Math.ceil(size / stride);
}

function fold(c: SourceContext, node: PlanNode<'fold'>, index: Index): void {
  const { e } = c;
  const { size, stride, dilation } = node.attr;
  const x = source(node);
  const rank = size.length;
  const lead = node.shape.length - rank;
  const counts = size.map((n, i) => (dilation[i] === 1 || n === 1 ? windowsOver(n, stride[i] as number) : n));
  const own = c.loops(counts);
  let gate: KNode | null = null;
  const starts: KNode[] = [];
  const offsets: KNode[] = [];
  for (let i = 0; i < rank; i++) {
    const at = index[lead + i] as KNode;
    const windows = x.shape[lead + i] as number;
    const step = e.i32(stride[i] as number);
    const k = own[i] as KNode;
    if (dilation[i] === 1 || size[i] === 1) {
      // The k-th window back from the last one that starts at or before this element.
      const start = e.sub(e.idiv(at, step), k);
      const offset = e.add(e.irem(at, step), e.mul(k, step));
      gate = bothGates(e, gate, e.and(within(e, start, 0, windows), e.lt(offset, size[i] as number)));
      starts.push(start);
      offsets.push(offset);
    } else {
      const from = e.sub(at, e.mul(k, dilation[i] as number));
      const start = e.idiv(from, step);
      gate = bothGates(
        e,
        gate,
        e.and(within(e, from, 0, windows * (stride[i] as number)), e.eq(e.irem(from, step), 0)),
      );
      starts.push(start);
      offsets.push(k);
    }
  }
  if (gate !== null) c.note(gate);
  c.needInside(x, [...index.slice(0, lead), ...starts, ...offsets], gate, ranges(own), false);
}

function dotGeneral(c: SourceContext, node: PlanNode<'dotGeneral'>, index: Index): void {
  const [lhs, rhs] = node.src as [PlanNode, PlanNode];
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attr;
  const own = c.ownLoops(lhsContract.map((axis) => lhs.shape[axis] as number));
  let at = lhsBatch.length;
  const side = (shape: readonly number[], batch: readonly number[], contract: readonly number[]): KNode[] =>
    shape.map((_, axis) => {
      if (batch.includes(axis)) return index[batch.indexOf(axis)] as KNode;
      if (contract.includes(axis)) return own[contract.indexOf(axis)] as KNode;
      return index[at++] as KNode;
    });
  const left = side(lhs.shape, lhsBatch, lhsContract);
  const right = side(rhs.shape, rhsBatch, rhsContract);
  c.needInside(lhs, left, null, ranges(own), true);
  c.needInside(rhs, right, null, ranges(own), true);
}

function conv(c: SourceContext, node: PlanNode<'conv'>, index: Index): void {
  const { e } = c;
  const { attr } = node;
  const [lhs, rhs] = node.src as [PlanNode, PlanNode];
  const depth = rhs.shape[1] as number;
  const features = rhs.shape[0] as number;
  const own = c.ownLoops([depth, ...rhs.shape.slice(2)]);
  const channel = own[0] as KNode;
  const feature = index[1] as KNode;
  let image = index[0] as KNode;
  let from = channel;
  if (attr.groups > 1) from = e.add(e.mul(e.idiv(feature, features / attr.groups), depth), channel);
  if (attr.batchGroups > 1)
    image = e.add(e.mul(e.idiv(feature, features / attr.batchGroups), node.shape[0] as number), image);
  let gate: KNode | null = null;
  const spatial = attr.stride.map((stride, i) => {
    const n = lhs.shape[i + 2] as number;
    const hole = attr.lhsDilation[i] as number;
    const k = own[i + 1] as KNode;
    const start = e.sub(e.mul(index[i + 2] as KNode, stride), attr.padLow[i] as number);
    const at = e.add(start, e.mul(k, attr.rhsDilation[i] as number));
    gate = bothGates(e, gate, within(e, at, 0, (n - 1) * hole + 1));
    if (hole === 1) return at;
    gate = bothGates(e, gate, e.eq(e.irem(at, hole), 0));
    return e.idiv(at, hole);
  });
  if (gate !== null) c.note(gate);
  const safe = spatial.map((at, i) => (lhs.shape[i + 2] === 1 ? e.i32(0) : at));
  c.needInside(lhs, [image, from, ...safe], gate, ranges(own), true);
  c.needInside(rhs, [feature, ...own], null, ranges(own), true);
}

function pad(c: SourceContext, node: PlanNode<'pad'>, index: Index): void {
  const { e } = c;
  const x = source(node);
  let gate: KNode | null = null;
  const inner = index.map((at, axis) => {
    const n = x.shape[axis] as number;
    const moved = e.sub(at, node.attr.low[axis] as number);
    gate = bothGates(e, gate, within(e, moved, 0, n));
    return n === 1 ? e.i32(0) : moved;
  });
  if (gate !== null) c.note(gate);
  c.need(x, inner, gate);
}

function concat(c: SourceContext, node: PlanNode<'concat'>, index: Index): void {
  const { e } = c;
  const { axis } = node.attr;
  const at = index[axis] as KNode;
  let start = 0;
  for (const part of node.src) {
    const n = part.shape[axis] as number;
    const gate = within(e, at, start, start + n);
    c.note(gate);
    const inner = index.slice();
    inner[axis] = n === 1 ? e.i32(0) : e.sub(at, start);
    c.need(part, inner, gate);
    start += n;
  }
}

function window(c: SourceContext, node: PlanNode<'window'>, index: Index): void {
  const { e } = c;
  const { size, stride, dilation } = node.attr;
  const rank = size.length;
  const lead = index.length - 2 * rank;
  const inner = index.slice(0, lead);
  for (let i = 0; i < rank; i++) {
    const start = e.mul(index[lead + i] as KNode, stride[i] as number);
    inner.push(e.add(start, e.mul(index[lead + rank + i] as KNode, dilation[i] as number)));
  }
  c.need(source(node), inner);
}

/** Computing waits for what must be there before: both are in memory then, which orders the kernels. */
function after(c: SourceContext, node: PlanNode<'after'>, index: Index): void {
  const [x, when] = node.src as [PlanNode, PlanNode];
  c.need(x, index);
  for (const s of [movedFrom(x), movedFrom(when)]) if (s.role !== 'leaf' && s.role !== 'generate') c.needInMemory(s);
}

type Single = 'buffer' | 'scalar' | 'constant' | 'iota' | 'stopGradient';
type Special =
  | Single
  | 'randomBits'
  | 'reduce'
  | 'argReduce'
  | 'reshape'
  | 'permute'
  | 'expand'
  | 'slice'
  | 'pad'
  | 'concat'
  | 'window'
  | 'fold'
  | 'dotGeneral'
  | 'conv'
  | 'after';

const special: { readonly [P in Special]: SourceRule<P> } = {
  buffer: nothing,
  scalar: nothing,
  constant: nothing,
  iota: nothing,
  stopGradient: nothing,
  randomBits: (c, node) => {
    for (const key of node.src) c.need(key, []);
  },
  reduce: reduceOver,
  argReduce: reduceOver,
  reshape: movement,
  permute: movement,
  expand: movement,
  slice: movement,
  pad,
  concat,
  window,
  fold,
  dotGeneral,
  conv,
  after,
};

/** Asks for everything the node needs of its sources at this index. Primitives without a rule of their own are elementwise. */
export function needSources(c: SourceContext): void {
  const { node, index } = c.demand;
  const rule =
    definitionOf(node.op)?.sources ??
    (special as unknown as Readonly<Record<string, SourceRule<PrimitiveName> | undefined>>)[node.op];
  if (rule === undefined) elementwise(c, node, index);
  else rule(c, node, index);
}
