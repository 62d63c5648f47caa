/**
 * Loop nests of register tiles: the stores of a contraction's kernel, with every range split, ordered and given its kind.
 *
 * A nest covers one segment of rows times one segment of columns. Its sum reads both factors through layouts; its
 * epilogue is the kernel's own stores with the sum put in. Tiles that keep only some of their elements go through
 * group memory and finish one element at a time, so that nothing outside the tensors is touched.
 */
import { assumeBounds, type Exprs } from '../kernel/expr.ts';
import type { Range } from '../kernel/free-ranges.ts';
import type { KNode, LoopStore, RangeKind } from '../kernel/ir.ts';
import { type Replacement, Rewriter } from '../kernel/rewrite.ts';
import { type GroupPlan, mergeDepth } from './blocking.ts';
import type { TileLayout } from './staging.ts';
import { isWhole, type Segment } from './tiles.ts';

/** Rows or columns of one nest. */
export interface NestSide {
  /** The kernel's range that is tiled; null for a factor without ranges of its own. */
  readonly range: Range | null;
  readonly segment: Segment;
  readonly layout: TileLayout;
}

export interface NestSpec {
  readonly stores: readonly LoopStore[];
  readonly reduce: KNode;
  /** Ranges around the tiles, outermost first. */
  readonly outer: readonly Range[];
  readonly rows: NestSide;
  readonly columns: NestSide;
  readonly lanes: number;
  readonly k: readonly Range[];
  readonly groups: GroupPlan;
}

/** A loop that may be cut into groups. */
interface Cut {
  readonly value: KNode;
  readonly grid: readonly Range[];
  readonly loops: readonly Range[];
}

/** `extent` as groups of `chunk`; the last group may be shorter. */
function cut(e: Exprs, extent: number, chunk: number): Cut {
  if (extent === 1) return { value: e.i32(0), grid: [], loops: [] };
  const groups = Math.ceil(extent / chunk);
  if (groups === 1) {
    const loop = e.range(extent, 'serial');
    return { value: loop, grid: [], loops: [loop] };
  }
  const grid = e.range(groups, 'grid');
  if (chunk === 1) return { value: grid, grid: [grid], loops: [] };
  const start = e.mul(grid, e.i32(chunk));
  const limit = extent % chunk === 0 ? undefined : e.min(e.sub(e.i32(extent), start), e.i32(chunk));
  if (limit !== undefined) assumeBounds(limit, 1, chunk);
  const loop = e.range(chunk, 'serial', limit);
  const value = e.add(start, loop);
  assumeBounds(value, 0, extent - 1);
  return { value, grid: [grid], loops: [loop] };
}

/** The stores of one nest. */
export function tileNest(e: Exprs, spec: NestSpec): LoopStore[] {
  const { rows, columns, lanes, groups } = spec;
  const i32 = (n: number): KNode => e.i32(n);
  const changes = new Map<Range, Replacement>();
  const grid: Range[] = [];
  const loops: Range[] = [];
  const open = (c: Cut): KNode => {
    grid.push(...c.grid);
    loops.push(...c.loops);
    return c.value;
  };
  spec.outer.forEach((r, i) => {
    changes.set(r, { value: open(cut(e, r.arg.extent, groups.outer[i] as number)), ranges: [] });
  });
  const columnTile = cut(e, columns.segment.count, groups.columns);
  const rowTile = cut(e, rows.segment.count, groups.rows);
  grid.push(...columnTile.grid, ...rowTile.grid);
  loops.push(...rowTile.loops, ...columnTile.loops);

  const height = rows.segment.width;
  const vectors = columns.segment.width / lanes;
  const one = (extent: number, kind: RangeKind): Range | null => (extent === 1 ? null : e.range(extent, kind));
  const row = one(height, 'unroll');
  const vector = one(vectors, 'unroll');
  const lane = one(lanes, 'vector');
  const tile = [row, vector, lane].filter((r) => r !== null);
  const element = e.add(e.mul(vector ?? i32(0), i32(lanes)), lane ?? i32(0));

  const depth = mergeDepth(spec.k, rows.layout.strides, columns.layout.strides);
  const kRanges = depth.map((d) => e.range(d.extent, 'reduce'));
  const load = (side: NestSide, tileAt: KNode, elementAt: KNode, which: 'row' | 'column'): KNode => {
    const { memory, offset, perTile, perElement, strides } = side.layout;
    let index = e.add(i32(offset), e.add(e.mul(tileAt, i32(perTile)), e.mul(elementAt, i32(perElement))));
    for (const [r, stride] of strides) {
      const to = changes.get(r);
      if (to !== undefined) index = e.add(index, e.mul(to.value, i32(stride)));
    }
    depth.forEach((d, i) => {
      index = e.add(index, e.mul(kRanges[i] as Range, i32(d[which])));
    });
    return e.load(memory, index);
  };
  const a = load(rows, rowTile.value, row ?? i32(0), 'row');
  const b = load(columns, columnTile.value, element, 'column');
  const sum = e.reduce('sum', e.mul(a, b), kRanges);

  const place = (side: NestSide, tileAt: KNode, at: KNode): void => {
    if (side.range === null) return;
    const { start, width } = side.segment;
    changes.set(side.range, { value: e.add(e.add(i32(start), e.mul(tileAt, i32(width))), at), ranges: [] });
  };
  let result = sum;
  let inner: Range[] = tile;
  if (isWhole(columns.segment)) {
    place(rows, rowTile.value, row ?? i32(0));
    place(columns, columnTile.value, element);
  } else {
    const { from, to, width } = columns.segment;
    const stage = e.stage('shared', sum, tile);
    const [i, j] = [e.range(height, 'serial'), e.range(to - from, 'serial')];
    const kept = e.add(j, i32(from));
    result = e.load(stage, e.add(e.mul(i, i32(width)), kept));
    place(rows, rowTile.value, i);
    place(columns, columnTile.value, kept);
    inner = [i, j];
  }
  const rewriter = new Rewriter(e, changes);
  rewriter.set(spec.reduce, result);
  const order = [...grid, ...loops, ...inner];
  return spec.stores.map((s) => ({ store: rewriter.store(s).store, ranges: order }));
}
