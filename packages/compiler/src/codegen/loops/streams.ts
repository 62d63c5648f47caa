/**
 * Loops over more memory than caches hold read several parts of it concurrently.
 *
 * If a cache line takes four 16-byte loads, one sequential stream does not keep enough lines in flight for a core's full
 * bandwidth; two do. Measured on an AMD EPYC in WebAssembly: the sum of 64 MB at 21 GB/s instead of 17 (C with AVX: 20), a chain
 * of five operations over three such arrays 6 % faster. Reductions read four rows, 256 bytes of each in turn, because one row
 * alone fills the registers with its accumulators. The order of additions does not change. With vectors of 32 bytes and more,
 * one row after the other is faster.
 */
import {
  leastAccesses,
  leastRow,
  leastRowsBeside,
  mostSums,
  mostWork,
  streamChunk,
  interleavedRows,
  widestInterleaved,
} from '../costs/cpu.ts';
import { type Binder, type NestWork, workOf } from './work.ts';
import { countOf, endsAlone, isMultiple, isSized, type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { CodegenCaps } from '../lowering.ts';
import { cutRest, type LoopNest, split } from './transforms.ts';
import { isPosition } from '../../ir/node.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';

/** Elementwise work over much memory: every access is contiguous along `r` or independent of it. */
function isStreamed(work: NestWork, r: Range): boolean {
  const n = r.arg.extent;
  if (n < 2 * streamChunk || work.binders.length > 0 || !endsAlone(r) || work.total() > n * mostWork) return false;
  return (work.accessesAlong(r) ?? 0) * n >= leastAccesses;
}

/** Cuts a remainder off streamed loops, so that the first part is whole chunks. */
export function cutStreams(nest: LoopNest): LoopNest {
  const r = onlyLoop(nest);
  const ragged = r !== undefined && !isMultiple(r, streamChunk);
  return ragged && isStreamed(workOf(nest), r) ? cutRest(nest, r, streamChunk) : nest;
}

/** The only loop of all stores, if there is one. */
function onlyLoop({ stores }: LoopNest): Range | undefined {
  const r = stores[0]?.ranges[0];
  return stores.every((s) => s.ranges.length === 1 && s.ranges[0] === r) ? r : undefined;
}

/** `r` in chunks of two streams, if its loop is streamed and consists of whole chunks; else null. */
export function streamed(nest: LoopNest, work: NestWork, r: Range): LoopNest | null {
  if (!isMultiple(r, streamChunk) || !isStreamed(work, r)) return null;
  const chunks = split(nest, r, streamChunk, 'grid', 'vector');
  return split(chunks, chunks.loopsOf(r)[1]!, streamChunk / 2, 'unroll', 'vector');
}

/** True if the rows `r` of one long reduction are read concurrently. */
export function canInterleaveRows(work: NestWork, r: Range, caps: CodegenCaps): boolean {
  if (caps.vectorBytes > widestInterleaved) return false;
  const [binder, ...others] = work.binders;
  if (binder === undefined || others.length > 0 || work.stores.length !== 1 || r.arg.extent < interleavedRows)
    return false;
  const n = sizeOf(binder.own);
  if (binder.node.op !== 'REDUCE' || binder.work < leastRow || binder.work > n * 4) return false;
  const along = binder.own.at(-1)!;
  return binder.free.includes(r) && work.accessesAlong(along) === 1 && work.total() >= leastAccesses;
}

/** Cuts a remainder off rows that are read in turn, so that the number of rows divides evenly. */
export function cutRows(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const r = onlyLoop(nest);
  if (r === undefined || !endsAlone(r) || isMultiple(r, interleavedRows) || !canInterleaveRows(workOf(nest), r, caps))
    return nest;
  return cutRest(nest, r, interleavedRows);
}

/** The rows `r` in groups of `chunk`, within those that are interleaved; extent and chunk are multiples of their number. */
export function interleaveRows(nest: LoopNest, r: Range, chunk: number): LoopNest {
  const within = split(nest, r, interleavedRows, 'serial', 'interleaved');
  return split(within, within.loopsOf(r)[0]!, chunk / interleavedRows, 'grid', 'serial');
}

/**
 * Several rows of few columns at once: with one row, a vector or two of sums would wait for each other. Unrolls the loops of
 * reductions over rows whose results are a few vectors along `along`.
 */
export function besideRows(
  nest: LoopNest,
  work: NestWork,
  along: ReadonlySet<Range>,
  lanes: number,
  { lowering }: CodegenCaps,
): LoopNest {
  let now = nest;
  const rowsOf = ({ node, own, free }: Binder): Range | null => {
    const columns = free.find((r) => along.has(r));
    if (node.op !== 'REDUCE' || isPosition(node) || columns === undefined) return null;
    if (!endsAlone(columns) || countOf(columns).least >= 4 * lanes) return null;
    const row = own.at(-1)!;
    return row.arg.extent >= leastRowsBeside && endsAlone(row) ? row : null;
  };
  const sized = new Map<Range, number>();
  for (const binder of work.binders) {
    const row = rowsOf(binder);
    if (row === null || now.changes?.has(row) || sized.has(row)) continue;
    const sharing = work.binders.filter((b) => b.own.includes(row));
    if (sharing.some((b) => rowsOf(b) !== row)) continue;
    const columns = binder.free.find((r) => along.has(r))!;
    const sums = Math.ceil(countOf(columns).least / lanes) * sharing.length * joined(binder, columns);
    const counts = [4, 3, 2].filter((n) => sums * n <= mostSums);
    const count = counts.find((n) => isMultiple(row, n));
    if (count !== undefined) now = split(now, row, count, row.arg.kind, 'unroll');
    else if (isSized(row) && counts.length > 0 && sharing.every(isWide)) sized.set(row, counts[0]!);
  }
  return sized.size === 0 ? now : (lowering.rare?.()?.rowsAndRest(now, work, sized) ?? now);
}

/** How many short rows that end at a size are taken at a time. */
function joined({ free }: Binder, columns: Range): number {
  return isSized(columns) ? sizeOf(free.filter((r) => r.arg.kind === 'unroll')) : 1;
}

/** True if parts of the result are not rounded. */
function isWide({ node }: Binder): boolean {
  return dtypeInfo[node.dtype as DType].bytes >= 4;
}
