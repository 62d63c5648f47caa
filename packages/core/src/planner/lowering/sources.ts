/**
 * What a primitive needs of its sources: the form of the rules in definitions, from "element at this index" to "elements at those".
 *
 * Rules run while kernels are being decided, consumers first, so they may use index expressions and loops but not values.
 * Making the value from the sources' values is the other half, in values.ts; a rule leaves in `notes` the conditions that
 * half needs.
 */
import type { PrimitiveName } from '../../graph/attrs.ts';
import type { Exprs, Range } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import type { Demand } from '../fusion/draft.ts';
import { broadcastIndex, type Index } from './index-map.ts';
import { definitionOf } from '../../graph/definition.ts';
import type { PlanNode } from '../capture/plan-graph.ts';

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

/** The node whose memory plain movements lead to. */
export function movedFrom(node: PlanNode): PlanNode {
  let base = node;
  while (definitionOf(base.op).move !== undefined && !base.forced) base = base.src[0] as PlanNode;
  return base;
}

/** The loops among index expressions (axes of size 1 have none). */
export function ranges(own: readonly KNode[]): Range[] {
  return own.filter((n): n is Range => n.op === 'RANGE');
}

/** Asks for everything the node needs of its sources at this index. Primitives without a rule of their own need the same element of each. */
export function needSources(c: SourceContext): void {
  const { node, index } = c.demand;
  const { sources, move } = definitionOf(node.op);
  if (sources !== undefined) sources(c, node, index);
  else if (move !== undefined) c.need(node.src[0] as PlanNode, move(c.e, node, index));
  else for (const s of node.src) c.need(s, broadcastIndex(c.e, s.shape, index.length, index));
}
