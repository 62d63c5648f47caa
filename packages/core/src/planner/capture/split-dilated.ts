/**
 * Convolutions of a dilated input (zeros between its elements) as convolutions of the input itself.
 *
 * Transposed convolutions, and gradients with respect to the input of a strided convolution, are of this kind. At any output only one
 * kernel element in `hole` (the dilation) meets an element of the input; which ones depends on the output's position
 * modulo `hole`. So the outputs with one remainder (a phase) are a convolution of the input with every n-th element of
 * the kernel. The other products are with zeros: three of four for strides of two in two dimensions.
 *
 * Where all phases use equally many elements of the kernel, they are features of one convolution. Its phases meet all elements at the same place, so results may
 * begin and end with parts of a phase, which are computed for nothing. Else each phase is a convolution of its own.
 */
import type { ConvAttr } from '../../graph/node.ts';
import { dilated } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import type { PlanGraph, PlanNode } from './plan-graph.ts';

/** With fewer products with zeros than this, more kernels cost more than they save. */
const worthSplitting = 1 << 19;
/** More phases than this make too many kernels. */
const mostPhases = 16;
/** Products that take as long as an element of a phase's copy of the input. */
const productsOfCopy = 16;

/** The same convolution without dilation of its input, or null if it is better left whole. */
export function splitDilated(
  graph: PlanGraph,
  attr: ConvAttr,
  [lhs, rhs]: readonly [PlanNode, PlanNode],
  shape: Shape,
  dtype: DType,
): PlanNode | null {
  const axes = attr.lhsDilation.flatMap((hole, i) => (hole > 1 && attr.stride[i] === 1 ? [i] : []));
  const phases = axes.reduce((n, i) => n * attr.lhsDilation[i]!, 1);
  const products = sizeOf(shape) * sizeOf(rhs.shape.slice(1));
  if (phases === 1 || products * (1 - 1 / phases) < worthSplitting) return null;
  // A phase that meets no element of the kernel is zeros.
  const kernels = axes.reduce((n, i) => n * Math.min(attr.lhsDilation[i]!, rhs.shape[i + 2]!), 1);
  const sides = sidesOf(graph, attr, axes, rhs.shape, shape);
  if (sides !== null) {
    const more = sides.reduce((n, { count, hole, axis }) => (n * count * hole) / shape[axis]!, 1) - 1;
    if (kernels > mostPhases || (products / phases) * more < productsOfCopy * (phases - 1) * lhs.size)
      return phasesAsFeatures(graph, attr, [lhs, rhs], shape, dtype, sides);
  }
  if (kernels > mostPhases) return null;
  /** The convolution of each phase along the first axis, itself split along the others; their outputs interleaved. */
  const phasesOf = (attr: ConvAttr, rhs: PlanNode, shape: Shape, [i, ...others]: readonly number[]): PlanNode => {
    if (i === undefined)
      return graph.make('conv', attr, [lhs, inMemory(graph, rhs, sizeOf(shape) / shape[1]!)], shape, dtype);
    const hole = attr.lhsDilation[i]!;
    const axis = i + 2;
    const at = (list: Shape, value: number): number[] => list.map((n, k) => (k === axis ? value : n));
    const count = Math.ceil(shape[axis]! / hole);
    const partShape = at(shape, count);
    const none = shape.map(() => 0);
    const ones = shape.map(() => 1);
    const phaseShape = [...partShape.slice(0, axis + 1), 1, ...partShape.slice(axis + 1)];
    const parts = Array.from({ length: hole }, (_, phase) => {
      const cut = phaseOf(attr, i, phase, lhs.shape[axis]!, rhs.shape[axis]!, count);
      if (cut === null) return graph.constant(0, phaseShape, dtype);
      const length = at(rhs.shape, cut.taps);
      const taken = { start: at(none, cut.first), length, step: at(ones, cut.step) };
      const kernel = graph.make('slice', taken, [rhs], length, rhs.dtype);
      return graph.reshape(phasesOf(cut.attr, kernel, partShape, others), phaseShape);
    });
    const together = phaseShape.map((n, k) => (k === axis + 1 ? hole : n));
    const side = graph.make('concat', { axis: axis + 1 }, parts, together, dtype);
    const whole = graph.reshape(side, at(shape, count * hole));
    return graph.make('slice', { start: none, length: shape, step: ones }, [whole], shape, dtype);
  };
  return phasesOf(attr, rhs, shape, axes);
}

/** Results for which each element of the kernel is needed, from which on its elements are copied to lie side by side. */
const worthCopying = 512;

/**
 * The elements of a kernel that a phase uses, side by side in memory. In the kernel they lie apart, so that each read brings others that the phase does not
 * need, and all groups of results read them. `results`: of each feature.
 */
function inMemory(graph: PlanGraph, kernel: PlanNode, results: number): PlanNode {
  if (results < worthCopying || (kernel.op !== 'slice' && kernel.op !== 'reshape')) return kernel;
  const copy = graph.exactly('contiguous', null, [kernel], kernel.shape, kernel.dtype);
  copy.forced = true;
  return copy;
}

/** The kernel elements that one phase uses along an axis, and their convolution; null where it uses none. */
interface Cut {
  readonly first: number;
  readonly step: number;
  readonly taps: number;
  readonly attr: ConvAttr;
}

function phaseOf(attr: ConvAttr, i: number, phase: number, n: number, taps: number, count: number): Cut | null {
  const hole = attr.lhsDilation[i]!;
  const dilation = attr.rhsDilation[i]!;
  const low = attr.padLow[i]!;
  // Position `phase + first * dilation - low` of the dilated input holds an element; `step` kernel elements later comes the next.
  const meets = (k: number): boolean => (phase + k * dilation - low) % hole === 0;
  let first = 0;
  while (first < taps && !meets(first)) first++;
  if (first >= taps) return null;
  let step = 1;
  while ((step * dilation) % hole !== 0) step++;
  const phaseTaps = Math.ceil((taps - first) / step);
  const next = (step * dilation) / hole;
  const padLow = -(phase + first * dilation - low) / hole + 0;
  const padHigh = count + dilated(phaseTaps, next) - 1 - n - padLow;
  const set = (list: readonly number[], value: number): number[] => list.map((x, k) => (k === i ? value : x));
  return {
    first,
    step,
    taps: phaseTaps,
    attr: {
      ...attr,
      lhsDilation: set(attr.lhsDilation, 1),
      rhsDilation: set(attr.rhsDilation, next),
      padLow: set(attr.padLow, padLow),
      padHigh: set(attr.padHigh, padHigh),
    },
  };
}

/** An axis along which every phase uses equally many elements of the kernel. */
interface Side {
  readonly axis: number;
  readonly hole: number;
  /** Elements of the kernel that a phase uses, one after another, and positions of each phase. */
  readonly taps: number;
  readonly count: number;
  readonly padLow: number;
  /** Where the result begins among the phases side by side. */
  readonly first: number;
}

/** The axes of a convolution whose phases may be features of one; null where phases differ, or where positions of phases hang on a size in another way. */
function sidesOf(
  graph: PlanGraph,
  attr: ConvAttr,
  axes: readonly number[],
  kernel: Shape,
  shape: Shape,
): readonly Side[] | null {
  if (attr.batchGroups > 1) return null;
  const sides: Side[] = [];
  for (const i of axes) {
    const [axis, hole, low] = [i + 2, attr.lhsDilation[i]!, attr.padLow[i]!];
    const [size, taps] = [shape[axis]!, kernel[axis]! / hole];
    if (attr.rhsDilation[i] !== 1 || taps % 1 !== 0) return null;
    // Results at hole * a - r + low, r below the hole, meet elements a to a + taps - 1 of the input.
    const from = Math.ceil(-low / hole);
    const count = Math.ceil((size - 1 - low) / hole) - from + 1;
    if (graph.sizedAmong(shape, [axis]) && count * hole !== size) return null;
    sides.push({ axis, hole, taps, count, padLow: -from, first: hole - 1 - low - hole * from });
  }
  return sides;
}

/** One convolution whose features are those of all phases, which are put side by side then. */
function phasesAsFeatures(
  graph: PlanGraph,
  attr: ConvAttr,
  [lhs, rhs]: readonly [PlanNode, PlanNode],
  shape: Shape,
  dtype: DType,
  sides: readonly Side[],
): PlanNode {
  const sideOf = (axis: number): Side | undefined => sides.find((s) => s.axis === axis);
  const { groups } = attr;
  const [features, depth] = [rhs.shape[0]! / groups, rhs.shape[1]!];
  const spatial = shape.slice(2).map((_, i) => i + 2);
  const permuted = (x: PlanNode, axes: readonly number[]): PlanNode =>
    graph.make(
      'permute',
      { axes },
      [x],
      axes.map((axis) => x.shape[axis]!),
      x.dtype,
    );
  const phases = sides.reduce((n, { hole }) => n * hole, 1);

  // [g O, C, taps * holes ...] to [g holes O, C, taps ...], the phases in the order of results.
  const cut = [groups, features, depth];
  const holes: number[] = [];
  const taps: number[] = [];
  for (const axis of spatial) {
    const side = sideOf(axis);
    taps.push(cut.push(side?.taps ?? rhs.shape[axis]!) - 1);
    if (side !== undefined) holes.push(cut.push(side.hole) - 1);
  }
  const start = cut.map((n, axis) => (holes.includes(axis) ? n - 1 : 0));
  const step = cut.map((_, axis) => (holes.includes(axis) ? -1 : 1));
  const turned = graph.make('slice', { start, length: cut, step }, [graph.reshape(rhs, cut)], cut, rhs.dtype);
  const kernel = graph.reshape(permuted(turned, [0, ...holes, 1, 2, ...taps]), [
    groups * phases * features,
    depth,
    ...taps.map((axis) => cut[axis]!),
  ]);

  const counts = spatial.map((axis) => sideOf(axis)?.count ?? shape[axis]!);
  const list = (own: (side: Side) => number, other: readonly number[]): readonly number[] =>
    other.map((n, i) => {
      const side = sideOf(i + 2);
      return side === undefined ? n : own(side);
    });
  const whole: ConvAttr = {
    ...attr,
    lhsDilation: list(() => 1, attr.lhsDilation),
    padLow: list((s) => s.padLow, attr.padLow),
    padHigh: list((s) => s.count + s.taps - 1 - lhs.shape[s.axis]! - s.padLow, attr.padHigh),
  };
  const all = [shape[0]!, groups * phases * features, ...counts];
  const conv = graph.make('conv', whole, [lhs, inMemory(graph, kernel, sizeOf(counts) * shape[0]!)], all, dtype);

  // [N, g holes O, positions ...] to [N, g O, positions * holes ...].
  const apart = [shape[0]!, groups, ...sides.map(({ hole }) => hole), features, ...counts];
  const after = 3 + sides.length;
  const order = [0, 1, after - 1];
  for (const [i, axis] of spatial.entries()) {
    order.push(after + i);
    const at = sides.findIndex((s) => s.axis === axis);
    if (at >= 0) order.push(2 + at);
  }
  const beside = shape.map((n, axis) => {
    const side = sideOf(axis);
    return side === undefined ? n : side.count * side.hole;
  });
  const side = graph.reshape(permuted(graph.reshape(conv, apart), order), beside);
  const from = shape.map((_, axis) => sideOf(axis)?.first ?? 0);
  return graph.make('slice', { start: from, length: shape, step: shape.map(() => 1) }, [side], shape, dtype);
}
