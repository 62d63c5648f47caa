/**
 * Sizes and thresholds of attention in one kernel (programs/attention/), in one place, each with what it rests on.
 *
 * What is for groups of threads was chosen without a card at hand, by the room there is in group memory and registers.
 */

/** What the threads of a group have of a block of scores: `across` times `columns` columns, `down` times `rows` rows. */
export interface ThreadTile {
  readonly across: number;
  readonly down: number;
  readonly rows: number;
  readonly columns: number;
}

/**
 * Tiles, best first. A thread of 4 x 4 scores does 64 multiply-adds for 8 vectors it reads; smaller tiles are for little group memory, wide heads
 * and few rows.
 */
export const attentionTiles: readonly ThreadTile[] = [
  { across: 8, down: 16, rows: 4, columns: 4 },
  { across: 8, down: 16, rows: 2, columns: 4 },
  { across: 8, down: 8, rows: 4, columns: 2 },
  { across: 8, down: 8, rows: 4, columns: 1 },
  { across: 8, down: 8, rows: 2, columns: 2 },
  { across: 8, down: 8, rows: 2, columns: 1 },
  { across: 8, down: 8, rows: 1, columns: 1 },
  { across: 4, down: 4, rows: 1, columns: 1 },
];

/** Group memory of a group at most: beyond it too few groups share a unit. */
export const attentionBytes: number = 48 * 1024;

/** Positions that a processor's group has side by side, others that it goes through at a time, and steps of a sum that are written out. */
export const attentionStrip = 64;
export const attentionBlock = 64;
export const attentionUnroll = 4;
