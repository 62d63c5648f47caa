/** The words through which threads hand out work, in the memory that they share. Pages load this with the code of worker threads. */

/** Control words as indices into an Int32Array over the memory; those that threads spin on are on separate cache lines. */
export const control = {
  /**
   * The chunks not taken yet, from `low` to below `high`: number of the dispatch, `high`, `low` from the upper bits
   * down, `chunkBits` bits each for the last two.
   */
  ticket: 16640,
  /** Chunks that workers have finished since the start, in 32 bits. */
  done: 16656,
  /** Workers blocked in Atomics.wait. */
  sleepers: 16672,
  /** Workers that have started. */
  ready: 16688,
  /** Count of entries ever written to the ring. */
  events: 16704,
  /** 1 while the main thread is blocked waiting for `done`. */
  mainWaits: 16720,
  /** 1 once the engine is disposed. */
  stop: 16736,
  /** 1 if a chunk failed in a worker. */
  failed: 16752,
  /** The running dispatch: module slot, function, groups per chunk, groups, most chunks taken at once. */
  slot: 16768,
  fn: 16769,
  chunkGroups: 16770,
  groups: 16771,
  mostChunks: 16772,
  /** Workers that may take chunks; those with this number or a higher one rest. */
  crew: 16784,
} as const;

/** Bits of `low` and of `high` in the ticket. */
export const chunkBits = 11;
