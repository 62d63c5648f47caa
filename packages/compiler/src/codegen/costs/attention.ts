/**
 * Tile sizes and thresholds of attention in one kernel (programs/attention/), each with its reason.
 *
 * Those for groups of threads were chosen without a graphics card, by the sizes of group memory and registers.
 */

/** The part of a block of scores that each thread has: `across` times `columns` columns, `down` times `rows` rows. */
export interface ThreadTile {
  readonly across: number;
  readonly down: number;
  readonly rows: number;
  readonly columns: number;
}

/**
 * Tiles, best first. A thread with 4 x 4 scores does 64 multiply-adds for every 8 vectors that it reads. Smaller tiles are for
 * little group memory, wide heads and few rows.
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

/** Sets of 32 threads with matrix instructions: each has `down` tiles of 16 rows, and takes `breadth` columns at a time. */
export interface MatrixTileShape {
  readonly sets: number;
  readonly down: number;
  readonly breadth: number;
}

/**
 * Shapes of matrix tiles, best first. FlashAttention-2 uses 64 rows and columns backward. Its 128 rows forward do not fit into
 * 48 KiB beside the other tiles.
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
 * Most 4-byte registers of a thread for results, scores and the facts of its rows. `usual`: NVIDIA's assembler has 128 registers
 * in all. `wide`: heads with more results get 256. Factors of four bytes leave no room for `wide`.
 */
export const attentionMatrixWords = { usual: 88, wide: 176 } as const;

/** Rows of a block if there are few groups. */
export const attentionRows = 32;

/** Threads of a group if they run one after another: Mesa's lavapipe compiles groups of 64 ten times as long as groups of 16. */
export const attentionEmulated = 16;

/** Most group memory of a group: beyond it too few groups share a compute unit. */
export const attentionBytes: number = 48 * 1024;
/** Most 4-byte registers of a thread for running sums: with 128 of them NVIDIA's assembler spills. */
export const attentionWords = 96;

/**
 * On processors: positions in a strip of queries (or keys), and in the blocks of keys (or queries) that it goes through. Strip,
 * scores and results of heads of 64 elements take 64 KiB. Half and twice of either were as fast within 5 %.
 */
export const attentionStrip = 64;
export const attentionBlock = 64;
/** Least heads of keys per worker for one group per head, backward: seven products instead of nine. */
export const attentionHeads = 2;
