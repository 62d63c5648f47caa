/**
 * Large reductions with few results, in two steps: partial results of a fixed number of chunks, then their combination.
 *
 * The decomposition depends on shapes alone, never on threads or devices, so results are the same bits whoever computes
 * them. Only the graph changes here: the second step may fuse with whatever uses the result.
 */
import type { Attrs } from '../../graph/attrs.ts';
import { neutral } from '../../shape/dtype.ts';
import { dropAxes } from '../../shape/axes.ts';
import type { Shape } from '../../shape/view.ts';
import { isPlanOp, type PlanGraph, type PlanNode } from './plan-graph.ts';

type ReduceAttr = Attrs['reduce'];

/** Reductions below this many elements per result stay whole. */
export const splitLeast = 8192;
/** No chunk is smaller than this. */
const chunkLeast = 512;
/** Positions of extremes among fewer elements stay whole: their parts carry the extremes beside the positions, which one thread pays for. */
export const splitPositionsLeast: number = 2 ** 18;
/** Chunks times results that are enough for any number of threads. */
const enough = 1024;
/** Results that are enough parallel work by themselves. */
const manyResults = 64;

/** For results that are columns: rows of columns that are enough work for a group, and how many such groups are enough. */
const columnChunk = 2 ** 18;
const mostColumnChunks = 32;
const enoughGroups = 16;
/** Columns, and rows, below which nothing is gained; columns of one group. */
const leastWidth = 32;
const widest = 4096;

/** Neighbouring reduced axes: they count as one. */
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
 * True if the results are columns that a kernel takes many of at a time while it goes down the rows (codegen/loops/streams.ts), so
 * that there are too few groups of columns for threads to share.
 */
function fewGroupsOfColumns(x: PlanNode, { axes }: ReduceAttr, size: number): boolean {
  const last = x.shape.length - 1;
  const width = x.shape[last]!;
  if (axes.includes(last) || width < leastWidth || x.size < 4 * columnChunk) return false;
  const groups = (size / width) * Math.ceil(width / widest);
  return groups < enoughGroups && x.shape[axes[0]!]! >= leastWidth && runsAlong(x, last);
}

/** False if the axis is known not to be the one along which memory runs. */
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
  const total = x.size / Math.max(1, size);
  if (size === 0) return null;
  const columns = size >= manyResults;
  if (columns ? !fewGroupsOfColumns(x, attr, size) : total < splitLeast) return null;
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

/** A source whose run is split into chunks, filled up at the end with what changes nothing. */
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
  // Everything is reduced first but the chunks.
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
  // Of the chunks, the one that wins; of its positions, the one in the whole.
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

/** A number of chunks near the target, one that divides if there is one. */
function chunkCount(extent: number, target: number): number {
  if (extent <= target) return extent;
  for (let n = target; n * 2 > target && n > 1; n--) if (extent % n === 0) return n;
  for (let n = target + 1; n < target * 2; n++) if (extent % n === 0) return n;
  return target;
}
