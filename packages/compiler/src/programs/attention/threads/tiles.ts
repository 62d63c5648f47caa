/** Chooses tiles of attention for groups of threads, by group memory, registers and the number of groups. In: a spec. Out: names of tiles. */
import {
  attentionBytes,
  attentionEmulated,
  attentionMatrixTiles,
  attentionMatrixWords,
  attentionRows,
  attentionTiles,
  attentionWords,
  type MatrixTileShape,
  type ThreadTile,
} from '../../../codegen/costs/attention.ts';
import { enoughGroups } from '../../../codegen/costs/gpu.ts';
import type { CodegenCaps } from '../../../codegen/lowering.ts';
import { type MatrixForm, matrixThreads, stepsOf } from '../../../ir/matrix.ts';
import { dtypeInfo } from '../../../shape/dtype.ts';
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

// Names of tiles, each one word.

export const nameOfTile = ({ across, down, rows, columns }: ThreadTile): string =>
  `rows:${across}x${down}:${rows}x${columns}`;

export const nameOfSets = ({ sets, down, breadth }: MatrixTileShape): string => `sets:${sets}x${down}x${breadth}`;

/** True for words that may name a tile. */
export function isTileName(name: string): boolean {
  return /^(rows:\d+x\d+:\d+x\d+|sets:\d+x\d+x\d+)$/.test(name);
}

/** Tiles of a program in group memory. */
export interface Room {
  /** Of rows and of columns, each as wide as the wider of its operands, and of weights. */
  readonly rows: number;
  readonly columns: number;
  readonly weights: number;
}

/** What of a block of `count` rows stays on chip: tiles in group memory, and results of these widths in registers. */
export interface OnChip {
  readonly count: number;
  readonly room: Room;
  readonly widths: readonly number[];
}

export const forwardRoom: Room = { rows: 1, columns: 1, weights: 1 };
/** True if keys and values have separate tiles. */
export const copyingRoom: Room = { rows: 1, columns: 2, weights: 1 };
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

/** Tiles for `count` rows of each of `heads` heads, the guess first. */
export function tilesFor(
  caps: CodegenCaps,
  spec: AttentionSpec,
  heads: number,
  { count, room, widths }: OnChip,
): readonly ThreadTile[] {
  const fits = attentionTiles.filter(
    (tile) =>
      tile.across * tile.down <= caps.maxGroup &&
      (caps.sharedIsMemory !== true || tile.across * tile.down <= attentionEmulated) &&
      wordsOf(tile, spec, widths) <= attentionWords &&
      elementsOf(tile, spec, room) * wideBytes(spec) <= Math.min(caps.sharedBytes, attentionBytes),
  );
  return inFront(fits, fitting(fits, heightOf, heads, count) ?? attentionTiles.at(-1)!);
}

/** The first of some tiles, best first, that leaves groups enough; where there are few, as many rows as there are, or so many that there are more groups. */
function fitting<T>(fits: readonly T[], height: (tile: T) => number, heads: number, count: number): T | undefined {
  const many = fits.find((tile) => height(tile) < 2 * count && heads * Math.ceil(count / height(tile)) >= enoughGroups);
  const few =
    count < attentionRows
      ? fits.findLast((tile) => height(tile) >= count)
      : fits.find((tile) => height(tile) <= attentionRows);
  return many ?? few ?? fits.at(-1);
}

function inFront<T>(list: readonly T[], first: T): readonly T[] {
  return [first, ...list.filter((x) => x !== first)];
}

// Tiles of matrices.

/** The longest tile of the target for the operands' dtype; null where there is none, or it would be mostly empty. */
export function matrixFormOf({ q, k, v, depth, width }: AttentionSpec, caps: CodegenCaps): MatrixForm | null {
  const { dtype } = q.view;
  if (k.view.dtype !== dtype || v.view.dtype !== dtype || Math.min(depth, width) < 8) return null;
  const forms = (caps.matrix ?? []).filter((form) => form.dtype === dtype);
  return forms.sort((x, y) => stepsOf(y.tile) - stepsOf(x.tile))[0] ?? null;
}

/** Elements of a factor's line that tiles go through. */
export const paddedFactor = (n: number): number => up(n, 16);

/** Elements of a line of a tile that holds so many: 16 bytes longer. */
export function lineOfFactor(n: number, dtype: MatrixForm['dtype']): number {
  return paddedFactor(n) + 16 / dtypeInfo[dtype].bytes;
}

/** Tiles along a row of results. */
export const resultTiles = (width: number): number => Math.ceil(width / 8);

export const heightOfSets = ({ sets, down }: MatrixTileShape): number => 16 * sets * down;

/** Sets of threads for `count` rows of each of `heads` heads, the guess first; none if none fit. */
export function setsFor(
  caps: CodegenCaps,
  { depth, width }: AttentionSpec,
  { dtype }: MatrixForm,
  heads: number,
  { count, room, widths }: OnChip,
): readonly MatrixTileShape[] {
  const line = lineOfFactor(Math.max(depth, width), dtype) * dtypeInfo[dtype].bytes;
  const fits = attentionMatrixTiles.filter((shape) => {
    const [height, { sets, down, breadth }] = [heightOfSets(shape), shape];
    const bytes = (room.rows * height + room.columns * breadth) * line + 16 * height;
    // What is summed up, scores of the block with what they become, and numbers of each query: those of keys' programs are columns.
    const results = widths.reduce((sum, n) => sum + resultTiles(n), 0);
    const facts = room.weights > 1 ? breadth / 2 : 4 * down;
    const words = 4 * down * (results + (room.rows * breadth) / 8) + facts;
    const { usual, wide } = attentionMatrixWords;
    return (
      sets * matrixThreads <= caps.maxGroup &&
      bytes <= Math.min(caps.sharedBytes, attentionBytes) &&
      words <= (4 * down * results < usual || dtypeInfo[dtype].bytes > 2 ? usual : wide)
    );
  });
  const guess = fitting(fits, heightOfSets, heads, count);
  return guess === undefined ? [] : inFront(fits, guess);
}
