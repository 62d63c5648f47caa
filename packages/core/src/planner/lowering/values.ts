/**
 * What each primitive computes from its sources' values: one rule per primitive, from values to a kernel expression.
 *
 * The other half of sources.ts: `parts` of the demand are the sources in the order that file asked for them. Rules run
 * sources first. Where a demand's gate is false its value may be anything, so only padding and sums look at gates.
 */
import type { PrimitiveName } from '../../graph/attrs.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo, isFloat } from '../../shape/dtype.ts';
import type { Demand } from '../fusion/draft.ts';
import { bothGates, flatten, type Index } from './index-map.ts';
import { definitionOf } from '../../graph/definition.ts';
import type { PlanNode } from '../capture/plan-graph.ts';
import { threefry } from '../capture/threefry.ts';
import { traits } from '../capture/traits.ts';

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

const same = (_: ValueContext, demand: Demand): KNode => part(demand);

/** `value` where the gate holds, else `other`; a gated load takes the other value in without a selection. */
function gated(
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

function contraction(c: ValueContext, demand: Demand, node: PlanNode): KNode {
  const { e } = c;
  const wide = widened(node.dtype);
  const lhs = e.cast(gated(e, demand.notes[0], demand.gate, part(demand, 0), 0), wide);
  const rhs = e.cast(part(demand, 1), wide);
  return e.cast(sum(e, demand, e.mul(lhs, rhs)), node.dtype);
}

type Unnamed = 'buffer' | 'scalar' | 'constant' | 'iota' | 'randomBits' | 'sign' | 'where' | 'cast' | 'bitcast';
type Structured =
  | 'reduce'
  | 'argReduce'
  | 'reshape'
  | 'permute'
  | 'expand'
  | 'slice'
  | 'pad'
  | 'concat'
  | 'window'
  | 'fold';
type Special = Unnamed | Structured | 'dotGeneral' | 'conv' | 'stopGradient' | 'after' | 'contiguous';

const rules: { readonly [P in Special]: ValueRule<P> } = {
  buffer: (c, demand, node) => c.load(demand, node, demand.index, demand.gate),
  scalar: (c, demand) => c.scalar(demand),
  constant: (c, _, node) => c.e.constant(node.dtype, node.attr.value),
  iota: (_, demand) => demand.index[0] as KNode,
  randomBits: (c, demand, node) => {
    const at = c.e.cast(flatten(c.e, node.shape, demand.index), 'uint32');
    return threefry(c.e, part(demand, 0), part(demand, 1), at);
  },
  sign: ({ e }, demand, node) => {
    const x = part(demand);
    const of = (value: number): KNode => e.constant(node.dtype, value);
    const negative = isFloat(node.dtype) || node.dtype.startsWith('int') ? e.where(e.lt(x, of(0)), of(-1), x) : x;
    return e.where(e.lt(of(0), x), of(1), negative);
  },
  where: ({ e }, demand) => e.where(part(demand, 0), part(demand, 1), part(demand, 2)),
  cast: ({ e }, demand, node) => e.cast(part(demand), node.attr.dtype),
  bitcast: ({ e }, demand, node) => e.bitcast(part(demand), node.attr.dtype),

  reduce: ({ e }, demand, node) => {
    const wide = node.attr.op === 'sum' || node.attr.op === 'prod' ? widened(node.dtype) : node.dtype;
    return e.cast(e.reduce(node.attr.op, e.cast(part(demand), wide), demand.ranges), node.dtype);
  },
  argReduce: ({ e }, demand, node) =>
    e.reduce(node.attr.op === 'max' ? 'argmax' : 'argmin', part(demand), demand.ranges),

  reshape: same,
  permute: same,
  expand: same,
  slice: same,
  window: same,
  pad: ({ e }, demand, node) => gated(e, demand.notes[0], demand.gate, part(demand), node.attr.value),
  concat: ({ e }, demand) => {
    let value = part(demand, demand.parts.length - 1);
    for (let i = demand.parts.length - 2; i >= 0; i--)
      value = e.where(demand.notes[i] as KNode, part(demand, i), value);
    return value;
  },
  fold: ({ e }, demand, node) => {
    const wide = widened(node.dtype);
    const value = gated(e, demand.notes[0], demand.gate, part(demand), 0);
    return demand.ranges.length === 0 ? value : e.cast(sum(e, demand, e.cast(value, wide)), node.dtype);
  },

  dotGeneral: contraction,
  conv: contraction,

  stopGradient: same,
  after: same,
  contiguous: same,
};

function isSpecial(op: PrimitiveName): op is Special {
  return Object.hasOwn(rules, op);
}

/** The expression of a demand that is computed in place. */
export function makeValue(c: ValueContext, demand: Demand): KNode {
  const { node } = demand;
  const brought = definitionOf(node.op)?.value as ValueRule<PrimitiveName> | undefined;
  if (brought !== undefined) return brought(c, demand, node);
  if (isSpecial(node.op)) return (rules[node.op] as ValueRule<PrimitiveName>)(c, demand, node);
  const { kernelOp } = traits[node.op];
  if (kernelOp === undefined) throw new Error(`[lower] primitive ${node.op} has no rule for its value`);
  const { e } = c;
  if (demand.parts.length === 1) return e.unary(kernelOp as Parameters<Exprs['unary']>[0], part(demand));
  if (demand.parts.length === 3)
    return e.ternary(kernelOp as Parameters<Exprs['ternary']>[0], part(demand, 0), part(demand, 1), part(demand, 2));
  return e.binary(kernelOp as Parameters<Exprs['binary']>[0], part(demand, 0), part(demand, 1));
}
