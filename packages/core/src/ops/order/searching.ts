/**
 * Positions of values among sorted ones, histograms, and operations whose result has a size that depends on data. The latter (nonZero, maskedSelect,
 * unique) are asynchronous: they read that size back first. NaN is greater than every number, as in sorting.ts.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { gatherPrimitive, scanPrimitive, scatterAddPrimitive, scatterPrimitive } from '../../primitives/indexing.ts';
import { checkList } from '@polygrad/compiler/shape/axes';
import { dtypeInfo, isFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given, operands } from '../../tensor/operand.ts';
import { keep } from '../../tensor/scope.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { orderOf, updatesFor } from '../indexing/index-argument.ts';

/** Options of searchSorted and bucketize. */
export interface SearchOptions {
  /** Behind equal elements instead of in front of them. Default false. */
  readonly right?: boolean;
}

/** Places of values [lines, m] in sorted lines [1 or lines, n], int32 from 0 to n: a binary search without branches. */
function places(sorted: Node, values: Node, right: boolean): Node {
  const [rows, n] = sorted.shape as [number, number];
  const int = (value: number): Node => p.constant(value, 'int32');
  const flat = p.reshape(sorted, [rows * n]);
  const lines = values.shape[0]!;
  const row = rows === 1 ? int(0) : p.reshape(p.mul(p.iota(lines), int(n)), [lines, 1]);
  const float = isFloat(values.dtype);
  const nan = float ? p.unary('isNaN', values) : null;
  let place: Node = p.constant(0, 'int32', values.shape);
  if (n === 0) return place;
  for (let step = 2 ** Math.floor(Math.log2(n)); step >= 1; step /= 2) {
    const next = p.add(place, int(step));
    const at = p.add(p.sub(p.binary('minimum', next, int(n)), int(1)), row);
    const other = makeNode(gatherPrimitive, [flat, at], { axis: 0 });
    let before = right ? p.le(other, values) : p.lt(other, values);
    if (nan !== null)
      before = p.binary('or', before, right ? nan : p.binary('and', nan, p.not(p.unary('isNaN', other))));
    place = p.where(p.binary('and', before, p.le(next, int(n))), next, place);
  }
  return place;
}

function searched(op: string, sorted: Tensor, values: TensorLike, options: SearchOptions): Tensor {
  checkNames(op, options, 'right?');
  const [list, wanted] = operands(sorted, values);
  if (list.dtype === 'bool')
    throw new DTypeError(op, 'dtype not accepted: bool; needs numbers; convert with cast()', ['bool']);
  const rank = list.shape.length;
  if (rank === 0)
    throw new ShapeError(op, say`sorted values have shape ${showShape(list.shape)}: needs an axis`, [list.shape]);
  const n = list.shape[rank - 1]!;
  const right = options.right ?? false;
  const lead = list.shape.slice(0, -1);
  if (rank === 1) {
    const flat = p.reshape(wanted, [1, sizeOf(wanted.shape)]);
    return wrap(p.reshape(places(p.reshape(list, [1, n]), flat, right), wanted.shape));
  }
  if (wanted.shape.length !== rank || lead.some((size, i) => size !== wanted.shape[i]))
    throw new ShapeError(
      op,
      say`shapes do not fit: sorted ${showShape(list.shape)} and values ${showShape(wanted.shape)}; all sizes but the last must be equal`,
      [list.shape, wanted.shape],
    );
  const lines = sizeOf(lead);
  const many = wanted.shape[rank - 1]!;
  const found = places(p.reshape(list, [lines, n]), p.reshape(wanted, [lines, many]), right);
  return wrap(p.reshape(found, wanted.shape));
}

/**
 * Where values would be inserted into sorted ones so that they stay sorted. Source: PyTorch `searchsorted`, NumPy `searchsorted`.
 *
 * @param sorted increasing along the last axis: [n], or the leading sizes of `values` and n
 * @param values a number or tensor; meets `sorted` in their common dtype
 * @param options right (false)
 * @returns int32 from 0 to n, the shape of `values`
 * @throws ShapeError where the shapes do not fit; DTypeError for bool
 *
 * @example
 * searchSorted(tensor([1, 3, 5]), tensor([3, 4])); // [1, 2]
 */
export function searchSorted(sorted: Tensor, values: TensorLike, options: SearchOptions = {}): Tensor {
  return compose('searchSorted', () => searched('searchSorted', sorted, values, options));
}

/**
 * The number of the bucket each value falls in: i where boundaries[i-1] < value <= boundaries[i], with `right` where
 * boundaries[i-1] <= value < boundaries[i]. Source: PyTorch `bucketize`.
 *
 * @param values a number or tensor
 * @param boundaries increasing, [n]
 * @param options right (false)
 * @returns int32 from 0 to n, the shape of `values`
 * @throws ShapeError unless the boundaries have one axis; DTypeError for bool
 *
 * @example
 * bucketize(tensor([0, 3, 9]), tensor([1, 3, 5])); // [0, 1, 3]
 */
export function bucketize(values: TensorLike, boundaries: Tensor, options: SearchOptions = {}): Tensor {
  return compose('bucketize', () => {
    if (nodeOf(boundaries).shape.length !== 1)
      throw new ShapeError('bucketize', say`boundaries have shape ${showShape(boundaries.shape)}: needs one axis`, [
        boundaries.shape,
      ]);
    return searched('bucketize', boundaries, values, options);
  });
}

/** Options of histogram. */
export interface HistogramOptions {
  /** How many bins of equal width, or their edges in increasing order [bins + 1]. Default 10. */
  readonly bins?: number | Tensor;
  /** Lowest and highest edge; the smallest and the largest element if left out. */
  readonly range?: readonly [number, number];
  /** What each element counts, of the shape of x. Default 1. */
  readonly weights?: Tensor;
}

/** Options that ask for the edges of the bins too. */
export interface HistogramEdges {
  readonly returnEdges: true;
}

/**
 * How many elements lie between edges: bin i has those with edges[i] <= x < edges[i+1], the last one its upper edge too. Elements outside,
 * and NaN, are not counted. Source: NumPy `histogram`, PyTorch `histc`.
 *
 * @param x numbers of any shape; integers are binned as float32
 * @param options bins (10), range, weights; returnEdges: also the edges
 * @returns counts [bins] in the dtype of x (float32 for integers) or of the weights; with returnEdges: [counts, edges [bins + 1]]
 * @throws ArgumentError for bad bins or range; ShapeError for nothing without a range, or weights of another shape
 *
 * @example
 * histogram(tensor([1, 2, 2, 4]), { bins: 3 }); // [1, 2, 1]
 */
export function histogram(x: Tensor, options: HistogramOptions & HistogramEdges): [Tensor, Tensor];
export function histogram(x: Tensor, options?: HistogramOptions): Tensor;
export function histogram(
  x: Tensor,
  options: HistogramOptions & Partial<HistogramEdges> = {},
): Tensor | [Tensor, Tensor] {
  checkNames('histogram', options, 'bins range weights returnEdges?');
  return compose('histogram', () => {
    const { bins = 10, range, weights } = options;
    const node = p.stopGradient(floatOperand(x));
    const flat = p.reshape(node, [sizeOf(node.shape)]);
    const edges = typeof bins === 'number' ? evenEdges(flat, bins, range) : givenEdges(bins, flat);
    const count = edges.shape[0]! - 1;
    const int = (value: number): Node => p.constant(value, 'int32');
    const edgeAt = (at: Node): Node => makeNode(gatherPrimitive, [edges, at], { axis: 0 });
    const lowest = edgeAt(int(0));
    const highest = edgeAt(int(count));
    let bin: Node;
    if (typeof bins === 'number') {
      // By division, then corrected where rounding has crossed an edge.
      const scale = p.div(p.like(flat, count), p.sub(highest, lowest));
      const guess = p.unary('floor', p.mul(p.sub(flat, lowest), scale));
      const near = p.binary('minimum', p.binary('maximum', p.cast(guess, 'int32'), int(0)), int(count - 1));
      // Computing the edges again is faster than gathering them.
      const edge = (at: Node): Node => evenEdge(lowest, highest, p.cast(at, flat.dtype), count);
      const low = p.sub(near, p.cast(p.lt(flat, edge(near)), 'int32'));
      const safe = p.binary('maximum', low, int(0));
      const up = p.binary('and', p.le(edge(p.add(safe, int(1))), flat), p.lt(safe, int(count - 1)));
      bin = p.add(safe, p.cast(up, 'int32'));
    } else {
      const found = places(p.reshape(edges, [1, count + 1]), p.reshape(flat, [1, flat.shape[0]!]), true);
      bin = p.binary('minimum', p.sub(p.reshape(found, flat.shape), int(1)), int(count - 1));
    }
    const inside = p.binary('and', p.le(lowest, flat), p.le(flat, highest));
    // One more bin takes the values that are not counted.
    const where = p.where(inside, bin, int(count));
    const units =
      weights === undefined
        ? p.constant(1, 'int32', flat.shape)
        : p.reshape(updatesFor('histogram', nodeOf(weights), nodeOf(weights), node.shape), flat.shape);
    const base = p.constant(0, units.dtype, [count + 1]);
    const counted = makeNode(scatterAddPrimitive, [base, where, units], { axis: 0 });
    const kept = p.slice(counted, [0], [count], [1]);
    const counts = wrap(weights === undefined ? p.cast(kept, flat.dtype) : kept);
    return options.returnEdges ? [counts, wrap(edges)] : counts;
  });
}

function evenEdges(flat: Node, bins: number, range: readonly [number, number] | undefined): Node {
  if (!Number.isInteger(bins) || bins < 1)
    throw new ArgumentError('histogram', say`bad number of bins: ${bins}; must be a positive integer`);
  let [low, high]: Node[] = [];
  if (range === undefined) {
    if (flat.shape[0] === 0)
      throw new ShapeError('histogram', 'x is empty: 0 elements have no range; give one', [flat.shape]);
    low = p.reduce(flat, 'min', [0]);
    high = p.reduce(flat, 'max', [0]);
  } else {
    checkList('histogram', 'range', range, '[0, 1]');
    if (!Number.isFinite(range[0]) || !Number.isFinite(range[1]) || range[0] > range[1])
      throw new ArgumentError('histogram', say`bad range: ${range[0]} to ${range[1]}; must be finite and increasing`);
    const like = wrap(flat);
    low = nodeOf(given(range[0], like));
    high = nodeOf(given(range[1], like));
  }
  // A range without width gets one around it.
  const half = p.where(p.eq(low, high), p.like(flat, 0.5), p.like(flat, 0));
  const from = p.sub(low, half);
  const to = p.add(high, half);
  const even = evenEdge(from, to, p.cast(p.iota(bins + 1), flat.dtype), bins);
  // The last edge is the upper end itself.
  const last = p.eq(p.iota(bins + 1), p.constant(bins, 'int32'));
  return p.contiguous(p.where(last, to, even));
}

function givenEdges(edges: Tensor, flat: Node): Node {
  const node = nodeOf(edges);
  if (node.shape.length !== 1 || node.shape[0]! < 2)
    throw new ShapeError(
      'histogram',
      say`edges have shape ${showShape(node.shape)}: needs at least two along one axis`,
      [node.shape],
    );
  return p.cast(node, flat.dtype);
}

/** Edge `at` (a float) of evenly spaced ones. */
function evenEdge(from: Node, to: Node, at: Node, bins: number): Node {
  return p.add(from, p.mul(p.sub(to, from), p.div(at, p.like(at, bins))));
}

// Operations whose result has a size that depends on data. They are asynchronous: the size is read back first, everything else is
// computed where the data is. Gradients flow to the elements that were picked.

const int = (value: number): Node => p.constant(value, 'int32');

/** For flags [n]: how many are true up to each one. */
function counted(flags: Node): Node {
  return makeNode(scanPrimitive, [p.cast(flags, 'int32')], { op: 'sum', axis: 0, reverse: false });
}

/** The last element of a line as a separate tensor, to be read back. */
function lastOf(x: Node): Tensor {
  return wrap(p.reshape(p.slice(x, [x.shape[0]! - 1], [1], [1]), []));
}

/** `values` of the elements whose flag is true, in order; `ends` counts the flags, `count` is their number. */
function packed(flags: Node, ends: Node, values: Node, count: number): Node {
  // One more place takes all other values.
  const place = p.where(flags, p.sub(ends, int(1)), int(count));
  const base = p.constant(0, values.dtype, [count + 1]);
  const all = makeNode(scatterPrimitive, [base, place, values], { axis: 0, op: 'set' });
  return p.slice(all, [0], [count], [1]);
}

/** Row-major positions [count] of the elements whose flag is true. Disposes what it makes on the way. */
async function positionsOf(op: string, flags: Tensor): Promise<Tensor> {
  const n = flags.size;
  if (n === 0) return compose(op, () => wrap(p.constant(0, 'int32', [0])));
  const made = compose(op, () => {
    const ends = counted(p.reshape(nodeOf(flags), [n]));
    return { ends: keep(wrap(ends)), total: keep(lastOf(ends)) };
  });
  return whileHeld([made.ends, made.total], async () => {
    const count = await made.total.item();
    return compose(op, () => wrap(packed(p.reshape(nodeOf(flags), [n]), nodeOf(made.ends), p.iota(n), count)));
  });
}

/** A separate handle on the value, so that the caller may dispose theirs, or end the scope, during the wait. */
function held(x: Node): Tensor {
  return keep(wrap(p.identity(x)));
}

/** Runs what waits for data, and disposes what was made for it, also where the wait fails. */
async function whileHeld<T>(held: readonly Tensor[], body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } finally {
    for (const t of held) t.dispose();
  }
}

/**
 * Coordinates of the elements that are not 0, in row-major order. Asynchronous, because their number depends on data. Source: PyTorch `nonzero`.
 *
 * @param x tensor of any dtype; NaN is not 0
 * @returns int32 [count, x.ndim]
 *
 * @example
 * await nonZero(tensor([0, 3, 4])); // [[1], [2]]
 */
export async function nonZero(x: Tensor): Promise<Tensor> {
  const flags = compose('nonZero', () => held(p.cast(nodeOf(x), 'bool')));
  const { shape } = flags;
  const positions = await whileHeld([flags], () => positionsOf('nonZero', flags));
  const result = compose('nonZero', () => {
    let rest = nodeOf(positions);
    const count = rest.shape[0]!;
    const columns: Node[] = [];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const n = shape[axis]!;
      if (axis === 0) columns.unshift(rest);
      else {
        columns.unshift(p.binary('irem', rest, int(n)));
        rest = p.binary('idiv', rest, int(n));
      }
    }
    if (columns.length === 0) return wrap(p.constant(0, 'int32', [count, 0]));
    return wrap(
      p.concat(
        columns.map((column) => p.reshape(column, [count, 1])),
        1,
      ),
    );
  });
  positions.dispose();
  return result;
}

/**
 * The elements of x where the mask is true, in row-major order. Asynchronous, because their number depends on data. Source: PyTorch
 * `masked_select`.
 *
 * @param mask bool; broadcasts with x
 * @returns [count]
 * @throws DTypeError unless the mask is bool; ShapeError where the shapes do not broadcast
 *
 * @example
 * await maskedSelect(tensor([1, 2, 3]), tensor([true, false, true])); // [1, 3]
 */
export async function maskedSelect(x: Tensor, mask: Tensor): Promise<Tensor> {
  const made = compose('maskedSelect', () => {
    const flags = nodeOf(mask);
    if (flags.dtype !== 'bool')
      throw new DTypeError('maskedSelect', say`mask is ${flags.dtype}: needs bool; compare or cast first`, [
        flags.dtype,
      ]);
    const shape = broadcastShapes('maskedSelect', nodeOf(x).shape, flags.shape);
    return { data: held(nodeOf(x)), flags: held(p.broadcastTo(flags, shape)), shape };
  });
  return whileHeld([made.data, made.flags], async () => {
    const positions = await positionsOf('maskedSelect', made.flags);
    const result = compose('maskedSelect', () => {
      const flat = p.reshape(p.broadcastTo(nodeOf(made.data), made.shape), [sizeOf(made.shape)]);
      return wrap(makeNode(gatherPrimitive, [flat, nodeOf(positions)], { axis: 0 }));
    });
    positions.dispose();
    return result;
  });
}

/** Options of unique: what to return besides the values. */
export interface UniqueOptions {
  /** Where each value occurs first in the flattened x. */
  readonly returnIndices?: boolean;
  /** For each element of x, which value it is. */
  readonly returnInverse?: boolean;
  /** How often each value occurs. */
  readonly returnCounts?: boolean;
}

/** What unique found; all but the values only if asked for. Positions and counts are int32. */
export interface UniqueResult {
  readonly values: Tensor;
  readonly indices?: Tensor;
  readonly inverse?: Tensor;
  readonly counts?: Tensor;
}

/**
 * The different elements of x in increasing order; every NaN counts as different, 0 and -0 as equal. Asynchronous, because their number
 * depends on data. Source: Array API `unique_values`, `unique_all`.
 *
 * @param x tensor of any dtype and shape
 * @param options returnIndices, returnInverse, returnCounts: return an object instead, with these besides the values
 * @returns values [count]; or { values, indices [count], inverse (shape of x), counts [count] }
 *
 * @example
 * await unique(tensor([3, 1, 3])); // [1, 3]
 */
export async function unique(x: Tensor, options: UniqueOptions): Promise<UniqueResult>;
export async function unique(x: Tensor): Promise<Tensor>;
export async function unique(x: Tensor, options?: UniqueOptions): Promise<Tensor | UniqueResult> {
  checkNames('unique', options, 'returnIndices? returnInverse? returnCounts?');
  const op = 'unique';
  const wanted = options ?? {};
  const flat = compose(op, () => held(p.reshape(nodeOf(x), [x.size])));
  const shape = [...x.shape];
  return whileHeld([flat], async () => {
    const table = await tableOf(op, flat);
    const found = await (table === null ? bySorting(op, flat, shape, wanted) : byTable(op, flat, shape, wanted, table));
    return options === undefined ? found.values : found;
  });
}

type Found = { -readonly [K in keyof UniqueResult]: UniqueResult[K] };

async function bySorting(op: string, x: Tensor, shape: number[], wanted: UniqueOptions): Promise<Found> {
  const n = x.size;
  const made = compose(op, () => {
    const flat = nodeOf(x);
    const order = orderOf(flat, 0, false);
    const sorted = makeNode(gatherPrimitive, [flat, order], { axis: 0 });
    const first = p.eq(p.iota(n), int(0));
    const before = n === 0 ? sorted : p.previous(sorted, 0, false, 0);
    const fresh = p.binary('or', first, p.not(p.eq(sorted, before)));
    const ends = counted(fresh);
    // Handles on the sort and the scan themselves: what is read keeps both.
    const kept = [keep(wrap(order)), keep(wrap(ends))];
    return { kept, total: n === 0 ? null : keep(lastOf(ends)) };
  });
  const { kept, total } = made;
  return whileHeld(total === null ? kept : [...kept, total], async () => {
    const count = total === null ? 0 : await total.item();
    return compose(op, () => {
      const flat = nodeOf(x);
      const [order, ends] = kept.map((t) => nodeOf(t)) as [Node, Node];
      const fresh = p.not(p.eq(ends, p.previous(ends, 0, false, 0)));
      const indices = n === 0 ? p.constant(0, 'int32', [0]) : packed(fresh, ends, order, count);
      const found: Found = {
        values: wrap(n === 0 ? flat : makeNode(gatherPrimitive, [flat, indices], { axis: 0 })),
      };
      if (wanted.returnIndices) found.indices = wrap(indices);
      const ranks = p.sub(ends, int(1));
      if (wanted.returnInverse) {
        const base = p.constant(0, 'int32', [n]);
        found.inverse = wrap(
          p.reshape(n === 0 ? base : makeNode(scatterPrimitive, [base, order, ranks], { axis: 0, op: 'set' }), shape),
        );
      }
      if (wanted.returnCounts) {
        const base = p.constant(0, 'int32', [count]);
        found.counts = wrap(
          n === 0 ? base : makeNode(scatterAddPrimitive, [base, ranks, p.constant(1, 'int32', [n])], { axis: 0 }),
        );
      }
      return found;
    });
  });
}

// Integers close together, such as classes and tokens, are not sorted: each has a place in a table.

/** The least integer, and places of the table: a power of two, so that few plans do. */
interface Table {
  readonly low: number | bigint;
  readonly size: number;
}

/** Fewer elements are sorted at once. */
const leastInTable = 4096;

/** The table for elements [n]; null if sorting them is better. Of dtypes beyond 16 bits the ends are read. */
async function tableOf(op: string, x: Tensor): Promise<Table | null> {
  const { dtype, size: n } = x;
  const { kind, bytes } = dtypeInfo[dtype];
  if (kind === 'float' || n < leastInTable) return null;
  const fits = (low: number | bigint, range: number): Table | null =>
    range <= 2 * n && range < 2 ** 30 ? { low, size: 2 ** Math.ceil(Math.log2(range)) } : null;
  if (bytes < 4) return fits(kind === 'int' ? -(2 ** (8 * bytes - 1)) : 0, 2 ** (8 * bytes));
  const ends = compose(op, () => (['min', 'max'] as const).map((end) => keep(wrap(p.reduce(nodeOf(x), end, [0])))));
  return whileHeld(ends, async () => {
    const [low, high] = (await Promise.all(ends.map((end) => end.item()))) as [number | bigint, number | bigint];
    return fits(low, Number(BigInt(high) - BigInt(low)) + 1);
  });
}

async function byTable(
  op: string,
  x: Tensor,
  shape: number[],
  wanted: UniqueOptions,
  { low, size }: Table,
): Promise<Found> {
  const { dtype, size: n } = x;
  const wide = dtypeInfo[dtype].bytes < 4 ? 'int32' : dtype;
  const start = (): Node => p.scalar(low, wide);
  const placesOf = (): Node => p.cast(p.sub(p.cast(nodeOf(x), wide), start()), 'int32');
  const made = compose(op, () => {
    const places = placesOf();
    const zeros = p.constant(0, 'int32', [size]);
    const one = p.constant(1, 'int32', [n]);
    const counts = wanted.returnCounts
      ? makeNode(scatterAddPrimitive, [zeros, places, one], { axis: 0 })
      : makeNode(scatterPrimitive, [zeros, places, one], { axis: 0, op: 'set' });
    const ends = counted(p.lt(int(0), counts));
    return { kept: [keep(wrap(counts)), keep(wrap(ends))], total: keep(lastOf(ends)) };
  });
  const { kept, total } = made;
  return whileHeld([...kept, total], async () => {
    const count = await total.item();
    return compose(op, () => {
      const [counts, ends] = kept.map((t) => nodeOf(t)) as [Node, Node];
      const at = packed(p.lt(int(0), counts), ends, p.iota(size), count);
      const places = placesOf();
      const picked = (from: Node, index: Node): Node => makeNode(gatherPrimitive, [from, index], { axis: 0 });
      const found: Found = { values: wrap(p.cast(p.add(p.cast(at, wide), start()), dtype)) };
      if (wanted.returnIndices) {
        const none = p.constant(n, 'int32', [size]);
        const firsts = makeNode(scatterPrimitive, [none, places, p.iota(n)], { axis: 0, op: 'min' });
        found.indices = wrap(picked(firsts, at));
      }
      if (wanted.returnInverse) found.inverse = wrap(p.reshape(p.sub(picked(ends, places), int(1)), shape));
      if (wanted.returnCounts) found.counts = wrap(picked(counts, at));
      return found;
    });
  });
}
