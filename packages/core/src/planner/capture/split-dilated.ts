/**
 * Convolutions of an input with holes between its elements, as convolutions without: one for every position between two elements.
 *
 * Gradients by the input of a convolution with steps, and transposed convolutions, are of this kind. Of the kernel's elements only one in
 * `hole` meets an element of the input at any one output, and which ones depends on the output's position modulo `hole` alone. So the
 * outputs of each such position (a phase) are a convolution of the input itself with every so manieth element of the kernel. The
 * rest would be products with zero: three of four for steps of two in two dimensions.
 */
import type { ConvAttr } from '../../graph/attrs.ts';
import { dilated } from '../../shape/axes.ts';
import type { DType } from '../../shape/dtype.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';
import type { PlanGraph, PlanNode } from './plan-graph.ts';

/** Products with zeros below which more kernels cost more than they save. */
const worthSplitting = 1 << 19;
/** More phases than this make too many kernels. */
const mostPhases = 16;

/** The same convolution without holes along the spatial axes, or null if it is better left whole. */
export function splitDilated(
  graph: PlanGraph,
  attr: ConvAttr,
  [lhs, rhs]: readonly [PlanNode, PlanNode],
  shape: Shape,
  dtype: DType,
): PlanNode | null {
  const axes = attr.lhsDilation.flatMap((hole, i) => (hole > 1 && attr.stride[i] === 1 ? [i] : []));
  const phases = axes.reduce((n, i) => n * attr.lhsDilation[i]!, 1);
  const taps = sizeOf(rhs.shape.slice(1));
  if (phases === 1 || phases > mostPhases || sizeOf(shape) * taps * (1 - 1 / phases) < worthSplitting) return null;
  return phasesOf(graph, attr, lhs, rhs, shape, dtype, axes);
}

/** Outputs by their phase along the first of the axes, each split along the others, put side by side. */
function phasesOf(
  graph: PlanGraph,
  attr: ConvAttr,
  lhs: PlanNode,
  rhs: PlanNode,
  shape: Shape,
  dtype: DType,
  [i, ...others]: readonly number[],
): PlanNode {
  if (i === undefined) return graph.make('conv', attr, [lhs, rhs], shape, dtype);
  const hole = attr.lhsDilation[i]!;
  const axis = i + 2;
  const at = (list: Shape, value: number): number[] => list.map((n, k) => (k === axis ? value : n));
  const count = Math.ceil(shape[axis]! / hole);
  const partShape = at(shape, count);
  const none = shape.map(() => 0);
  const ones = shape.map(() => 1);
  const apart = [...partShape.slice(0, axis + 1), 1, ...partShape.slice(axis + 1)];
  const parts = Array.from({ length: hole }, (_, phase) => {
    const cut = phaseOf(attr, i, phase, lhs.shape[axis]!, rhs.shape[axis]!, count);
    if (cut === null) return graph.constant(0, apart, dtype);
    const length = at(rhs.shape, cut.taps);
    const taken = { start: at(none, cut.first), length, step: at(ones, cut.step) };
    const kernel = graph.make('slice', taken, [rhs], length, rhs.dtype);
    return graph.reshape(phasesOf(graph, cut.attr, lhs, kernel, partShape, dtype, others), apart);
  });
  const together = apart.map((n, k) => (k === axis + 1 ? hole : n));
  const side = graph.make('concat', { axis: axis + 1 }, parts, together, dtype);
  const whole = graph.reshape(side, at(shape, count * hole));
  return graph.make('slice', { start: none, length: shape, step: ones }, [whole], shape, dtype);
}

/** Which elements of the kernel one phase takes along an axis, and its convolution; null where it takes none. */
interface Cut {
  readonly first: number;
  readonly step: number;
  readonly taps: number;
  readonly attr: ConvAttr;
}

function phaseOf(attr: ConvAttr, i: number, phase: number, n: number, taps: number, count: number): Cut | null {
  const hole = attr.lhsDilation[i]!;
  const apart = attr.rhsDilation[i]!;
  const low = attr.padLow[i]!;
  // Position `phase + first * apart - low` of the input with holes is an element of it, `step` elements later the next.
  const meets = (k: number): boolean => (phase + k * apart - low) % hole === 0;
  let first = 0;
  while (first < taps && !meets(first)) first++;
  if (first >= taps) return null;
  let step = 1;
  while ((step * apart) % hole !== 0) step++;
  const own = Math.ceil((taps - first) / step);
  const next = (step * apart) / hole;
  const padLow = -(phase + first * apart - low) / hole + 0;
  const padHigh = count + dilated(own, next) - 1 - n - padLow;
  const set = (list: readonly number[], value: number): number[] => list.map((x, k) => (k === i ? value : x));
  return {
    first,
    step,
    taps: own,
    attr: {
      ...attr,
      lhsDilation: set(attr.lhsDilation, 1),
      rhsDilation: set(attr.rhsDilation, next),
      padLow: set(attr.padLow, padLow),
      padHigh: set(attr.padHigh, padHigh),
    },
  };
}
