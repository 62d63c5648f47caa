/**
 * What a primitive computes from its sources' values: the form of the rules in definitions, from values to a kernel expression.
 *
 * The other half of sources.ts: `parts` of the demand are the sources in the order that file asked for them. Rules run
 * sources first. Where a demand's gate is false its value may be anything, so only padding and sums look at gates.
 */
import type { PrimitiveName } from '../../graph/attrs.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import type { Demand } from '../fusion/draft.ts';
import { bothGates, type Index } from './index-map.ts';
import { definitionOf } from '../../graph/definition.ts';
import type { PlanNode } from '../capture/plan-graph.ts';

export interface ValueContext {
  readonly e: Exprs;
  /** Loads an element of a node in memory for the kernel of this demand. */
  load(demand: Demand, node: PlanNode, index: Index, gate: KNode | null): KNode;
  /** A number bound at each run. */
  scalar(demand: Demand): KNode;
}

export type ValueRule<P extends PrimitiveName> = (c: ValueContext, demand: Demand, node: PlanNode<P>) => KNode;

/** The value of a source. */
export const part = (demand: Demand, i = 0): KNode => (demand.parts[i] as Demand).value as KNode;

/** `value` where the gate holds, else `other`; a gated load takes the other value in without a selection. */
export function gated(
  e: Exprs,
  gate: KNode | null | undefined,
  outer: KNode | null,
  value: KNode,
  other: number | bigint,
): KNode {
  if (gate === undefined || gate === null) return value;
  const alt = e.constant(value.dtype as DType, other);
  if (value.op === 'LOAD' && value.src[2] !== undefined && value.src[2] === bothGates(e, outer, gate)) {
    return e.load(value.src[0], value.src[1], value.src[2], alt);
  }
  return e.where(gate, value, alt);
}

/** 16-bit floats are summed in float32, small integers in int32, which wraps to the same bits. */
export function widened(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (kind === 'bool' || bytes >= 4) return dtype;
  return kind === 'float' ? 'float32' : 'int32';
}

/** The sum over the loops of the demand. */
export function sum(e: Exprs, demand: Demand, value: KNode): KNode {
  return e.reduce('sum', value, demand.ranges);
}

/** The expression of a demand that is computed in place. */
export function makeValue(c: ValueContext, demand: Demand): KNode {
  const { node } = demand;
  const { value, kernelOp, role } = definitionOf(node.op);
  if (value !== undefined) return value(c, demand, node);
  if (kernelOp == null) {
    if (role === 'elementwise') throw new Error(`[lower] primitive ${node.op} has no rule for its value`);
    return part(demand);
  }
  const { e } = c;
  if (demand.parts.length === 1) return e.unary(kernelOp as Parameters<Exprs['unary']>[0], part(demand));
  if (demand.parts.length === 3)
    return e.ternary(kernelOp as Parameters<Exprs['ternary']>[0], part(demand, 0), part(demand, 1), part(demand, 2));
  return e.binary(kernelOp as Parameters<Exprs['binary']>[0], part(demand, 0), part(demand, 1));
}
