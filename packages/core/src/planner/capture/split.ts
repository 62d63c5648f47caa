/**
 * Nodes that the planner's graph replaces by several: large reductions, and convolutions of dilated inputs (below).
 *
 * A large reduction with few results becomes two: partial results of a fixed number of chunks, then their combination.
 * The split depends on shapes alone, never on threads or devices, so every engine computes the same bits. The second
 * reduction may fuse with the users of the result.
 */
import type { Attrs, ConvAttr } from '../../graph/node.ts';
import { dilated, dropAxes } from '@polygrad/compiler/shape/axes';
import { type DType, neutral } from '@polygrad/compiler/shape/dtype';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { isPlanOp, type PlanGraph, type PlanNode, SizesRefused } from './plan-graph.ts';

type ReduceAttr = Attrs['reduce'];

/** Reductions below this many elements per result stay whole. */
const splitLeast = 8192;
/** No chunk is smaller than this. */
const chunkLeast = 512;
/** Arg-reductions over fewer elements stay whole: chunks store extremes and positions, which costs more on one thread. */
export const splitPositionsLeast: number = 2 ** 18;
/** With this many partial results (chunks times results) any number of threads is busy. */
const enough = 1024;
/** Results that are enough parallel work by themselves. */
const manyResults = 64;

/** For results in columns: the elements of a column block that are enough work for a group, and how many groups are enough. */
const columnChunk = 2 ** 18;
const mostColumnChunks = 32;
const enoughGroups = 16;
/** Fewer columns or rows than this gain nothing; also the columns of one group. */
const leastWidth = 32;
const widest = 4096;

/**
 * True for a reduction along a sized axis, which is not cut into chunks. A very long one gets its own plan: in one piece it is slower, and a sum
 * loses digits, as every element is added to one that grows. Many short ones lose nothing. Where several sizes change, a large one that would be cut
 * gets its own as well: otherwise tensors of all shapes would share the slower form.
 */
function staysWhole(graph: PlanGraph, x: PlanNode, axes: readonly number[], size: number): boolean {
  if (!graph.sizedAmong(x.shape, axes)) return false;
  const isLong = x.size / size >= 4 * columnChunk;
  const isLarge = graph.size!.capacities.length > 1 && x.size >= 4 * columnChunk && isCut(x, axes, size);
  if (isLong || isLarge) throw new SizesRefused(`a reduction of shape [${x.shape}]`);
  return true;
}

/** True if a reduction has few results and many elements of each, or columns that are few and long. */
function isCut(x: PlanNode, axes: readonly number[], size: number): boolean {
  return size >= manyResults ? fewGroupsOfColumns(x, axes, size) : x.size / size >= splitLeast;
}

/** Neighbouring reduced axes, which are split as one. */
interface Run {
  readonly first: number;
  readonly last: number;
  readonly extent: number;
}

function runsOf(shape: Shape, axes: readonly number[]): Run[] {
  const runs: Run[] = [];
  for (const axis of axes) {
    const previous = runs.at(-1);
    const n = shape[axis]!;
    if (previous !== undefined && previous.last === axis - 1)
      runs[runs.length - 1] = { first: previous.first, last: axis, extent: previous.extent * n };
    else runs.push({ first: axis, last: axis, extent: n });
  }
  return runs;
}

/**
 * True if the results are columns, and there are too few groups of them to keep threads busy. A group takes many columns at a time while it goes
 * down the rows (codegen/loops/streams.ts).
 */
function fewGroupsOfColumns(x: PlanNode, axes: readonly number[], size: number): boolean {
  const last = x.shape.length - 1;
  const width = x.shape[last]!;
  if (axes.includes(last) || width < leastWidth || x.size < 4 * columnChunk) return false;
  const groups = (size / width) * Math.ceil(width / widest);
  return groups < enoughGroups && x.shape[axes[0]!]! >= leastWidth && runsAlong(x, last);
}

/** False if the axis is known not to be contiguous in memory. */
function runsAlong(x: PlanNode, axis: number): boolean {
  if (x.leaf !== null) return x.leaf.strides[axis] === 1;
  if (isPlanOp(x, 'permute')) return x.attr.axes[axis] === axis;
  return x.src.every((s) => s.shape.length !== x.shape.length || s.shape[axis] !== x.shape[axis] || runsAlong(s, axis));
}

/** The two-step form of a reduction, or null if it is better left whole. */
export function splitReduce(
  graph: PlanGraph,
  x: PlanNode,
  attr: ReduceAttr,
  shape: Shape,
  size: number,
): PlanNode | null {
  if (size === 0 || staysWhole(graph, x, attr.axes, size) || !isCut(x, attr.axes, size)) return null;
  const total = x.size / size;
  const columns = size >= manyResults;
  const target = columns
    ? Math.min(mostColumnChunks, Math.floor(x.size / columnChunk))
    : Math.min(Math.floor(total / chunkLeast), Math.max(2, Math.ceil(enough / size)));
  const runs = runsOf(x.shape, attr.axes);
  const outer = runs[0]!;
  const whole = !columns && outer.extent >= 8 && outer.extent <= 2 * target && runs.length > 1;
  const run = whole || columns ? outer : runs.reduce((a, b) => (b.extent > a.extent ? b : a));
  const chunks = whole ? run.extent : chunkCount(run.extent, target);
  if (chunks < 2) return null;
  const length = Math.ceil(run.extent / chunks);

  const { value, axes, chunkAxis } = inChunks(graph, x, attr, run, chunks, length);
  const partial = graph.exactly('reduce', { ...attr, axes }, [value], dropAxes(value.shape, axes), x.dtype);
  partial.forced = true;
  return graph.exactly('reduce', { ...attr, axes: [chunkAxis] }, [partial], shape, x.dtype);
}

/** A source whose run is split into chunks, padded at the end with the neutral element. */
function inChunks(
  graph: PlanGraph,
  x: PlanNode,
  attr: Pick<ReduceAttr, 'op' | 'axes'>,
  run: Run,
  chunks: number,
  length: number,
): { readonly value: PlanNode; readonly axes: readonly number[]; readonly chunkAxis: number } {
  const merged = [...x.shape.slice(0, run.first), run.extent, ...x.shape.slice(run.last + 1)];
  let value = graph.reshape(x, merged);
  const missing = chunks * length - run.extent;
  if (missing > 0) {
    const high = merged.map((_, axis) => (axis === run.first ? missing : 0));
    const low = merged.map(() => 0);
    const filled = merged.map((n, axis) => n + high[axis]!);
    value = graph.make('pad', { low, high, value: neutral(attr.op, x.dtype) }, [value], filled, x.dtype);
  }
  value = graph.reshape(value, [...x.shape.slice(0, run.first), chunks, length, ...x.shape.slice(run.last + 1)]);
  const removed = run.last - run.first + 1;
  // Reduces every axis except the chunks.
  const axes: number[] = [];
  for (const axis of attr.axes) {
    if (axis < run.first) axes.push(axis);
    else if (axis > run.last) axes.push(axis - removed + 2);
  }
  axes.push(run.first + 1);
  axes.sort((a, b) => a - b);
  return { value, axes, chunkAxis: run.first - axes.filter((axis) => axis < run.first).length };
}

/**
 * The two-step form of a position of the greatest or least element, or null if it is better left whole: each chunk's position and
 * value, then the chunk that wins. Chunks are cut from the slowest axis, so that the first of equal elements lies in the first of
 * equal chunks.
 */
export function splitArgReduce(
  graph: PlanGraph,
  x: PlanNode,
  { op, axes: reduced }: Attrs['argReduce'],
  shape: Shape,
  size: number,
): PlanNode | null {
  const total = x.size / Math.max(1, size);
  if (size === 0 || size >= manyResults || total < splitPositionsLeast) return null;
  if (staysWhole(graph, x, reduced, size)) return null;
  const run = runsOf(x.shape, reduced)[0]!;
  const chunks = chunkCount(
    run.extent,
    Math.min(Math.floor(total / chunkLeast), Math.max(2, Math.ceil(enough / size))),
  );
  if (chunks < 2) return null;
  const length = Math.ceil(run.extent / chunks);
  const { value, axes, chunkAxis } = inChunks(graph, x, { op, axes: reduced }, run, chunks, length);
  const partial = dropAxes(value.shape, axes);
  const best = graph.exactly('reduce', { op, axes, ties: 'share' }, [value], partial, x.dtype);
  const at = graph.exactly('argReduce', { op, axes }, [value], partial, 'int32');
  best.forced = at.forced = true;
  // First the winning chunk, then the winning position in the whole source.
  const winner = graph.exactly('argReduce', { op, axes: [chunkAxis] }, [best], shape, 'int32');
  winner.forced = true;
  const kept = partial.map((n, axis) => (axis === chunkAxis ? 1 : n));
  const spread = graph.make('expand', { shape: partial }, [graph.reshape(winner, kept)], partial, 'int32');
  const line = partial.map((n, axis) => (axis === chunkAxis ? n : 1));
  const counted = graph.reshape(graph.make('iota', { length: chunks }, [], [chunks], 'int32'), line);
  const number = graph.make('expand', { shape: partial }, [counted], partial, 'int32');
  const step = graph.constant((total / run.extent) * length, partial, 'int32');
  const first = graph.make('mul', null, [number, step], partial, 'int32');
  const whole = graph.make('add', null, [first, at], partial, 'int32');
  const wins = graph.make('eq', null, [number, spread], partial, 'bool');
  const one = graph.make('where', null, [wins, whole, graph.constant(0, partial, 'int32')], partial, 'int32');
  return graph.exactly('reduce', { op: 'sum', axes: [chunkAxis], ties: 'share' }, [one], shape, 'int32');
}

/** A number of chunks near the target, preferably a divisor of the extent. */
function chunkCount(extent: number, target: number): number {
  if (extent <= target) return extent;
  for (let n = target; n * 2 > target && n > 1; n--) if (extent % n === 0) return n;
  for (let n = target + 1; n < target * 2; n++) if (extent % n === 0) return n;
  return target;
}

// Convolutions of a dilated input (zeros between its elements) as several convolutions of the input itself.
//
// Transposed convolutions, and gradients with respect to the input of a strided convolution, are of this kind. At any output only one
// kernel element in `hole` (the dilation) meets an element of the input; which ones depends on the output's position
// modulo `hole`. So the outputs with one remainder (a phase) are a convolution of the input with every n-th element of
// the kernel. The other products are with zeros: three of four for strides of two in two dimensions.

/** With fewer products with zeros than this, more kernels cost more than they save. */
const worthSplitting = 1 << 19;
/** More phases than this make too many kernels. */
const mostPhases = 16;

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
  const taps = sizeOf(rhs.shape.slice(1));
  if (phases === 1 || phases > mostPhases || sizeOf(shape) * taps * (1 - 1 / phases) < worthSplitting) return null;
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
  if (kernel.op !== 'slice' || results < worthCopying) return kernel;
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
