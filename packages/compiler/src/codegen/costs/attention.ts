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

/** Sets of 32 threads that multiply tiles of matrices: each has `down` tiles of 16 rows, and goes through `breadth` columns at a time. */
export interface MatrixTileShape {
  readonly sets: number;
  readonly down: number;
  readonly breadth: number;
}

/**
 * Those, best first. 64 rows and columns are what FlashAttention-2 takes backward; its 128 rows forward did not fit beside others in 48 KiB. Chosen
 * without a card at hand.
 */
export const attentionMatrixTiles: readonly MatrixTileShape[] = [
  { sets: 4, down: 1, breadth: 64 },
  { sets: 4, down: 1, breadth: 32 },
  { sets: 4, down: 1, breadth: 16 },
  { sets: 2, down: 1, breadth: 32 },
  { sets: 2, down: 1, breadth: 16 },
  { sets: 1, down: 1, breadth: 32 },
  { sets: 1, down: 1, breadth: 16 },
];

/**
 * Registers of four bytes for results, scores and what is read for their rows, of a thread: so many leave NVIDIA's assembler room among 128. Results of wide heads are more; then there
 * are 256, and so many of them for both. Factors of four bytes leave no room for that.
 */
export const attentionMatrixWords = { usual: 88, wide: 176 } as const;

/** Rows of a block where there are few groups. */
export const attentionRows = 32;

/** Threads of a group where those run one after another: Mesa's lavapipe compiles groups of 64 ten times as long as groups of 16. */
export const attentionEmulated = 16;

/** Group memory of a group at most: beyond it too few groups share a unit. */
export const attentionBytes: number = 48 * 1024;
/** Registers of four bytes for what a thread sums up, at most: with 128 of them NVIDIA's assembler spills some. */
export const attentionWords = 96;

/**
 * Positions that a processor's group has side by side, and others that it goes through at a time: strip, scores and results of heads of 64 take 64 KiB.
 * Half and twice as many of either were as fast within 5 %, in WebAssembly and in machine code.
 */
export const attentionStrip = 64;
export const attentionBlock = 64;
/** Heads of keys for each worker from which on a group has a head to itself, backward: seven products in place of nine. */
export const attentionHeads = 2;
