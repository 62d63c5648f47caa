/**
 * Loops over more memory than caches hold read several parts of it side by side.
 *
 * One sequential stream does not keep enough cache lines on their way for a core's full bandwidth when a line takes four
 * 16-byte loads; two do. Measured on an AMD EPYC in WebAssembly: the sum of 64 MB at 21 GB/s instead of 17 (C with AVX:
 * 20), a chain of five operations over three such arrays 6 % faster. Reductions read four rows, 256 bytes of each in turn: one row
 * alone fills the registers with its accumulators. The order of additions stays as it was.
 */
import { type Binder, NestWork } from './work.ts';
import type { Exprs } from '../../ir/expr.ts';
import { assumeBounds } from '../../ir/node.ts';
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { LoopStore } from '../../ir/ir.ts';
import { cutAt } from './segments.ts';
import type { Replacement } from '../../ir/rewrite.ts';

/** Elements of a group of streamed elementwise work; the two streams are its halves, eight pages apart. */
const streamChunk = 16384;
/** Accesses of a nest above which its memory is taken for larger than the caches. */
const leastAccesses = 2 ** 21;
/** Operations for an element above which arithmetic, not memory, takes the time. */
const mostWork = 16;
/** Work of a row worth reading beside its neighbours. */
const leastRow = 2048;
/** Rows side by side. */
export const turnRows = 4;

/** Elementwise work over much memory: every access runs along `r` or does not depend on it. */
function isStreamed(work: NestWork, r: Range): boolean {
  const n = r.arg.extent;
  if (n < 2 * streamChunk || work.binders.length > 0 || r.src.length > 0 || work.total() > n * mostWork) return false;
  return (work.accessesAlong(r) ?? 0) * n >= leastAccesses;
}

/** Cuts a rest off streamed loops, so that the first part is whole chunks. */
export function cutStreams(stores: readonly LoopStore[], e: Exprs): readonly LoopStore[] {
  const r = stores[0]?.ranges[0];
  if (r === undefined || stores.some((s) => s.ranges.length !== 1 || s.ranges[0] !== r)) return stores;
  const rest = r.arg.extent % streamChunk;
  if (rest === 0 || !isStreamed(new NestWork(stores), r)) return stores;
  return cutAt(stores, r, [r.arg.extent - rest], e);
}

/** `r` in chunks of two streams, if its loop is streamed and made of whole chunks. */
export function streamed(work: NestWork, r: Range, e: Exprs): Replacement | null {
  if (r.arg.extent % streamChunk !== 0 || !isStreamed(work, r)) return null;
  const half = streamChunk / 2;
  const grid = e.range(r.arg.extent / streamChunk, 'grid');
  const inner = e.range(half, 'vector');
  const stream = e.range(2, 'unroll');
  const start = e.add(e.mul(grid, streamChunk), e.mul(stream, half));
  return { value: e.add(start, inner), ranges: [grid, stream, inner] };
}

/** True if the rows `r` of one long reduction are read side by side. */
export function rowsTakeTurns(work: NestWork, r: Range): boolean {
  const [binder, ...others] = work.binders;
  if (binder === undefined || others.length > 0 || work.stores.length !== 1 || r.arg.extent < turnRows) return false;
  const n = sizeOf(binder.own);
  if (binder.node.op !== 'REDUCE' || binder.work < leastRow || binder.work > n * 4) return false;
  const along = binder.own.at(-1) as Range;
  return binder.free.includes(r) && work.accessesAlong(along) === 1 && work.total() >= leastAccesses;
}

/** Cuts a rest off rows that take turns, so that they are so many at every turn. */
export function cutRows(stores: readonly LoopStore[], e: Exprs): readonly LoopStore[] {
  const r = stores[0]?.ranges[0];
  const rest = (r?.arg.extent ?? 0) % turnRows;
  if (r === undefined || r.src.length > 0 || stores[0]?.ranges.length !== 1 || rest === 0) return stores;
  return rowsTakeTurns(new NestWork(stores), r) ? cutAt(stores, r, [r.arg.extent - rest], e) : stores;
}

/** `r` as grid * chunk + inner * turnRows + row, the rows in turns; extent and chunk are multiples of that. */
export function inTurns(e: Exprs, r: Range, chunk: number): Replacement {
  const row = e.range(turnRows, 'turn');
  const { value, ranges } = chunked(e, r.arg.extent / turnRows, chunk / turnRows, 'serial');
  return { value: e.add(e.mul(value, turnRows), row), ranges: [...ranges, row] };
}

/** Vectors of sums that are computed side by side at most, and rows that are worth it. */
const mostSums = 6;
const leastRows = 16;

/**
 * Rows of few columns side by side: a vector or two of sums alone would wait for each other, row after row. What to put for loops of
 * reductions over rows whose results are a few vectors along `along`.
 */
export function besideRows(
  work: NestWork,
  along: ReadonlySet<Range>,
  lanes: number,
  e: Exprs,
): Map<Range, Replacement> {
  const changes = new Map<Range, Replacement>();
  const rowsOf = ({ node, own, free }: Binder): Range | null => {
    const op = node.op === 'REDUCE' ? node.arg.op : null;
    const columns = free.find((r) => along.has(r));
    if (op === null || op === 'argmax' || op === 'argmin' || columns === undefined) return null;
    if (columns.arg.extent >= 4 * lanes || columns.src.length > 0) return null;
    const row = own.at(-1) as Range;
    return row.arg.extent >= leastRows && row.src.length === 0 ? row : null;
  };
  for (const binder of work.binders) {
    const row = rowsOf(binder);
    if (row === null || changes.has(row)) continue;
    const sharing = work.binders.filter((b) => b.own.includes(row));
    if (sharing.some((b) => rowsOf(b) !== row)) continue;
    const columns = binder.free.find((r) => along.has(r)) as Range;
    const sums = Math.ceil(columns.arg.extent / lanes) * sharing.length;
    const count = [4, 3, 2].find((n) => sums * n <= mostSums && row.arg.extent % n === 0);
    if (count === undefined) continue;
    const [outer, beside] = [e.range(row.arg.extent / count, row.arg.kind), e.range(count, 'unroll')];
    changes.set(row, { value: e.add(e.mul(outer, count), beside), ranges: [outer, beside] });
  }
  return changes;
}

/** `n` iterations as grid * chunk + inner; the last chunk may be shorter. */
export function chunked(e: Exprs, n: number, chunk: number, kind: 'vector' | 'column' | 'serial'): Replacement {
  const groups = Math.ceil(n / chunk);
  const grid = e.range(groups, 'grid');
  if (chunk === 1) return { value: grid, ranges: [grid] };
  const start = e.mul(grid, chunk);
  const limit = n % chunk === 0 ? undefined : e.min(e.sub(n, start), chunk);
  if (limit !== undefined) assumeBounds(limit, 1, chunk);
  const inner = e.range(chunk, kind, limit);
  const value = e.add(start, inner);
  assumeBounds(value, 0, n - 1);
  return { value, ranges: [grid, inner] };
}
