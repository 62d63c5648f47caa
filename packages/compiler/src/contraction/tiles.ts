/**
 * How an extent is cut into register tiles: whole tiles first, then a narrower or overlapping tile for the remainder.
 *
 * A tile that overlaps its predecessor computes some elements twice (to the same bits) and stores only the new ones. So no
 * code for single elements is needed. V8 on x64 has 15 vector registers, and the loads of a loop body come first. There 4 rows
 * x 2 vectors is the largest tile that does not spill.
 */
import type { Ends, ProductCosts } from '../codegen/costs/cpu.ts';
import type { Exprs } from '../ir/expr.ts';
import { divisorOf, type Range, stretchesOf } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { lowOf } from '../ir/node.ts';

/**
 * `count` tiles of `width` elements from `start` on, `width` apart, but none beyond `last`. Each keeps its elements `from` to
 * `to` - 1, except those that an earlier tile of the segment keeps.
 */
export interface Segment {
  readonly start: number;
  readonly last: number;
  readonly width: number;
  readonly count: number;
  readonly from: number;
  readonly to: number;
  /** Where the segment ends, if known only at dispatch: `count` is then the most tiles, and the last one in use ends here. */
  readonly end?: KNode | undefined;
  /** Where it starts, if known only at dispatch. */
  readonly begin?: KNode | undefined;
  /** How many tiles are in use, if that is not what fills it: none where what is left is less than one. */
  readonly tiles?: KNode | undefined;
}

/** Shape of a register tile: rows, vectors per row, elements per vector. */
export interface TileShape {
  readonly rows: number;
  readonly vectors: number;
  readonly lanes: number;
  /** Set if vectors reach past the end of the columns, all of which a tile takes. */
  readonly lines?: Lines;
}

/** The iterations of a loop around it that a tile takes together, with a row of vectors for each (whole-lines.ts). */
export interface Lines {
  readonly range: Range | null;
  readonly count: number;
  /** The range over these iterations, the same in all nests; null: there is one iteration. */
  readonly line: Range | null;
  /** A loop around the tiles, if `tile` counts its tiles; the others are as they are. */
  of(e: Exprs, r: Range, tile: KNode): KNode;
  /** New loops over all rows of results that a tile has; from here on `outer` has these for the loop around. */
  again(e: Exprs, outer: Map<Range, KNode>, row: Range): Repeated;
  /** The loops around without that of the lines, which differ in it. */
  around(outer: ReadonlyMap<Range, KNode>): ReadonlyMap<Range, KNode>;
}

/** Which row of a tile it is, and the loops over them. */
export interface Repeated {
  readonly at: KNode;
  readonly ranges: readonly Range[];
}

/**
 * Most vectors in each of `rows` rows of a tile: accumulators, and the loads of one step, which come first, leave one register. With 15
 * registers these are 6, 4, 2 and 2.
 */
function vectorsFor(rows: number, registers: number): number {
  return Math.floor((registers - 1 - rows) / (rows + 1));
}

/**
 * The same for rows that are vectors themselves: an accumulator and a load for each result, and loads of the columns. More than four
 * vectors gain nothing: four hide the latency of a step.
 */
function sharedVectors(rows: number, registers: number): number {
  return Math.min(4, Math.floor(registers / (2 * rows + 1)));
}

/**
 * Rows of a tile one vector wider than 4 x 2. A narrower extra tile takes as long as a whole one, because its few accumulators
 * wait for each other.
 */
export const widenedRows = 3;

/** True if wider last tiles of columns pay: 9 accumulators cost about 1.2 times as much as 8. */
export function widens({ rows, vectors }: TileShape, height: number): boolean {
  return rows === 4 && vectors === 2 && Math.ceil(height / widenedRows) * 1.2 < Math.ceil(height / rows) * 2;
}

/** What tiles are cut by. */
type TileFacts = Pick<ProductCosts, 'registers' | 'formula'>;

/**
 * The tile for a contraction with `rows` x `columns` results; `height`: the rows where a size given at dispatch is greatest; `ends`: columns at the least and the
 * greatest size where they end at one.
 */
export function tileShape(
  rows: number,
  columns: number,
  lanes: number,
  { registers, formula }: TileFacts,
  height: number = rows,
  ends?: Ends,
): TileShape {
  const most = Math.max(1, Math.floor(columns / lanes));
  const tile = formula?.ofColumns(rows, columns, lanes, most, height, ends);
  if (tile !== undefined) return { rows: tile[0], vectors: tile[1], lanes };
  const r = Math.min(4, rows);
  return { rows: r, vectors: Math.min(vectorsFor(r, registers), most), lanes };
}

/**
 * The tile where both factors are vectors along the columns, so that each row loads its own vectors: as many rows as registers
 * allow, or fewer where that leaves less to compute twice.
 */
export function sharedShape(
  rows: number,
  columns: number,
  lanes: number,
  registers: number,
  most: number = rows,
): TileShape {
  let best = 1;
  const cost = (r: number): number => Math.ceil(rows / r) * (r + 1);
  for (let r = 2; sharedVectors(r, registers) > 0 && r <= most; r++) if (cost(r) <= cost(best)) best = r;
  return { rows: best, vectors: Math.min(sharedVectors(best, registers), Math.floor(columns / lanes)), lanes };
}

/** The tile where the sum runs over vectors: every result is a vector accumulator of its own. */
export function dotShape(
  rows: number,
  columns: number,
  facts: TileFacts,
  height: number = rows,
  ends?: Ends,
): TileShape {
  return tileShape(rows, columns, 1, facts, height, ends);
}

/** Rows: whole tiles, the last one moved back to end at the end. `end`: where they end, at `rows` or later, if known only at dispatch. */
export function rowSegment(extent: number, rows: number, end?: KNode): Segment {
  return { ...whole(0, rows, Math.ceil(extent / rows)), last: extent - rows, end };
}

/** Number of tiles of a segment, if known only at dispatch. */
export function tilesUntil(e: Exprs, { end, width, tiles }: Segment): KNode | undefined {
  return tiles ?? (end && stretchesOf(e, end, width));
}

/**
 * Columns, at least `lanes` of them: whole tiles, then a tile of as few vectors as cover the remainder. `aligned`: tiles
 * start at multiples and may reach past the end (the operand is padded); otherwise the last tile ends at the end. `widened`: a
 * remainder of at most one vector makes the last whole tile wider instead.
 */
export function columnSegments(
  extent: number,
  { vectors, lanes }: TileShape,
  aligned: boolean,
  widened = false,
): Segment[] {
  const width = vectors * lanes;
  const fitting = Math.floor(extent / width);
  const over = extent - fitting * width;
  const count = widened && extent >= width + lanes && over > 0 && over <= lanes ? fitting - 1 : fitting;
  const rest = extent - count * width;
  const segments: Segment[] = [];
  if (count > 0) segments.push(whole(0, width, count));
  if (rest === 0) return segments;
  const start = count * width;
  const narrow = Math.ceil(rest / lanes) * lanes;
  if (narrow === rest) segments.push(whole(start, rest, 1));
  else if (aligned) segments.push({ ...whole(start, narrow, 1), to: rest });
  else segments.push({ ...whole(extent - narrow, narrow, 1), from: narrow - rest });
  return segments;
}

/** Whole tiles without overlap. */
export function whole(start: number, width: number, count: number): Segment {
  return { start, last: start + (count - 1) * width, width, count, from: 0, to: width };
}

/** True if the last tile may start before its predecessor ends. */
export function overlaps(s: Segment): boolean {
  if (s.end !== undefined) return divisorOf(s.end) % s.width !== 0;
  return s.last < s.start + (s.count - 1) * s.width;
}

/** Where a tile starts unless it is moved back. */
function placeOf(e: Exprs, { start, begin, width }: Segment, tile: KNode): KNode {
  return e.add(e.mul(tile, width), begin ?? start);
}

/** First element of a tile. */
export function tileStart(e: Exprs, s: Segment, tile: KNode): KNode {
  const at = placeOf(e, s, tile);
  return overlaps(s) ? e.min(at, lastStart(e, s)) : at;
}

function lastStart(e: Exprs, { end, last, width }: Segment): KNode {
  if (end === undefined) return e.i32(last);
  const start = e.sub(end, width);
  // Where no tile is in use it may be less than zero.
  return lowOf(start) < 0 ? e.max(start, 0) : start;
}

/** The number of elements that a tile shares with the one before it. Elements at smaller positions in the tile are not stored again. */
export function storedBefore(e: Exprs, s: Segment, tile: KNode): KNode {
  return e.max(e.sub(placeOf(e, s, tile), lastStart(e, s)), 0);
}
