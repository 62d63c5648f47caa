/**
 * Order and grouping of a contraction's loops: which sums run innermost, and what a group computes.
 *
 * Decided by shapes alone, so that results do not depend on the number of threads.
 */
import type { Range } from '../kernel/free-ranges.ts';

/** One loop of the sum with the strides both factors walk at. */
export interface Depth {
  readonly extent: number;
  readonly row: number;
  readonly column: number;
}

/** The loops of the sum, merged where both factors walk two of them as one, the best one last. */
export function mergeDepth(
  k: readonly Range[],
  row: ReadonlyMap<Range, number>,
  column: ReadonlyMap<Range, number>,
): Depth[] {
  const all: Depth[] = k.map((r) => ({ extent: r.arg.extent, row: row.get(r) ?? 0, column: column.get(r) ?? 0 }));
  for (let merged = true; merged; ) {
    merged = false;
    for (let i = 0; i < all.length && !merged; i++) {
      for (let j = 0; j < all.length && !merged; j++) {
        const [x, y] = [all[i] as Depth, all[j] as Depth];
        if (i === j || x.row !== y.row * y.extent || x.column !== y.column * y.extent) continue;
        all[Math.min(i, j)] = { extent: x.extent * y.extent, row: y.row, column: y.column };
        all.splice(Math.max(i, j), 1);
        merged = true;
      }
    }
  }
  const reach = (d: Depth): number => Math.abs(d.row) + Math.abs(d.column);
  all.sort((x, y) => reach(y) - reach(x));
  const long = all.filter((d) => d.extent >= 8);
  const inner =
    long.length > 0
      ? long[long.length - 1]
      : all.reduce((best, d) => (d.extent >= best.extent ? d : best), all[0] as Depth);
  return [...all.filter((d) => d !== inner), inner as Depth];
}

/** How many iterations of each loop a group takes; the whole extent where a loop is not cut. */
export interface GroupPlan {
  readonly outer: readonly number[];
  readonly rows: number;
  readonly columns: number;
}

/** Operations that pay for starting a group. */
const groupWork = 1 << 17;
const mostGroups = 64;
/** What a group may stream through again and again: half of a common second-level cache. */
const cacheBytes = 192 * 1024;

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
  const wanted = Math.max(1, Math.min(mostGroups, Math.floor(total / groupWork)));
  const even = (extent: number, parts: number): number => Math.ceil(extent / Math.min(extent, Math.max(1, parts)));
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
  const rows = even(rowTiles, Math.ceil(wanted / groups));
  groups *= Math.ceil(rowTiles / rows);
  if (groups < wanted) {
    const now = Math.ceil(columnTiles / columns);
    columns = even(columnTiles, now * Math.ceil(wanted / groups));
  }
  return { outer, rows, columns };
}
