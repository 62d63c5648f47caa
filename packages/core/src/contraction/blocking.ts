/**
 * What a group computes: cuts of the loops around the tiles, and of the sum where there are too few tiles.
 *
 * Decided by shapes alone, so that results do not depend on the number of threads.
 */
import {
  tileGroupWork,
  mostGroups,
  fewGroups,
  leastWork,
  cacheBytes,
  mostCopiedTiles,
  enoughTiles,
  stripBytes,
  partBytes,
} from '../codegen/costs/cpu.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { Block } from './cover.ts';

/** How many iterations of each loop a group takes; the whole extent where a loop is not cut. */
export interface GroupPlan {
  readonly outer: readonly number[];
  readonly rows: number;
  readonly columns: number;
}

/** Tiles of columns that a group copies, of so many: whole cache lines, and groups enough. */
export function copiedTiles(tiles: number): number {
  return tiles < 64 ? 2 : mostCopiedTiles;
}

function even(extent: number, parts: number): number {
  return Math.ceil(extent / Math.min(extent, Math.max(1, parts)));
}

/** The same for about that many parts: 33 iterations in 32 parts are 33 of one, not 17 of two that end far apart. */
function about(extent: number, parts: number): number {
  return Math.max(1, Math.round(extent / Math.max(1, parts)));
}

/**
 * Cuts loops into groups. `tileWork`: operations of one tile; `columnBytes`: bytes of the columns' factor that one tile of
 * columns reads; `extents`: loops around the tiles.
 */
export function planGroups(
  extents: readonly number[],
  rowTiles: number,
  columnTiles: number,
  tileWork: number,
  columnBytes: number,
): GroupPlan {
  const total = extents.reduce((n, x) => n * x, rowTiles * columnTiles * tileWork);
  const few = Math.min(fewGroups, Math.floor(total / leastWork));
  const wanted = Math.max(1, few, Math.min(mostGroups, Math.floor(total / tileGroupWork)));
  const most = Math.max(1, Math.floor(cacheBytes / columnBytes));
  let columns = even(columnTiles, Math.ceil(columnTiles / most));
  let groups = Math.ceil(columnTiles / columns);
  const outer = extents.map((extent) => {
    if (groups >= wanted) return extent;
    const parts = extent * groups <= 4 * wanted ? extent : Math.ceil(wanted / groups);
    const chunk = even(extent, parts);
    groups *= Math.ceil(extent / chunk);
    return chunk;
  });
  const rows = about(rowTiles, Math.ceil(wanted / groups));
  groups *= Math.ceil(rowTiles / rows);
  if (groups < wanted) {
    const now = Math.ceil(columnTiles / columns);
    columns = even(columnTiles, now * Math.ceil(wanted / groups));
  }
  return { outer, rows, columns };
}

/**
 * The groups of blocks of columns that are computed together: each takes some rows of all of them, so that no two write elements of one
 * row, which share cache lines. Null where rows are not cut alike, or columns are better cut. `depth`: products of a sum.
 */
export function planTogether(
  extents: readonly number[],
  blocks: readonly Block[],
  depth: number,
  bytes: number,
): GroupPlan | null {
  const [{ rows }] = blocks as [Block];
  const width = blocks.reduce((n, { columns }) => n + columns.count * columns.width, 0);
  if (blocks.length < 2 || blocks.some((b) => b.rows !== rows) || width * depth * bytes > cacheBytes) return null;
  return planGroups(extents, rows.count, 1, 2 * depth * rows.width * width, width * depth * bytes);
}

/** A loop of the sum taken in parts, each by groups of its own. */
export interface Split {
  readonly range: Range;
  readonly chunk: number;
  /** Which part: 0 .. number of parts - 1. */
  readonly part: Range;
}

/** What a split is decided by. */
export interface SplitFacts {
  /** Tiles of the whole contraction. */
  readonly tiles: number;
  readonly results: number;
  /** Operations. */
  readonly work: number;
  /** Bytes of both factors that one tile reads, and bytes of both factors. */
  readonly tileBytes: number;
  readonly bytes: number;
}

/**
 * Splits the sum where there are too few tiles for several threads, or where every tile would stream through more than
 * caches hold and the results are few. It is the loop with the largest steps in memory, so a part reads a part of memory.
 */
export function planSplit(
  e: Exprs,
  k: readonly Range[],
  strides: readonly ReadonlyMap<Range, number>[],
  { tiles, results, work, tileBytes, bytes }: SplitFacts,
): Split | null {
  const reach = (r: Range): number => strides.reduce((n, s) => n + Math.abs(s.get(r) ?? 0), 0);
  const [range] = k.filter((r) => r.arg.extent >= 2).sort((x, y) => reach(y) - reach(x));
  if (range === undefined) return null;
  const { extent } = range.arg;
  const wanted = Math.min(enoughTiles, Math.floor(work / tileGroupWork));
  const forThreads = tiles * 2 > wanted ? 1 : Math.ceil(wanted / tiles);
  // Each part stores its results and they are read again: at most a few hundredths of the time.
  const most = Math.floor(work / (3000 * results));
  const forCaches = tileBytes < stripBytes ? 1 : Math.min(most, Math.ceil(bytes / partBytes));
  const chunk = even(extent, Math.max(forThreads, forCaches));
  const parts = Math.ceil(extent / chunk);
  return parts < 2 ? null : { range, chunk, part: e.range(parts) };
}
