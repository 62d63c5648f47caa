/**
 * Which blocks of tiles cover the results of a contraction: whole tiles, and what is left over at the edges.
 *
 * Where both factors can be read in place nothing fixes the tiles of an edge to those beside it: the last rows get tiles as wide as
 * registers allow, and one column left over is summed along the sum, in vectors.
 */
import { columnSegments, rowSegment, type Segment, type TileShape, whole, widenedRows, widens } from './tiles.ts';

/** Tiles of some rows and some columns. */
export interface Block {
  readonly rows: Segment;
  readonly columns: Segment;
  /** Lanes of columns. */
  readonly lanes: number;
  /** Products of the sum side by side in a vector; else 1. */
  readonly sumLanes: number;
}

/** Blocks that cover all results. */
export interface Cover {
  readonly whole: readonly Block[];
  /** What is left over beside them, a column of the same rows or none; its factor is read in place. */
  readonly beside: readonly Block[];
  /** Rows that are left over, with all columns; likewise. */
  readonly last: readonly Block[];
}

/** How the factors are read. */
export interface CoverFacts {
  /** Columns lie in panels and may be read past the end. */
  readonly padded: boolean;
  /** Rows are no panels and groups copy no columns: for some columns rows may be cut otherwise. */
  readonly recut: boolean;
  /** Both factors can be read in place, only the columns as vectors. */
  readonly inPlace: boolean;
  /** The rows' factor is consecutive along the sum, which is one short loop. */
  readonly dots: boolean;
  readonly lanes: number;
  /** The sum runs over vectors everywhere. */
  readonly sums: boolean;
}

/** Vectors of the last rows by their number; three of them are no faster than four. */
const lastVectors = [0, 6, 4];
/** Rows for which that pays: of fewer the last are most of the work, of more they are nothing. */
const [fewRows, manyRows] = [32, 192];

/** Covers `height` x `width` results. */
export function cover(height: number, width: number, shape: TileShape, facts: CoverFacts): Cover {
  const { rows, vectors, lanes } = shape;
  const tile = vectors * lanes;
  const common = { lanes, sumLanes: facts.sums ? facts.lanes : 1 };
  const isFree = rows === 4 && vectors === 2 && facts.inPlace;
  const over = height % rows;
  const wide = Math.min(lastVectors[over] ?? 0, Math.floor(width / lanes));
  const isApart = isFree && wide > 0 && height > fewRows && height < manyRows;
  const most = isApart ? height - over : height;
  const edges = isApart ? columnSegments(width, { rows: over, vectors: wide, lanes }, false) : [];
  const last = edges.map((columns): Block => ({ ...common, rows: whole(most, over, 1), columns }));
  const tall = rowSegment(most, rows);
  if (isFree && facts.dots && width > tile && width % tile === 1) {
    const many = { ...common, rows: tall, columns: whole(0, tile, (width - 1) / tile) };
    const one = { rows: tall, columns: whole(width - 1, 1, 1), lanes: 1, sumLanes: facts.lanes };
    return { whole: [many], beside: [one], last };
  }
  const segments = columnSegments(width, shape, facts.padded, facts.recut && widens(shape, most));
  const low = rowSegment(most, widenedRows);
  const rowsOf = (s: Segment): Segment => (s.width > tile ? low : tall);
  return { whole: segments.map((s) => ({ ...common, rows: rowsOf(s), columns: s })), beside: [], last };
}
