/**
 * Hints for templates: which part of a loop nest is a contraction, and what each of its loops is for.
 */
import type { Range } from '../../ir/expr.ts';
import type { FreeRanges } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { linearOf } from '../../ir/simplify/linear.ts';
import { isRowMajor, sizeOf } from '../../shape/view.ts';
import type { ContractionHint, ConvRoles } from '../../codegen/contract.ts';
import type { Demand, KernelDraft } from '../fusion/draft.ts';
import { isPlanOp, type PlanNode } from '../capture/plan-graph.ts';

/** A slot as this file needs it. */
interface NodeSlot {
  readonly node: PlanNode;
}

/** The hint of a kernel with a contraction whose expression still has the form templates know; else null. */
export function hintFor(
  free: FreeRanges,
  kernel: KernelDraft,
  slots: readonly NodeSlot[],
  params: readonly KNodeOf<'PARAM'>[],
): ContractionHint | null {
  const { contraction } = kernel;
  if (contraction === null) return null;
  const reduce = findReduce(contraction.value as KNode, contraction.ranges);
  const product = reduce?.src[0];
  if (reduce === null || product === undefined || product.op !== 'MUL') return null;
  const [a, b] = product.src as readonly [KNode, KNode];
  const k = contraction.ranges;
  const ofA = new Set(free.of(a));
  const ofB = new Set(free.of(b));
  const batch: Range[] = [];
  const m: Range[] = [];
  const n: Range[] = [];
  for (const axis of kernel.axes) {
    if (ofA.has(axis)) (ofB.has(axis) ? batch : m).push(axis);
    else if (ofB.has(axis)) n.push(axis);
    else return null;
  }
  const hint = { reduce, a, b, batch, m, n, k };
  const conv = convRoles(contraction, slots, params);
  return conv === null ? hint : { ...hint, conv };
}

/** The sum itself, below a conversion back to 16 bits. */
function findReduce(value: KNode, ranges: readonly Range[]): KNodeOf<'REDUCE'> | null {
  let at = value;
  if (at.op === 'CAST') at = at.src[0] as KNode;
  return at.op === 'REDUCE' && at.src.length === ranges.length + 1 ? at : null;
}

function convRoles(demand: Demand, slots: readonly NodeSlot[], params: readonly KNodeOf<'PARAM'>[]): ConvRoles | null {
  const { node, index, ranges } = demand;
  if (!isPlanOp(node, 'conv')) return null;
  const [lhs, rhs] = node.src as [PlanNode, PlanNode];
  const asRange = (x: KNode | undefined): Range | null => (x !== undefined && x.op === 'RANGE' ? x : null);
  const outSpatial = index.slice(2).map(asRange);
  // Loops of the reduction in the rule's order, with gaps where an extent is 1.
  let at = 0;
  const own = rhs.shape.slice(1).map((n) => (n === 1 ? null : (ranges[at++] as Range)));
  const spatial = own.slice(1);
  if (outSpatial.includes(null) || spatial.includes(null)) return null;
  const [group, feature] = featureLoops(node, index[1] as KNode);
  const plain = (x: PlanNode): KNodeOf<'PARAM'> | null => {
    const slot = slots.findIndex((s) => s.node === x);
    if (slot < 0) return null;
    // Temporaries may lie in another order (arrange.ts).
    const rowMajor =
      x.leaf === null
        ? x.forced
        : x.leaf.shift === 0 &&
          x.leaf.span === sizeOf(x.shape) &&
          isRowMajor(x.shape, { strides: x.leaf.strides, offset: 0 });
    return rowMajor ? (params[slot] as KNodeOf<'PARAM'>) : null;
  };
  return {
    image: asRange(index[0]),
    outFeature: feature,
    group,
    inFeature: own[0] ?? null,
    outSpatial: outSpatial as Range[],
    kernelSpatial: spatial as Range[],
    stride: node.attr.stride,
    padLow: node.attr.padLow,
    lhsDilation: node.attr.lhsDilation,
    rhsDilation: node.attr.rhsDilation,
    inSpatial: lhs.shape.slice(2),
    lhs: plain(lhs),
    rhs: plain(rhs),
  };
}

/** Loops over groups and over the features of one group. */
function featureLoops(node: PlanNode<'conv'>, index: KNode): [Range | null, Range | null] {
  const groups = node.attr.groups * node.attr.batchGroups;
  if (groups === 1) return [null, index.op === 'RANGE' ? index : null];
  let group: Range | null = null;
  let feature: Range | null = null;
  for (const term of linearOf(index).terms) {
    if (term.op !== 'RANGE') return [null, null];
    if (term.arg.extent === groups && group === null) group = term;
    else feature = term;
  }
  return [group, feature];
}
