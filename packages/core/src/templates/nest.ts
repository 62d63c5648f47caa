/**
 * Loop nests of register tiles: the stores of a contraction's kernel, with every range split, ordered and given its kind.
 *
 * A nest covers one segment of rows times one segment of columns. Its sum reads both factors through layouts; its
 * epilogue is the kernel's own stores with the sum put in. A tile that overlaps the one before stores only what is new. A
 * tile that reaches past the end goes through group memory and finishes one element at a time, so that nothing outside the
 * tensors is touched.
 */
import { assumeBounds, type Exprs } from '../kernel/expr.ts';
import type { Range } from '../kernel/free-ranges.ts';
import type { KNode, LoopStore, RangeKind } from '../kernel/ir.ts';
import { type Replacement, Rewriter } from '../kernel/rewrite.ts';
import type { GroupPlan, Split } from './blocking.ts';
import { type Depth, planDepth, type SumLoops, sumLoops, vectorSumLoops } from './depth.ts';
import type { TileLayout } from './staging.ts';
import type { Segment } from './tiles.ts';

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
  /** Lanes of columns: 1 where the sum itself runs over vectors. */
  readonly lanes: number;
  /** Products of the sum side by side in a vector, both factors being consecutive there; else 1. */
  readonly sumLanes: number;
  readonly k: readonly Range[];
  /** The part of the sum that a nest computes; its loop is the first of `groups.outer`. */
  readonly split: Split | null;
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
  const { split } = spec;
  const outer = split === null ? spec.outer : [split.part, ...spec.outer];
  outer.forEach((r, i) => {
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

  const first = split === null ? i32(0) : e.mul((changes.get(split.part) as Replacement).value, i32(split.chunk));
  const depths = planDepth(
    spec.k.map((r): Depth => {
      const strides = {
        row: rows.layout.strides.get(r) ?? 0,
        column: columns.layout.strides.get(r) ?? 0,
      };
      const { extent } = r.arg;
      if (r !== split?.range) return { extent, ...strides };
      if (extent % split.chunk === 0) return { extent: split.chunk, ...strides };
      const limit = e.min(e.sub(i32(extent), first), i32(split.chunk));
      assumeBounds(limit, 1, split.chunk);
      return { extent: split.chunk, limit, ...strides };
    }),
  );
  const load = (side: NestSide, tileAt: KNode, elementAt: KNode, depthAt: KNode): KNode => {
    const { memory, offset, perTile, perElement, strides } = side.layout;
    let index = e.add(i32(offset), e.add(e.mul(tileAt, i32(perTile)), e.mul(elementAt, i32(perElement))));
    for (const r of spec.outer) {
      index = e.add(index, e.mul((changes.get(r) as Replacement).value, i32(strides.get(r) ?? 0)));
    }
    if (split !== null) index = e.add(index, e.mul(first, i32(strides.get(split.range) ?? 0)));
    return e.load(memory, e.add(index, depthAt));
  };
  const sumOver = (k: SumLoops): KNode => {
    const a = load(rows, rowTile.value, row ?? i32(0), k.row);
    const b = load(columns, columnTile.value, element, k.column);
    return e.reduce('sum', e.mul(a, b), k.ranges);
  };
  const parts = spec.sumLanes > 1 ? vectorSumLoops(e, depths, spec.sumLanes) : [sumLoops(e, depths)];
  const sum = parts.map(sumOver).reduce((x, y) => e.add(x, y));

  const place = (side: NestSide, tileAt: KNode, at: KNode): void => {
    if (side.range === null) return;
    const { start, width } = side.segment;
    changes.set(side.range, { value: e.add(e.add(i32(start), e.mul(tileAt, i32(width))), at), ranges: [] });
  };
  let result = sum;
  let inner: Range[] = tile;
  let kept: KNode | null = null;
  const { from, to, width } = columns.segment;
  if (to === width) {
    place(rows, rowTile.value, row ?? i32(0));
    place(columns, columnTile.value, element);
    if (from > 0) kept = e.le(i32(from), element);
  } else {
    const stage = e.stage('shared', sum, tile);
    const [i, j] = [e.range(height, 'serial'), e.range(to - from, 'serial')];
    const at = e.add(j, i32(from));
    result = e.load(stage, e.add(e.mul(i, i32(width)), at));
    place(rows, rowTile.value, i);
    place(columns, columnTile.value, at);
    inner = [i, j];
  }
  const rewriter = new Rewriter(e, changes);
  rewriter.set(spec.reduce, result);
  const ranges = [...grid, ...loops, ...inner];
  return spec.stores.map((s) => {
    const { store } = rewriter.store(s);
    if (kept === null) return { store, ranges };
    const [memory, index, value, gate] = store.src as readonly [KNode, KNode, KNode, KNode?];
    return { store: e.store(memory, index, value, gate === undefined ? kept : e.and(gate, kept)), ranges };
  });
}
