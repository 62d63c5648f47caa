/**
 * Which part of a contraction a group computes: how the loops around the tiles are cut, and the sum too if there are few tiles.
 *
 * In: extents and costs. Out: `GroupPlan`, `Split` and `Cover`. They are decided by shapes alone, so that results do not
 * depend on the number of threads.
 */
import {
  enoughTiles,
  fewGroups,
  leastWork,
  mostCopiedTiles,
  mostGroups,
  partBytes,
  stripBytes,
  tileGroupWork,
} from '../codegen/costs/cpu.ts';
import { type Segment, type TileShape, columnSegments, rowSegment, whole, widenedRows, widens } from './tiles.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';

/** How many iterations of each loop a group takes; the whole extent where a loop is not cut. */
export interface GroupPlan {
  readonly outer: readonly number[];
  readonly rows: number;
  readonly columns: number;
}

/** How many tiles of columns a group copies, of this many: whole cache lines, and enough groups. */
export function copiedTiles(tiles: number): number {
  return tiles < 64 ? 2 : mostCopiedTiles;
}

function even(extent: number, parts: number): number {
  return Math.ceil(extent / Math.min(extent, Math.max(1, parts)));
}

/** A chunk size for about that many parts: 33 iterations in 32 parts become 33 parts of one. They do not become 17 of two, the last of them short. */
function about(extent: number, parts: number): number {
  return Math.max(1, Math.round(extent / Math.max(1, parts)));
}

/** The loops around the tiles of a nest. */
export interface LoopsAround {
  readonly extents: readonly number[];
  /** What a group may stream through repeatedly. */
  readonly cacheBytes: number;
  /** True if some loops end at a size given at dispatch. Capacities seldom divide evenly, and with one group too few rows would be cut as well. */
  readonly sized: boolean;
}

/** The tiles of a nest. */
export interface TileCounts {
  /** Tiles along rows and along columns. */
  readonly rows: number;
  readonly columns: number;
  /** Operations of one tile. */
  readonly work: number;
  /** Bytes of the columns' factor that one tile of columns reads. */
  readonly columnBytes: number;
  readonly mostGroups?: number | undefined;
  /** The least number of tiles along rows, where they end at a size given at dispatch. Columns are cut so that these make enough groups. */
  readonly leastRows?: number | undefined;
}

/** Cuts loops into groups. */
export function planGroups(
  { extents, cacheBytes, sized }: LoopsAround,
  {
    rows: rowTiles,
    columns: columnTiles,
    work: tileWork,
    columnBytes,
    mostGroups: mostWanted = mostGroups,
    leastRows: leastTiles = rowTiles,
  }: TileCounts,
): GroupPlan {
  const total = extents.reduce((n, x) => n * x, rowTiles * columnTiles * tileWork);
  const groupsFor = (work: number): number => {
    const few = Math.min(fewGroups, mostWanted, Math.floor(work / leastWork));
    return Math.max(1, few, Math.min(mostWanted, Math.floor(work / tileGroupWork)));
  };
  const leastWanted = groupsFor((total / rowTiles) * leastTiles);
  // Starting groups that have no work at the least size costs something too.
  const wanted = Math.round(Math.sqrt(groupsFor(total) * leastWanted));
  const most = Math.max(1, Math.floor(cacheBytes / columnBytes));
  let columns = even(columnTiles, Math.ceil(columnTiles / most));
  if (leastTiles < rowTiles) columns = Math.min(columns, even(columnTiles, Math.ceil(leastWanted / leastTiles)));
  let groups = Math.ceil(columnTiles / columns);
  const outer = extents.map((extent) => {
    if (groups >= wanted) return extent;
    const parts = extent * groups <= 4 * wanted ? extent : Math.ceil(wanted / groups);
    const chunk = (sized ? about : even)(extent, parts);
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
 * The groups for blocks of columns that are computed together. Each takes some rows of all blocks, so that no two groups write to
 * one row, whose elements share cache lines (false sharing). Null where the blocks cut rows differently, or where cutting columns is
 * better, unless they end at a size (`sized`): then the last tile is moved back over others, which its group computes as well. `depth`: products in a sum; `bytes`: of
 * a column.
 */
export function planTogether(
  around: LoopsAround,
  blocks: readonly Block[],
  depth: number,
  bytes: number,
  leastRows?: number,
  sized = false,
): GroupPlan | null {
  const [{ rows }] = blocks as [Block];
  const width = blocks.reduce((n, { columns }) => n + columns.count * columns.width, 0);
  const columnBytes = width * bytes;
  const whole = blocks.length < 2 || blocks.some((b) => b.rows !== rows) || columnBytes > around.cacheBytes;
  if (whole && !sized) return null;
  return planGroups(around, {
    rows: rows.count,
    columns: 1,
    work: 2 * depth * rows.width * width,
    columnBytes,
    leastRows,
  });
}

/** A loop of the sum cut into parts, each computed by separate groups. */
export interface Split {
  readonly range: Range;
  readonly chunk: number;
  /** The number of the part, from 0. */
  readonly part: Range;
}

/** What decides whether the sum is split. */
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
 * Splits the sum (split K) where there are too few tiles for several threads. So it does where there are few results and every
 * tile would stream through more than the caches hold. It cuts the loop with the largest steps in memory, so a part reads one part of memory.
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
  // Each part stores its results, and they are read again: that may take at most a few hundredths of the time.
  const most = Math.floor(work / (3000 * results));
  const forCaches = tileBytes < stripBytes ? 1 : Math.min(most, Math.ceil(bytes / partBytes));
  const chunk = even(extent, Math.max(forThreads, forCaches));
  const parts = Math.ceil(extent / chunk);
  return parts < 2 ? null : { range, chunk, part: e.range(parts) };
}

/**
 * Which blocks of tiles cover the results of a contraction: whole tiles, and remainders at the edges.
 *
 * Where both factors can be read in place, the remainder may have other tiles than the rest: the last rows get tiles as wide as
 * registers allow, and a single remaining column is computed with vectors along the sum.
 */

/** A range of rows and a range of columns, and their tiles. */
export interface Block {
  readonly rows: Segment;
  readonly columns: Segment;
  /** Lanes of columns. */
  readonly lanes: number;
  /** Vector lanes along the sum; else 1. */
  readonly sumLanes: number;
}

/** Blocks that cover all results. */
export interface Cover {
  readonly whole: readonly Block[];
  /** A remaining column of the same rows, if any; its factor is read in place. */
  readonly beside: readonly Block[];
  /** The remaining rows, with all columns; likewise read in place. */
  readonly last: readonly Block[];
}

/** How the factors are read. */
export interface CoverFacts {
  /** The columns' factor is in panels, padded at the end. */
  readonly padded: boolean;
  /** The rows' factor is not in panels and groups copy no columns, so rows may be cut differently for some columns. */
  readonly recut: boolean;
  /** Both factors can be read in place, and only columns are vectors. */
  readonly inPlace: boolean;
  /** The rows' factor is contiguous along the sum, which is one short loop. */
  readonly dots: boolean;
  readonly lanes: number;
  /** The sum runs over vectors everywhere. */
  readonly sums: boolean;
}

/** Vectors per tile for the last rows, by their number; three vectors are no faster than four. */
const lastVectors = [0, 6, 4];
/** Such tiles pay between these numbers of rows: with fewer, the last rows are most of the work; with more, hardly any. */
const [fewRows, manyRows] = [32, 192];

/** Covers `height` x `width` results. `end`: where rows end, if that is known only at dispatch; then the last rows get no tiles of another shape. */
export function cover(height: number, width: number, shape: TileShape, facts: CoverFacts, end?: KNode): Cover {
  const { rows, vectors, lanes } = shape;
  const tile = vectors * lanes;
  const common = { lanes, sumLanes: facts.sums ? facts.lanes : 1 };
  const isFree = rows === 4 && vectors === 2 && facts.inPlace;
  const over = height % rows;
  const wide = Math.min(lastVectors[over] ?? 0, Math.floor(width / lanes));
  const lastRowsDiffer = isFree && end === undefined && wide > 0 && height > fewRows && height < manyRows;
  const most = lastRowsDiffer ? height - over : height;
  const edges = lastRowsDiffer ? columnSegments(width, { rows: over, vectors: wide, lanes }, false) : [];
  const last = edges.map((columns): Block => ({ ...common, rows: whole(most, over, 1), columns }));
  const tall = rowSegment(most, rows, end);
  if (isFree && facts.dots && width > tile && width % tile === 1) {
    const many = { ...common, rows: tall, columns: whole(0, tile, (width - 1) / tile) };
    const one = { rows: tall, columns: whole(width - 1, 1, 1), lanes: 1, sumLanes: facts.lanes };
    return { whole: [many], beside: [one], last };
  }
  const segments = columnSegments(width, shape, facts.padded, facts.recut && widens(shape, most));
  const low = rowSegment(most, widenedRows, end);
  const rowsOf = (s: Segment): Segment => (s.width > tile ? low : tall);
  return { whole: segments.map((s) => ({ ...common, rows: rowsOf(s), columns: s })), beside: [], last };
}
