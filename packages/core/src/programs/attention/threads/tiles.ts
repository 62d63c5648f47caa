/** Which tile of scores the threads of a group have, each by one number after the other: by the room there is, and how many groups there are. */
import {
  attentionBytes,
  attentionEmulated,
  attentionRows,
  attentionTiles,
  attentionWords,
  type ThreadTile,
} from '../../../codegen/costs/attention.ts';
import { enoughGroups } from '../../../codegen/costs/gpu.ts';
import type { CodegenCaps } from '../../../codegen/lowering.ts';
import { type AttentionSpec, wideBytes } from '../operands.ts';

/** Elements of a vector that is read from a tile. */
export const lanes = 4;

export const up = (n: number, unit: number): number => Math.ceil(n / unit) * unit;

/** Elements of a line of a tile that holds so many: 16 bytes longer, so that neighbouring lines lie in different banks. */
export const lineOf = (n: number): number => up(n, lanes) + lanes;

/** Rows of a block, and columns of those that it goes through. */
export const heightOf = ({ down, rows }: ThreadTile): number => down * rows;
export const breadthOf = ({ across, columns }: ThreadTile): number => across * columns;

/** Elements of a line of values that all threads across have whole vectors of. */
export const spread = (n: number, { across }: ThreadTile): number => up(n, lanes * across);

/** Tiles of a program in group memory. */
export interface Room {
  /** Of rows and of columns, each as wide as the wider of its operands, and of weights. */
  readonly rows: number;
  readonly columns: number;
  readonly weights: number;
}

export const forwardRoom: Room = { rows: 1, columns: 1, weights: 1 };
export const queriesRoom: Room = { rows: 2, columns: 2, weights: 1 };
export const keysRoom: Room = { rows: 2, columns: 2, weights: 2 };

/** Group memory of a program, in elements. */
function elementsOf(tile: ThreadTile, spec: AttentionSpec, room: Room): number {
  const { across, down, rows, columns } = tile;
  const line = Math.max(lineOf(spread(spec.depth, tile)), lineOf(spread(spec.width, tile)));
  const [high, wide] = [down * rows, across * columns];
  return (room.rows * high + room.columns * wide) * line + room.weights * high * lineOf(wide) + high * across;
}

/** Registers of a thread for its rows of results of these widths. */
function wordsOf(tile: ThreadTile, spec: AttentionSpec, widths: readonly number[]): number {
  const elements = widths.reduce((sum, width) => sum + spread(width, tile) / tile.across, 0);
  return (elements * tile.rows * wideBytes(spec)) / 4;
}

/** The tile for `count` rows of each of `heads` heads, with tiles in group memory and results of these widths in registers. */
export function tileFor(
  caps: CodegenCaps,
  spec: AttentionSpec,
  heads: number,
  count: number,
  room: Room,
  widths: readonly number[],
): ThreadTile {
  const fits = attentionTiles.filter(
    (tile) =>
      tile.across * tile.down <= caps.maxGroup &&
      (caps.sharedIsMemory !== true || tile.across * tile.down <= attentionEmulated) &&
      wordsOf(tile, spec, widths) <= attentionWords &&
      elementsOf(tile, spec, room) * wideBytes(spec) <= Math.min(caps.sharedBytes, attentionBytes),
  );
  const many = fits.find(
    (tile) => heightOf(tile) < 2 * count && heads * Math.ceil(count / heightOf(tile)) >= enoughGroups,
  );
  // Few groups: as many rows as there are, or so many that there are more groups.
  const few =
    count < attentionRows
      ? fits.findLast((tile) => heightOf(tile) >= count)
      : fits.find((tile) => heightOf(tile) <= attentionRows);
  return many ?? few ?? fits.at(-1) ?? attentionTiles.at(-1)!;
}
