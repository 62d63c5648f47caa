/**
 * Large reductions that the planner's graph replaces by two.
 *
 * A large reduction with few results becomes two: partial results of a fixed number of chunks, then their combination.
 * The split depends on shapes alone, never on threads or devices, so every engine computes the same bits. The second
 * reduction may fuse with the users of the result. Pages load this with the rare forms (planner/rare/).
 */
import type { Attrs } from '../../graph/node.ts';
import { dropAxes } from '@polygrad/compiler/shape/axes';
import { isSmallFloat, neutral } from '@polygrad/compiler/shape/dtype';
import type { Shape } from '@polygrad/compiler/shape/view';
import {
  isPlanOp,
  longColumns,
  manyResults,
  type PlanGraph,
  type PlanNode,
  SizesRefused,
  splitLeast,
} from './plan-graph.ts';

type ReduceAttr = Attrs['reduce'];

/** No chunk is smaller than this. */
export const chunkLeast = 512;
/** With this many partial results (chunks times results) any number of threads is busy. */
export const enough = 1024;

/** For results in columns: the elements of a column block that are enough work for a group, and how many groups are enough. */
const columnChunk = longColumns / 4;
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
export function staysWhole(graph: PlanGraph, x: PlanNode, axes: readonly number[], size: number): boolean {
  if (!graph.sizedAmong(x.shape, axes)) return false;
  const isLong = x.size / size >= longColumns;
  const isLarge = graph.size!.capacities.length > 1 && x.size >= longColumns && isCut(x, axes, size);
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

export function runsOf(shape: Shape, axes: readonly number[]): Run[] {
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
 * down the rows (codegen/loops/columns.ts).
 */
function fewGroupsOfColumns(x: PlanNode, axes: readonly number[], size: number): boolean {
  const last = x.shape.length - 1;
  const width = x.shape[last]!;
  if (axes.includes(last) || width < leastWidth || x.size < longColumns) return false;
  const groups = (size / width) * Math.ceil(width / widest);
  return groups < enoughGroups && x.shape[axes[0]!]! >= leastWidth && runsAlong(x, last);
}

/** False if the axis is known not to be contiguous in memory. */
function runsAlong(x: PlanNode, axis: number): boolean {
  if (x.leaf !== null) return x.leaf.strides[axis] === 1;
  if (isPlanOp(x, 'permute')) return x.attr.axes[axis] === axis;
  return x.src.every((s) => s.shape.length !== x.shape.length || s.shape[axis] !== x.shape[axis] || runsAlong(s, axis));
}

/** The two-step form of a reduction, or null if it is better left whole. Partial sums of 16-bit floats stay float32 to the end. */
export function splitReduce(
  graph: PlanGraph,
  x: PlanNode,
  attr: ReduceAttr,
  shape: Shape,
  size: number,
): PlanNode | null {
  if ((attr.op !== 'sum' && attr.op !== 'prod') || !isSmallFloat(x.dtype))
    return inTwoSteps(graph, x, attr, shape, size);
  const { dtype } = x;
  const wide = graph.make('cast', { dtype: 'float32' }, [x], x.shape, 'float32');
  const split = inTwoSteps(graph, wide, attr, shape, size);
  return split === null ? null : graph.make('cast', { dtype }, [split], shape, dtype);
}

function inTwoSteps(graph: PlanGraph, x: PlanNode, attr: ReduceAttr, shape: Shape, size: number): PlanNode | null {
  if (staysWhole(graph, x, attr.axes, size) || !isCut(x, attr.axes, size)) return null;
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
export function inChunks(
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

/** A number of chunks near the target, preferably a divisor of the extent. */
export function chunkCount(extent: number, target: number): number {
  if (extent <= target) return extent;
  for (let n = target; n * 2 > target && n > 1; n--) if (extent % n === 0) return n;
  for (let n = target + 1; n < target * 2; n++) if (extent % n === 0) return n;
  return target;
}
