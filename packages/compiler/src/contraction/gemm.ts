/**
 * Contractions by register tiles: rows of one factor times vectors of the other, over any loops around them.
 *
 * Products of matrices in every transpose, batches of them, and convolutions of stride 1 all have this form. Cost decides which range
 * becomes rows, which columns, and how the factors are read (choose.ts). For engines without
 * SIMT, where a group is one thread.
 */
import { longestDot, productCosts } from '../codegen/costs/cpu.ts';
import { vectorLanes } from '../codegen/linearize/vector.ts';
import { inChunks, readsWhatItWrites, storesWhere } from '../codegen/loops/transforms.ts';
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { productOf, type Range, sizeOf, stretchesOf, typicalOf } from '../ir/free-ranges.ts';
import type { KNode, LoopStore, RangeKind, Transform } from '../ir/ir.ts';
import { assumeBounds } from '../ir/node.ts';
import { type Replacement, Rewriter, step } from '../ir/rewrite.ts';
import { dtypeInfo } from '../shape/dtype.ts';
import { isFixed, leastOf } from './access.ts';
import { Assembly } from './assembly.ts';
import { type Workspace, workspaceFor } from './workspace.ts';
import {
  type Block,
  copiedTiles,
  type CoverFacts,
  cover,
  type GroupPlan,
  planGroups,
  planSplit,
  planTogether,
  type Split,
} from './blocking.ts';
import { type Choice, choose, isBefore, type MoreTiles, paysFor, transposePays } from './choose.ts';
import { layoutsOf } from './packing.ts';
import { type Contraction, type ContractionTemplate, worthwhile } from './contraction.ts';
import { type Depth, depthOf, planDepth, planVectorDepth, type SumLoops, sumLoops, vectorSumLoops } from './depth.ts';
import { type GroupCopy, layoutInPlace, type TileLayout } from './staging.ts';
import { type Lines, overlaps, rowSegment, type Segment, storedBefore, tilesUntil, tileStart } from './tiles.ts';

/** Makes a workspace with columns contiguous, from which results are transposed (transposed-results.ts). */
export type TransposedWorkspace = (
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  column: Range,
  part: Range | null,
) => Workspace;

/** Loops of a sum, over `k`, less what need not be done at a position of the loops around the tiles (padding.ts). `first`: the turn at which each begins. */
export type CutSum = (
  e: Exprs,
  k: readonly Range[],
  loops: readonly Depth[],
  outer: ReadonlyMap<Range, KNode>,
  first: (r: Range) => KNode,
) => readonly Depth[];

/**
 * Lowers a contraction by register tiles; null where no range can be read as vectors. `transposed`: the workspace for results that are not contiguous. `cutOf`:
 * what cuts the loops of its sum, if anything. `more`: further tiles.
 */
export function lowerTiled(
  c: Contraction,
  e: Exprs,
  caps: CodegenCaps,
  transposed: TransposedWorkspace | null = null,
  cutOf: ((c: Contraction) => CutSum | null) | null = null,
  more?: MoreTiles,
): Lowered | null {
  const { bytes } = dtypeInfo[c.reduce.dtype];
  const choice = choose(c, bytes, caps, more);
  if (choice === null || !paysFor(c, copiedBefore(choice))) return null;
  const assembly = new Assembly(c.kernel, e, caps);
  const { columns, column, rows, row, shape, lanes, outer, along, columnWay, rowWay } = choice;
  const copied = columnWay.kind === 'local';
  const height = row?.arg.extent ?? 1;
  const end = row?.src[0];
  const { lines } = shape;
  const count = lines?.count ?? 1;
  const depth = sizeOf(c.k);
  const { cacheBytes, edgeTiles, formula } = productCosts(caps);
  const { whole, beside, last } = cover(height, column.arg.extent, shape, coverFacts(c, choice, caps), end);
  const edges = [...beside, ...last];
  const blocks = [...whole, ...edges];
  const [first] = blocks as [Block];
  const segments = whole.map((b) => b.columns);
  const columnLayouts = [
    ...layoutsOf(assembly, e, columns, columnWay, column, segments),
    ...edges.map(() => layoutInPlace(columns.access!, column)),
  ];
  const rowLayout = layoutsOf(assembly, e, rows, rowWay, row, [rowSegment(height, shape.rows, end)])[0] as TileLayout;

  const extents = outer.map((r) => turnsOf(r, lines));
  const order = row === null ? [...outer, column] : [...outer, row, column];
  const layouts = [rowLayout, ...columnLayouts].flatMap((l) => ('strides' in l ? [l.strides] : []));
  const parts = copied || beside.length > 0 ? [] : c.k.filter((r) => r !== along);
  const tiles = extents.reduce(
    (n, x) => n * x,
    blocks.reduce((n, b) => n + b.rows.count * b.columns.count, 0),
  );
  const results = sizeOf(order);
  // Sizes in between, as parts of the greatest.
  const typical = (ranges: readonly Range[]): number => productOf(ranges, typicalOf) / sizeOf(ranges);
  const [deep, wide] = [typical(c.k), typical(order)];
  const split = planSplit(e, parts, layouts, {
    tiles: Math.ceil(tiles * wide),
    results: results * wide,
    work: 2 * depth * deep * results * wide,
    tileBytes: depth * deep * (first.rows.width + first.columns.width * count) * bytes,
    bytes: (rows.bytes + columns.bytes) * Math.min(deep, wide),
  });

  const part = split?.part ?? null;
  const separate =
    part !== null ||
    vectorLanes(c.kernel.stores, withVectors(caps, lanes * bytes)) !== lanes ||
    (transposed !== null && along === null && transposePays(c, column));
  const via = (): Workspace =>
    transposed === null ? workspaceFor(c, e, assembly, order, part) : transposed(c, e, assembly, column, part);
  const memory = separate ? via() : null;
  // Groups are cut for a sum of typical length.
  const share = deep * (split === null ? depth : (depth / split.range.arg.extent) * split.chunk);
  const around = split === null ? extents : [split.part.arg.extent, ...extents];
  const own = whole.length + beside.length;
  const sized = !outer.every(isFixed);
  const leastTiles = (width: number): number | undefined =>
    row === null || isFixed(row) ? undefined : Math.ceil(leastOf(row) / width);
  const least = leastTiles(first.rows.width);
  const together = copied ? null : planTogether(around, blocks.slice(0, own), share, bytes, cacheBytes, sized, least);
  const target = memory === null ? c.kernel.stores : [memory.store];
  const again = formula !== undefined && !readsWhatItWrites(target);
  const cutSum = along === null ? (cutOf?.(c) ?? null) : null;
  const specs = blocks.map((block, i): NestSpec => {
    const { rows: r, columns: s } = block;
    const work = 2 * r.width * s.width * count * share;
    const most = i === 0 || edgeTiles === undefined ? undefined : Math.ceil(r.count / edgeTiles);
    const fewest = leastTiles(r.width);
    const alone = planGroups(around, r.count, s.count, work, s.width * share * bytes, cacheBytes, sized, most, fewest);
    const groups = together === null || i >= own ? alone : { ...together, columns: s.count };
    return {
      stores: target,
      again: again && together !== null && i < own,
      reduce: c.reduce,
      outer,
      rows: { range: row, segment: r, layout: rowLayout },
      columns: { range: column, segment: s, layout: columnLayouts[i]! },
      lines,
      lanes: block.lanes,
      sumLanes: block.sumLanes,
      k: c.k,
      cutSum,
      split,
      groups: copied && i < whole.length ? { ...groups, rows: r.count, columns: copiedTiles(s.count) } : groups,
    };
  });
  const args = [first.rows.width, first.columns.width, rowWay.kind, columnWay.kind];
  const { stores, done } = tileNests(e, specs, together === null ? 0 : own);
  assembly.add('', stores, [step('tile', order, [], args), ...done]);
  memory?.finish();
  return assembly.result();
}

/** Elements that dispatches before the tiles copy. */
function copiedBefore({ columns, columnWay, rows, rowWay }: Choice): number {
  return (isBefore(columnWay) ? columns.size : 0) + (isBefore(rowWay) ? rows.size : 0);
}

/** What `cover` must know of a choice. */
function coverFacts(c: Contraction, choice: Choice, caps: CodegenCaps): CoverFacts {
  const { column, shape, lanes, along, columnWay, rowWay } = choice;
  const { lines } = shape;
  const copied = columnWay.kind === 'local';
  // Where rows are vectors of columns too, no tile may reach past the end.
  const shared = c.batch.includes(column);
  const { formula } = productCosts(caps);
  return {
    padded: lines !== undefined || (columnWay.kind === 'panels' && !shared && formula === undefined),
    recut: rowWay.kind !== 'panels' && !copied && lines === undefined,
    inPlace: (copied || columnWay.kind === 'inPlace') && rowWay.kind === 'inPlace' && !shared && along === null,
    dots: c.k.length === 1 && isFixed(c.k[0]!) && rowWay.strides.get(c.k[0]!) === 1 && sizeOf(c.k) <= longestDot,
    sums: along !== null,
    lanes,
  };
}

/** The target as if its vectors had this many bytes. */
function withVectors({ fittingBytes: _, ...caps }: CodegenCaps, vectorBytes: number): CodegenCaps {
  return { ...caps, vectorBytes };
}

/** Lowering of contractions for engines whose groups are one thread. */

/** Lowers a kernel around a contraction for one thread with vectors; null where the plain loop nest is as good. */
export const vectorContraction: ContractionTemplate = (kernel, e, caps) => {
  const c = worthwhile(kernel, e, caps, paysFor);
  return c === null ? null : lowerTiled(c, e, caps);
};

// Loop nests of register tiles: the stores of a contraction's kernel, with every range split, ordered and given its kind.
//
// A nest covers one segment of rows times one segment of columns. Its sum reads both factors through layouts; its
// epilogue is the kernel's stores with the sum put in. A tile that overlaps its predecessor stores only new elements, or
// whole vectors, if one group computes both, no store reads the results there, and partial vectors are slow. A
// tile that reaches past the end goes through group memory and finishes one element at a time, so that nothing outside the
// tensors is touched.

/** Turns of a loop around the tiles. */
function turnsOf(r: Range, lines: Lines | undefined): number {
  return r === lines?.range ? r.arg.extent / lines.count : r.arg.extent;
}

/** Rows or columns of one nest. */
export interface NestSide {
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
  /** Ranges around the tiles, outermost first. */
  readonly outer: readonly Range[];
  readonly rows: NestSide;
  readonly columns: ColumnSide;
  /** What tiles take of a loop around them. */
  readonly lines: Lines | undefined;
  /** Lanes along columns: 1 where the sum itself runs over vectors. */
  readonly lanes: number;
  /** Vector lanes along the sum, if both factors are contiguous along it; else 1. */
  readonly sumLanes: number;
  readonly k: readonly Range[];
  readonly cutSum: CutSum | null;
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
    const { split, groups, rows, columns, lanes, lines } = spec;
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
    outer.forEach((r, i) => {
      const { value, ranges } = run(e, open(r, turnsOf(r, lines), groups.outer[i]!, r.src[0]));
      this.#around.push(...ranges);
      this.#outer.set(r, lines?.of(e, r, value) ?? value);
    });
    this.#first = split === null ? e.i32(0) : e.mul(this.#outer.get(split.part)!, split.chunk);
    this.#columnTiles = open(columns.range, columns.segment.count, groups.columns);
    this.#rowTiles = open(rows.range, rows.segment.count, groups.rows, tilesUntil(e, rows.segment));
    this.#firstCopied = e.i32(0);
    this.#columnLayout = 'copied' in columns.layout ? this.#groupPanel(columns.layout.copied) : columns.layout;
  }

  stores(): LoopStore[] {
    const e = this.#e;
    const { rows, columns, lanes, lines } = this.#spec;
    const { from, to, width } = columns.segment;
    const rowRun = run(e, this.#rowTiles);
    const columnRun = run(e, this.#columnTiles);
    const tile = tileRanges(e, rows.segment.width, width / lanes, lanes, lines?.line);
    const spot: Spot = { rowTile: rowRun.value, columnTile: columnRun.value, row: tile.row, column: tile.column };
    const sum = this.#sum(spot);

    const loops = [...this.#grid, ...this.#around, ...rowRun.ranges, ...columnRun.ranges];
    if (to !== width) this.done.push(step('stage', tile.ranges));
    if (to === width) return this.#epilogue(spot, sum, [...loops, ...tile.ranges], from);
    const stage = e.stage('shared', sum, tile.ranges);
    const [i, j] = [e.range(rows.segment.width, 'serial'), e.range(to - from, lines ? 'vector' : 'serial')];
    const column = e.add(j, from);
    const { at, ranges } = lines?.again(e, this.#outer, i) ?? { at: i, ranges: [i] };
    const value = e.load(stage, e.add(e.mul(at, width), column));
    return this.#epilogue({ ...spot, row: i, column }, value, [...loops, ...ranges, j], 0);
  }

  /** The kernel's stores at a spot, with the sum put in, for columns of the tile from `from` on, and rows that no earlier tile stores. */
  #epilogue(spot: Spot, sum: KNode, ranges: readonly Range[], from: number): LoopStore[] {
    const e = this.#e;
    const { rows, columns } = this.#spec;
    const changes = new Map<Range, Replacement>();
    for (const [r, value] of this.#outer) changes.set(r, { value, ranges: [] });
    const row = e.add(tileStart(e, rows.segment, spot.rowTile), spot.row);
    const column = e.add(tileStart(e, columns.segment, spot.columnTile), spot.column);
    if (rows.range !== null) changes.set(rows.range, { value: row, ranges: [] });
    if (columns.range !== null) changes.set(columns.range, { value: column, ranges: [] });
    const rewriter = new Rewriter(e, changes);
    rewriter.set(this.#spec.reduce, sum);
    const gates: KNode[] = [];
    if (from > 0 && !this.#spec.again) gates.push(e.le(from, spot.column));
    if (overlaps(rows.segment)) gates.push(e.le(storedBefore(e, rows.segment, spot.rowTile), spot.row));
    const kept = gates.length === 0 ? null : gates.reduce((x, y) => e.and(x, y));
    return storesWhere(e, this.#spec.stores, rewriter, kept, ranges);
  }

  /** The group's copy of what its tiles of columns read: their elements for one product after another. */
  #groupPanel(value: KNode): TileLayout {
    const e = this.#e;
    const { k, lanes, columns } = this.#spec;
    const { width } = columns.segment;
    const { chunk, extent } = this.#columnTiles;
    const tiles = run(e, this.#columnTiles);
    const tile = tileRanges(e, 1, width / lanes, lanes);
    const changes = new Map<Range, Replacement>();
    for (const [r, at] of this.#outer) changes.set(r, { value: at, ranges: [] });
    const column = e.add(tileStart(e, columns.segment, tiles.value), tile.column);
    if (columns.range !== null) changes.set(columns.range, { value: column, ranges: [] });
    const loops = k.map((r) => e.range(r.arg.extent, 'serial', r.src[0]));
    const strides = new Map<Range, number>();
    let size = width * Math.min(chunk, extent);
    for (let i = k.length - 1; i >= 0; i--) {
      const [from, to] = [k[i], loops[i]] as [Range, Range];
      changes.set(from, { value: to, ranges: [] });
      strides.set(from, size);
      size *= from.arg.extent;
    }
    const own = [...loops, ...tiles.ranges, ...tile.ranges];
    this.done.push(step('stage', k, loops));
    const memory = e.stage('shared', new Rewriter(e, changes).node(value), own);
    const { grid } = this.#columnTiles;
    if (grid !== null) this.#firstCopied = e.mul(grid, chunk);
    return { memory, offset: 0, perTile: width, perElement: 1, strides };
  }

  /** The sum at a spot. */
  #sum(spot: Spot): KNode {
    const e = this.#e;
    const { sumLanes } = this.#spec;
    const depths = this.#depths();
    const parts =
      sumLanes > 1 ? vectorSumLoops(e, planVectorDepth(depths), sumLanes) : [sumLoops(e, planDepth(depths))];
    return parts.map((k) => this.#products(spot, k)).reduce((x, y) => e.add(x, y));
  }

  /** Sum of products at a spot over some loops. */
  #products(spot: Spot, k: SumLoops): KNode {
    const e = this.#e;
    const { rows, columns } = this.#spec;
    const a = this.#load(rows.layout, rows.segment, spot.rowTile, spot.row, e.add(k.row, this.#shared(spot)));
    const columnTile = e.sub(spot.columnTile, this.#firstCopied);
    const b = this.#load(this.#columnLayout, columns.segment, columnTile, spot.column, k.column);
    return e.reduce('sum', e.mul(a, b), k.ranges);
  }

  /** Where the rows' factor is read along a range of columns that it shares. */
  #shared(spot: Spot): KNode {
    const e = this.#e;
    const { rows, columns } = this.#spec;
    const stride = columns.range === null ? 0 : (rows.layout.strides.get(columns.range) ?? 0);
    if (stride === 0) return e.i32(0);
    return e.mul(e.add(tileStart(e, columns.segment, spot.columnTile), spot.column), stride);
  }

  #load(layout: TileLayout, segment: Segment, tile: KNode, element: KNode, depth: KNode): KNode {
    const e = this.#e;
    const { outer, split } = this.#spec;
    const { memory, offset, perTile, perElement, strides } = layout;
    const from = perTile === null ? e.mul(tileStart(e, segment, tile), perElement) : e.mul(tile, perTile);
    let index = e.add(e.add(offset, from), e.mul(element, perElement));
    for (const r of outer) index = e.add(index, e.mul(this.#outer.get(r)!, strides.get(r) ?? 0));
    if (split !== null) index = e.add(index, e.mul(this.#first, strides.get(split.range) ?? 0));
    return e.load(memory, e.add(index, depth));
  }

  /** The loops of the nest's part of the sum. */
  #depths(): readonly Depth[] {
    const e = this.#e;
    const { k, split, cutSum, sumLanes, lines } = this.#spec;
    const loops = k.map((r) => this.#depth(r));
    if (sumLanes > 1 || cutSum === null) return loops;
    return cutSum(e, k, loops, lines?.around(this.#outer) ?? this.#outer, (r) =>
      r === split?.range ? this.#first : e.i32(0),
    );
  }

  #depth(r: Range): Depth {
    const e = this.#e;
    const { split, rows } = this.#spec;
    const whole = depthOf(r, rows.layout.strides, this.#columnLayout.strides);
    if (r !== split?.range) return whole;
    const { chunk } = split;
    const { row, column, extent, end } = whole;
    if (end !== undefined) {
      // Parts beyond the end are empty sums.
      return { extent: chunk, row, column, end: [1, e.max(e.min(e.sub(end[1], this.#first), chunk), 0)] };
    }
    if (extent % chunk === 0) return { extent: chunk, row, column };
    const limit = e.min(e.sub(extent, this.#first), chunk);
    assumeBounds(limit, 1, chunk);
    return { extent: chunk, row, column, limit };
  }
}

/**
 * Iteration over tiles: the part of a loop that a group takes, and the ranges that run over it.
 */

/** A loop cut into groups of `chunk` iterations, the last of which may be shorter. */
export interface Cut {
  readonly extent: number;
  readonly chunk: number;
  readonly grid: Range | null;
  /** Where the loop ends, if known only at dispatch: groups beyond it have nothing to do. */
  readonly end?: KNode | undefined;
}

/** `grid`: an existing range that counts the same groups. */
export function cut(e: Exprs, extent: number, chunk: number, grid?: Range, end?: KNode): Cut {
  const groups = Math.ceil(extent / chunk);
  const make = (): Range => grid ?? e.range(groups, 'grid', end && stretchesOf(e, end, chunk));
  return { extent, chunk, grid: groups > 1 ? make() : null, end };
}

/** A new range over a group's part of a loop. */
export interface Run {
  /** The iteration of the whole loop. */
  readonly value: KNode;
  readonly ranges: readonly Range[];
}

export function run(e: Exprs, { extent, chunk, grid, end }: Cut): Run {
  if (extent === 1) return { value: e.i32(0), ranges: [] };
  const change = inChunks(e, extent, grid === null ? extent : chunk, 'grid', 'serial', grid, end);
  return { value: change.value, ranges: change.ranges.filter((r) => r !== grid) };
}

/** Position of a value in the tiles: which tile, and which row and column in it. */
export interface Spot {
  readonly rowTile: KNode;
  readonly columnTile: KNode;
  readonly row: KNode;
  readonly column: KNode;
}

/** The ranges of one register tile. */
export interface TileRanges {
  readonly ranges: readonly Range[];
  readonly row: KNode;
  readonly column: KNode;
}

/** New ranges of a tile of `rows` rows by `vectors` vectors of `lanes`; each row has those of all lines. */
export function tileRanges(e: Exprs, rows: number, vectors: number, lanes: number, line?: Range | null): TileRanges {
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
