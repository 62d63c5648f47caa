/**
 * Convolutions of a dilated input (zeros between its elements) as convolutions of the input itself.
 *
 * Transposed convolutions, and gradients with respect to the input of a strided convolution, are of this kind. At any output only one
 * kernel element in `hole` (the dilation) meets an element of the input; which ones depends on the output's position
 * modulo `hole`. So the outputs with one remainder (a phase) are a convolution of the input with every n-th element of
 * the kernel. The other products are with zeros: three of four for strides of two in two dimensions.
 * Each phase is a convolution of its own, or all are features of one where the engine brings that along (phases-as-features.ts). Pages load this with the first
 * that is worth it.
 */
import type { ConvAttr } from '../../graph/node.ts';
import { dilated } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import type { PlanGraph, PlanNode } from '../capture/plan-graph.ts';

/** More phases than this make too many kernels. */
const mostPhases = 16;

/** The same convolution without dilation of its input along some axes, or null if it is better left whole. */
export function splitDilated(
  graph: PlanGraph,
  attr: ConvAttr,
  [lhs, rhs]: readonly [PlanNode, PlanNode],
  shape: Shape,
  dtype: DType,
  axes: readonly number[],
): PlanNode | null {
  // A phase that meets no element of the kernel is zeros.
  const kernels = axes.reduce((n, i) => n * Math.min(attr.lhsDilation[i]!, rhs.shape[i + 2]!), 1);
  const isMany = kernels > mostPhases;
  const together = graph.phases?.(graph, attr, [lhs, rhs], shape, dtype, axes, isMany) ?? null;
  if (isMany || together !== null) return together;
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
export function inMemory(graph: PlanGraph, kernel: PlanNode, results: number): PlanNode {
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
