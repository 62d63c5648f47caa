/**
 * Walks over tiles: the part of a loop that a group takes, and the ranges that run through it.
 */
import type { Exprs } from '../ir/expr.ts';
import { inChunks } from '../codegen/transforms/loops.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { KNode, RangeKind } from '../ir/ir.ts';

/** A loop cut into groups of `chunk` iterations, the last of which may be shorter. */
export interface Cut {
  readonly extent: number;
  readonly chunk: number;
  readonly grid: Range | null;
}

/** `grid`: a range that counts the same groups already. */
export function cut(e: Exprs, extent: number, chunk: number, grid?: Range): Cut {
  const groups = Math.ceil(extent / chunk);
  return { extent, chunk, grid: groups > 1 ? (grid ?? e.range(groups, 'grid')) : null };
}

/** A fresh run through a group's part of a loop. */
export interface Run {
  /** Iteration of the whole loop. */
  readonly value: KNode;
  readonly ranges: readonly Range[];
}

export function run(e: Exprs, { extent, chunk, grid }: Cut): Run {
  if (extent === 1) return { value: e.i32(0), ranges: [] };
  const change = inChunks(e, extent, grid === null ? extent : chunk, 'grid', 'serial', grid);
  return { value: change.value, ranges: change.ranges.filter((r) => r !== grid) };
}

/** Where a value of the tile stands: which tiles, which row and column in them. */
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

/** Fresh ranges of a tile of `rows` rows by `vectors` vectors of `lanes`. */
export function tileRanges(e: Exprs, rows: number, vectors: number, lanes: number): TileRanges {
  const ranges: Range[] = [];
  const range = (extent: number, kind: RangeKind): KNode => {
    if (extent === 1) return e.i32(0);
    const r = e.range(extent, kind);
    ranges.push(r);
    return r;
  };
  const row = range(rows, 'unroll');
  const vector = range(vectors, 'unroll');
  const lane = range(lanes, 'vector');
  return { ranges, row, column: e.add(e.mul(vector, lanes), lane) };
}
