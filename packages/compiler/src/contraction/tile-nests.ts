/**
 * Loop nests of register tiles: the stores of a contraction's kernel, with every range split, ordered and given its kind.
 *
 * A nest covers one segment of rows times one segment of columns. Its sum reads both factors through layouts; its
 * epilogue is the kernel's stores with the sum put in. A tile that overlaps its predecessor stores only new elements. It
 * stores whole vectors if one group computes both, no store reads the results there, and partial vectors are slow. A
 * tile that reaches past the end goes through group memory and finishes one element at a time. So nothing outside the tensors
 * is touched.
 */
import { leastVector } from '../codegen/costs/cpu.ts';
import { inChunks, storesWhere } from '../codegen/loops/transforms.ts';
import type { Exprs } from '../ir/expr.ts';
import { type Range, stretchesOf } from '../ir/free-ranges.ts';
import type { KNode, LoopStore, RangeKind, Transform } from '../ir/ir.ts';
import { assumeBounds, lowOf } from '../ir/node.ts';
import { type Replacement, Rewriter, step } from '../ir/rewrite.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { walked } from './access.ts';
import type { GroupPlan, Split } from './blocking.ts';
import type { Contraction } from './contraction.ts';
import { type Depth, depthOf, planDepth, planVectorDepth, type SumLoops, sumLoops, vectorSumLoops } from './depth.ts';
import type { GroupCopy, TileLayout } from './staging.ts';
import { type Lines, overlaps, type Segment, storedBefore, tilesUntil, tileStart } from './tiles.ts';

/** Iterations of a loop around the tiles. */
export function turnsOf(r: Range, lines: Lines | undefined): number {
  return r === lines?.range ? r.arg.extent / lines.count : r.arg.extent;
}

/** Shortens loops of a sum over `k` by iterations over padding, given the loops around the tiles (padding.ts). `first`: where each begins. */
export type CutSum = (
  e: Exprs,
  k: readonly Range[],
  loops: readonly Depth[],
  outer: ReadonlyMap<Range, KNode>,
  first: (r: Range) => KNode,
) => readonly Depth[];

/** Rows or columns of one nest. */
interface NestSide {
  /** The kernel's range that is tiled; null for a factor that has no range of its own. */
  readonly range: Range | null;
  readonly segment: Segment;
  readonly layout: TileLayout;
}

/** Groups may copy the columns themselves. */
export type ColumnSide = Omit<NestSide, 'layout'> & { readonly layout: TileLayout | GroupCopy };

export interface NestSpec {
  readonly stores: readonly LoopStore[];
  /** The last columns store whole vectors that overlap the previous tile: the same group computes both, to the same bits. */
  readonly again: boolean;
  readonly reduce: KNode;
  /** What is summed; absent: the products. */
  readonly pair: Contraction['pair'];
  /** Ranges around the tiles, outermost first. */
  readonly outer: readonly Range[];
  /** Those of them through which consecutive groups run with the same columns. */
  readonly within: ReadonlySet<Range>;
  readonly rows: NestSide;
  readonly columns: ColumnSide;
  /** What tiles take of a loop around them. */
  readonly lines: Lines | undefined;
  /** Lanes along columns: 1 where the sum itself runs over vectors. */
  readonly lanes: number;
  /** Vector lanes along the sum, if both factors are contiguous along it; else 1. */
  readonly sumLanes: number;
  readonly k: readonly Range[];
  readonly cutSum: CutSum | undefined;
  /** The part of the sum that a nest computes; its loop is the first of `groups.outer`. */
  readonly split: Split | null;
  readonly groups: GroupPlan;
}

/**
 * The stores of some nests, and the transforms of their loops. A group computes a part of each of the first `together` nests, which are cut
 * alike; the other nests have separate groups.
 */
export function tileNests(
  e: Exprs,
  specs: readonly NestSpec[],
  together: number,
): { readonly stores: LoopStore[]; readonly done: Transform[] } {
  const grid: Range[] = [];
  const nests = specs.map((spec, i) => new Nest(e, spec, i < together ? grid : []));
  return { stores: nests.flatMap((n) => n.stores()), done: nests.flatMap((n) => n.done) };
}

class Nest {
  readonly #e: Exprs;
  readonly #spec: NestSpec;
  readonly #grid: Range[];
  /** Serial loops around the tiles. */
  readonly #around: Range[] = [];
  readonly #outer = new Map<Range, KNode>();
  /** First iteration of the split loop in this part of the sum. */
  readonly #first: KNode;
  readonly #columnTiles: Cut;
  readonly #rowTiles: Cut;
  readonly #columnLayout: TileLayout;
  /** The transforms of the loops, in the words of codegen/loops/transforms.ts. */
  readonly done: Transform[] = [];
  /** First tile of columns in the group's copy. */
  #firstCopied: KNode;

  /** `grid`: empty, or the ranges of another nest's grid, which this nest shares. */
  constructor(e: Exprs, spec: NestSpec, grid: Range[]) {
    this.#e = e;
    this.#grid = grid;
    this.#spec = spec;
    const { split, groups, rows, columns, lanes, lines, within } = spec;
    const outer = split === null ? spec.outer : [split.part, ...spec.outer];
    for (const { range, segment } of [rows, columns])
      if (range !== null) this.done.push(step('split', [range], [], [segment.width, 'serial', 'unroll']));
    if (lanes > 1) this.done.push(step('vector', columns.range === null ? [] : [columns.range], [], [lanes]));
    let opened = 0;
    const open = (r: Range | null, extent: number, chunk: number, end?: KNode): Cut => {
      const c = cut(e, extent, chunk, grid[opened], end);
      if (c.grid !== null) {
        grid[opened++] = c.grid;
        if (r !== null) this.done.push(step('split', [r], [c.grid], [chunk, 'grid', 'serial']));
      }
      return c;
    };
    const openAround = (isWanted: (r: Range) => boolean): void =>
      outer.forEach((r, i) => {
        if (!isWanted(r)) return;
        const { value, ranges } = run(e, open(r, turnsOf(r, lines), groups.outer[i]!, r.src[0]));
        this.#around.push(...ranges);
        this.#outer.set(r, lines?.of(e, r, value) ?? value);
      });
    openAround((r) => !within.has(r));
    this.#columnTiles = open(columns.range, columns.segment.count, groups.columns, tilesUntil(e, columns.segment));
    openAround((r) => within.has(r));
    this.#first = split === null ? e.i32(0) : e.mul(this.#outer.get(split.part)!, split.chunk);
    this.#rowTiles = open(rows.range, rows.segment.count, groups.rows, tilesUntil(e, rows.segment));
    this.#firstCopied = e.i32(0);
    this.#columnLayout = 'copied' in columns.layout ? this.#inGroup(columns.layout) : columns.layout;
  }

  stores(): LoopStore[] {
    const e = this.#e;
    const { rows, columns, lanes, lines } = this.#spec;
    const { from, to, width } = columns.segment;
    const rowRun = run(e, this.#rowTiles);
    const columnRun = run(e, this.#columnTiles);
    const tile = tileRanges(e, rows.segment.width, width / lanes, lanes, lines?.line);
    const position: TilePosition = {
      rowTile: rowRun.value,
      columnTile: columnRun.value,
      row: tile.row,
      column: tile.column,
    };
    const sum = this.#sum(position);

    const loops = [...this.#grid, ...this.#around, ...rowRun.ranges, ...columnRun.ranges];
    if (to !== width) this.done.push(step('stage', tile.ranges));
    if (to === width) return this.#epilogue(position, sum, [...loops, ...tile.ranges], from);
    const stage = e.stage('shared', sum, tile.ranges);
    const [i, j] = [e.range(rows.segment.width, 'serial'), e.range(to - from, lines ? 'vector' : 'serial')];
    const column = e.add(j, from);
    const { at, ranges } = lines?.again(e, this.#outer, i) ?? { at: i, ranges: [i] };
    const value = e.load(stage, e.add(e.mul(at, width), column));
    return this.#epilogue({ ...position, row: i, column }, value, [...loops, ...ranges, j], 0);
  }

  /**
   * The kernel's stores at a position, with the sum put in. They are for columns of the tile from `from` on, and rows that no earlier tile
   * stores.
   */
  #epilogue(position: TilePosition, sum: KNode, ranges: readonly Range[], from: number): LoopStore[] {
    const e = this.#e;
    const { rows, columns } = this.#spec;
    const changes = new Map<Range, Replacement>();
    for (const [r, value] of this.#outer) changes.set(r, { value, ranges: [] });
    const row = e.add(tileStart(e, rows.segment, position.rowTile), position.row);
    const column = e.add(tileStart(e, columns.segment, position.columnTile), position.column);
    if (rows.range !== null) changes.set(rows.range, { value: row, ranges: [] });
    if (columns.range !== null) changes.set(columns.range, { value: column, ranges: [] });
    const rewriter = new Rewriter(e, changes);
    rewriter.set(this.#spec.reduce, sum);
    const gates: KNode[] = [];
    if (from > 0 && !this.#spec.again) gates.push(e.le(from, position.column));
    if (overlaps(columns.segment) && !this.#spec.again)
      gates.push(e.le(storedBefore(e, columns.segment, position.columnTile), position.column));
    if (overlaps(rows.segment)) gates.push(e.le(storedBefore(e, rows.segment, position.rowTile), position.row));
    const kept = gates.length === 0 ? null : gates.reduce((x, y) => e.and(x, y));
    return storesWhere(e, this.#spec.stores, rewriter, kept, ranges);
  }

  /** The group's copy of what its tiles of columns read: their elements for one product after another. */
  #inGroup({ copied, copy }: GroupCopy): TileLayout {
    const e = this.#e;
    const { k, lanes, columns } = this.#spec;
    const { range, segment } = columns;
    const { width } = segment;
    const { chunk, extent, grid } = this.#columnTiles;
    const tiles = run(e, this.#columnTiles);
    const tile = tileRanges(e, 1, width / lanes, lanes);
    const at = new Map(this.#outer);
    if (range !== null) at.set(range, e.add(tileStart(e, segment, tiles.value), tile.column));
    const own = [...tiles.ranges, ...tile.ranges];
    const { layout, loops } = copy(e, copied, { k, at, loops: own, width, columns: width * Math.min(chunk, extent) });
    this.done.push(step('stage', k, loops));
    if (grid !== null) this.#firstCopied = e.mul(grid, chunk);
    return layout;
  }

  /** The sum at a position. */
  #sum(position: TilePosition): KNode {
    const e = this.#e;
    const { sumLanes, reduce } = this.#spec;
    const narrowest = leastVector / dtypeInfo[reduce.dtype as DType].bytes;
    const depths = this.#depths();
    const parts =
      sumLanes > 1 ? vectorSumLoops(e, planVectorDepth(depths), sumLanes, narrowest) : [sumLoops(e, planDepth(depths))];
    return parts.map((k) => this.#products(position, k)).reduce((x, y) => e.add(x, y));
  }

  /** Sum of products at a position over some loops. */
  #products(position: TilePosition, k: SumLoops): KNode {
    const e = this.#e;
    const { rows, columns, pair } = this.#spec;
    const a = this.#load(
      rows.layout,
      rows.segment,
      position.rowTile,
      position.row,
      e.add(k.row, this.#shared(position)),
    );
    const columnTile = e.sub(position.columnTile, this.#firstCopied);
    const b = this.#load(this.#columnLayout, columns.segment, columnTile, position.column, k.column);
    return e.reduce('sum', pair?.(e, a, b) ?? e.mul(a, b), k.ranges);
  }

  /** Where the rows' factor is read along a range of columns that it shares. */
  #shared(position: TilePosition): KNode {
    const e = this.#e;
    const { rows, columns } = this.#spec;
    if (columns.range === null || !rows.layout.strides.has(columns.range)) return e.i32(0);
    const column = e.add(tileStart(e, columns.segment, position.columnTile), position.column);
    return walked(e, rows.layout, columns.range, column);
  }

  #load(layout: TileLayout, segment: Segment, tile: KNode, element: KNode, depth: KNode): KNode {
    const e = this.#e;
    const { outer, split } = this.#spec;
    const { memory, offset, perTile, perElement } = layout;
    const from = perTile === null ? e.mul(tileStart(e, segment, tile), perElement) : e.mul(tile, perTile);
    let index = e.add(e.add(offset, from), e.mul(element, perElement));
    for (const r of outer) index = e.add(index, walked(e, layout, r, this.#outer.get(r)!));
    if (split !== null) index = e.add(index, walked(e, layout, split.range, this.#first));
    return e.load(memory, e.add(index, depth));
  }

  /** The loops of the nest's part of the sum. */
  #depths(): readonly Depth[] {
    const e = this.#e;
    const { k, split, cutSum, lines } = this.#spec;
    const loops = k.map((r) => this.#depth(r));
    if (cutSum === undefined) return loops;
    return cutSum(e, k, loops, lines?.around(this.#outer) ?? this.#outer, (r) =>
      r === split?.range ? this.#first : e.i32(0),
    );
  }

  #depth(r: Range): Depth {
    const e = this.#e;
    const { split, rows } = this.#spec;
    const whole = depthOf(r, rows.layout, this.#columnLayout);
    if (r !== split?.range) return whole;
    const { chunk } = split;
    const { extent, end } = whole;
    if (end !== undefined) {
      // Parts beyond the end are empty sums.
      return { ...whole, extent: chunk, end: [1, e.max(e.min(e.sub(end[1], this.#first), chunk), 0)] };
    }
    if (extent % chunk === 0) return { ...whole, extent: chunk };
    const limit = e.min(e.sub(extent, this.#first), chunk);
    assumeBounds(limit, 1, chunk);
    return { ...whole, extent: chunk, limit };
  }
}

// Iteration over tiles: the part of a loop that a group takes, and the ranges that run over it.

/** A loop cut into groups of `chunk` iterations, the last of which may be shorter. */
interface Cut {
  readonly extent: number;
  readonly chunk: number;
  readonly grid: Range | null;
  /** Where the loop ends, if known only at dispatch: groups beyond it have nothing to do. */
  readonly end?: KNode | undefined;
}

/** `grid`: an existing range that counts the same groups. */
function cut(e: Exprs, extent: number, chunk: number, grid?: Range, end?: KNode): Cut {
  const groups = Math.ceil(extent / chunk);
  const make = (): Range => grid ?? e.range(groups, 'grid', end && stretchesOf(e, end, chunk));
  return { extent, chunk, grid: groups > 1 ? make() : null, end };
}

/** A new range over a group's part of a loop. */
interface Run {
  /** The iteration of the whole loop. */
  readonly value: KNode;
  readonly ranges: readonly Range[];
}

function run(e: Exprs, { extent, chunk, grid, end }: Cut): Run {
  if (extent === 1 && (end === undefined || lowOf(end) >= 1)) return { value: e.i32(0), ranges: [] };
  const change = inChunks(e, extent, grid === null ? extent : chunk, ['grid', 'serial'], {
    outer: grid,
    end: end ?? null,
  });
  return { value: change.value, ranges: change.ranges.filter((r) => r !== grid) };
}

/** Position of a value in the tiles: which tile, and which row and column in it. */
interface TilePosition {
  readonly rowTile: KNode;
  readonly columnTile: KNode;
  readonly row: KNode;
  readonly column: KNode;
}

/** The ranges of one register tile. */
interface TileRanges {
  readonly ranges: readonly Range[];
  readonly row: KNode;
  readonly column: KNode;
}

/** New ranges of a tile of `rows` rows by `vectors` vectors of `lanes`; each row has those of all lines. */
function tileRanges(e: Exprs, rows: number, vectors: number, lanes: number, line?: Range | null): TileRanges {
  const ranges: Range[] = [];
  const range = (extent: number, kind: RangeKind): KNode => {
    if (extent === 1) return e.i32(0);
    const r = e.range(extent, kind);
    ranges.push(r);
    return r;
  };
  const row = range(rows, 'unroll');
  if (line) ranges.push(line);
  const vector = range(vectors, 'unroll');
  const lane = range(lanes, 'vector');
  return { ranges, row, column: e.add(e.mul(vector, lanes), lane) };
}
