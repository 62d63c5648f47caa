/**
 * Simplifications of the planner's graph, tried when a node is made.
 *
 * Every rule keeps every element bit for bit, except that sums may be taken in another fixed order. Rules know no kernels.
 */
import { isRowMajor, sameShape, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import { type DType, isSmallFloat, neutral } from '@polygrad/compiler/shape/dtype';
import { isPlanOp, longColumns, manyResults, type PlanGraph, type PlanNode, splitLeast } from './plan-graph.ts';
import { rareForms } from '#rare';

type Rule<P extends PrimitiveName> = (
  graph: PlanGraph,
  attr: Attrs[P],
  src: readonly PlanNode[],
  shape: Shape,
  dtype: DType,
) => PlanNode | null;

/** Positions among fewer elements are found in one step: chunks store extremes and positions, which costs more on one thread. */
export const splitPositionsLeast: number = 2 ** 18;
/** With fewer products with zeros than this, convolutions stay whole: more kernels cost more than they save. */
const worthSplitting = 1 << 19;

/**
 * In pages products of fewer elements stay contractions, though what makes reductions of them be loaded: they are as fast, and their bits do not depend on
 * when it came. Elsewhere every thin product is a reduction.
 */
const worthReducing = 1 << 14;

const first = (src: readonly PlanNode[]): PlanNode => src[0]!;

function isConstant(node: PlanNode, value: number): boolean {
  return isPlanOp(node, 'constant') && Object.is(node.attr.value, value);
}

/** A movement of a constant is the constant in another shape. */
function still(graph: PlanGraph, x: PlanNode, shape: Shape): PlanNode | null {
  if (isPlanOp(x, 'constant')) return graph.constant(x.attr.value, shape, x.dtype);
  return null;
}

/** `x` if it has the shape of the elementwise node that it would replace; else null, because it is broadcast. */
function standIn(x: PlanNode, shape: Shape): PlanNode | null {
  return sameShape(x.shape, shape) ? x : null;
}

/** True if forcing the node stores it in a buffer of its own, rather than as a view or a constant. */
function canBeForced(x: PlanNode): boolean {
  return x.role !== 'leaf' && x.role !== 'movement' && x.role !== 'generate';
}

const rules: { readonly [P in PrimitiveName]?: Rule<P> } = {
  stopGradient: (_, __, src) => first(src),
  contiguous: (_, __, src) => {
    const x = first(src);
    if (x.leaf !== null && isRowMajor(x.shape, { strides: x.leaf.strides, offset: 0 })) return x;
    if (!canBeForced(x)) return null;
    x.forced = true;
    return x;
  },

  reshape: (graph, _, src, shape) => {
    const x = first(src);
    if (sameShape(x.shape, shape)) return x;
    return still(graph, x, shape) ?? (x.op === 'reshape' ? graph.reshape(first(x.src), shape) : null);
  },
  permute: (graph, attr, src, shape, dtype) => {
    const x = first(src);
    if (attr.axes.every((axis, i) => axis === i)) return x;
    if (isPlanOp(x, 'permute')) {
      const axes = attr.axes.map((axis) => x.attr.axes[axis]!);
      return graph.make('permute', { axes }, x.src, shape, dtype);
    }
    return still(graph, x, shape);
  },
  expand: (graph, attr, src, shape, dtype) => {
    const x = first(src);
    if (sameShape(x.shape, shape)) return x;
    if (x.op === 'expand') return graph.make('expand', attr, x.src, shape, dtype);
    return still(graph, x, shape);
  },
  slice: (graph, attr, src, shape) => {
    const x = first(src);
    if (sameShape(x.shape, shape) && attr.step.every((step) => step === 1)) return x;
    return still(graph, x, shape);
  },
  pad: (_, attr, src) => (attr.low.every((n) => n === 0) && attr.high.every((n) => n === 0) ? first(src) : null),
  concat: (graph, attr, src, shape, dtype) => {
    const parts = src.filter((part) => part.size > 0);
    if (parts.length === 1) return first(parts);
    return parts.length < src.length ? graph.make('concat', attr, parts, shape, dtype) : null;
  },

  cast: (graph, attr, src, shape) => {
    const x = first(src);
    if (x.dtype === attr.dtype) return x;
    if (
      isPlanOp(x, 'constant') &&
      typeof x.attr.value === 'number' &&
      Number.isInteger(x.attr.value) &&
      !Object.is(x.attr.value, -0) &&
      Math.abs(x.attr.value) <= 127
    ) {
      const value = attr.dtype === 'bool' ? Number(x.attr.value !== 0) : x.attr.value;
      if (value >= 0 || !attr.dtype.startsWith('uint')) return graph.constant(value, shape, attr.dtype);
    }
    return null;
  },
  mul: (_, __, src, shape) => {
    const [a, b] = src as [PlanNode, PlanNode];
    if (isConstant(b, 1)) return standIn(a, shape);
    return isConstant(a, 1) ? standIn(b, shape) : null;
  },
  div: (_, __, src, shape) => (isConstant(src[1]!, 1) ? standIn(first(src), shape) : null),
  sub: (_, __, src, shape) => (isConstant(src[1]!, 0) ? standIn(first(src), shape) : null),
  where: (_, __, src, shape) => {
    const [condition, a, b] = src as [PlanNode, PlanNode, PlanNode];
    if (a === b) return standIn(a, shape);
    return isPlanOp(condition, 'constant') ? standIn(condition.attr.value !== 0 ? a : b, shape) : null;
  },

  reduce: (graph, attr, src, shape, dtype) => {
    const x = first(src);
    const size = sizeOf(shape);
    if (x.size === 0) return graph.constant(neutral(attr.op, dtype), shape, dtype);
    if (x.size === size) return graph.reshape(x, shape);
    const isLarge = size < manyResults ? x.size >= splitLeast * size : x.size >= longColumns;
    return size > 0 && isLarge ? (rareForms()?.splitReduce(graph, x, attr, shape, size) ?? null) : null;
  },
  argReduce: (graph, attr, src, shape) => {
    const x = first(src);
    const size = sizeOf(shape);
    if (x.size === size) return graph.constant(0, shape, 'int32');
    const isLarge = size > 0 && size < manyResults && x.size / size >= splitPositionsLeast;
    return isLarge ? (rareForms()?.splitArgReduce(graph, x, attr, shape, size) ?? null) : null;
  },

  scan: (_, attr, src, shape) => (shape[attr.axis] === 1 ? first(src) : null),
  argSort: (graph, attr, src, shape) => (first(src).shape[attr.axis] === 1 ? graph.constant(0, shape, 'int32') : null),
  scatter: (_, __, src) => (src[2]!.size === 0 ? first(src) : null),

  dotGeneral: (graph, attr, src, shape, dtype) => {
    const [lhs, rhs] = src as [PlanNode, PlanNode];
    if (lhs.size === 0 || rhs.size === 0) return graph.constant(0, shape, dtype);
    const extent = (axes: readonly number[]): number => axes.reduce((n, axis) => n * lhs.shape[axis]!, 1);
    const batch = extent(attr.lhsBatch);
    const depth = extent(attr.lhsContract);
    const thin = lhs.size === batch * depth || rhs.size === batch * depth || depth === 1;
    return thin
      ? (rareForms(lhs.size + rhs.size >= worthReducing)?.dotAsReduce(graph, attr, lhs, rhs, shape, dtype) ?? null)
      : null;
  },
  scatterAdd: (graph, attr, src, shape, dtype) => {
    if (!isSmallFloat(dtype)) return null;
    const [base, which, updates] = src as [PlanNode, PlanNode, PlanNode];
    const wide = [inFloat32(graph, base), which, inFloat32(graph, updates)];
    const sum = graph.make('scatterAdd', attr, wide, shape, 'float32');
    return graph.make('cast', { dtype }, [sum], shape, dtype);
  },
  conv: (graph, attr, src, shape, dtype) => {
    const [lhs, rhs] = src as [PlanNode, PlanNode];
    if (lhs.size === 0 || rhs.size === 0) return graph.constant(0, shape, dtype);
    const axes = attr.lhsDilation.flatMap((hole, i) => (hole > 1 && attr.stride[i] === 1 ? [i] : []));
    const phases = axes.reduce((n, i) => n * attr.lhsDilation[i]!, 1);
    const zeros = sizeOf(shape) * sizeOf(rhs.shape.slice(1)) * (1 - 1 / phases);
    return zeros < worthSplitting
      ? null
      : (rareForms()?.splitDilated(graph, attr, [lhs, rhs], shape, dtype, axes) ?? null);
  },
};

function inFloat32(graph: PlanGraph, x: PlanNode): PlanNode {
  return graph.make('cast', { dtype: 'float32' }, [x], x.shape, 'float32');
}

/** The rules as one function; see `Rewrite`. */
export function rewriteNode(
  graph: PlanGraph,
  op: PrimitiveName,
  attr: Attrs[PrimitiveName],
  src: readonly PlanNode[],
  shape: Shape,
  dtype: DType,
): PlanNode | null {
  if (sizeOf(shape) === 0) return op === 'constant' ? null : graph.constant(0, shape, dtype);
  const rule = rules[op] as Rule<PrimitiveName> | undefined;
  return rule === undefined ? null : rule(graph, attr, src, shape, dtype);
}
