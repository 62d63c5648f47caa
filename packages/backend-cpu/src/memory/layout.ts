/**
 * Where things lie at the start of the engine's WebAssembly memory. Numbers are byte addresses.
 *
 *     0            zero bytes, read by loads whose gate is false
 *     controlAt    words that threads use to hand out work, one cache line each
 *     argsAt       the args block of the running dispatch
 *     tableAt      per module: address, length and version of its bytes, for worker threads
 *     ringAt       numbers of the modules that changed last
 *     heapAt       everything else
 */

/** Emitted code may add constants below this to addresses after they were cut to 32 bits. */
export const lowBytes = 65536;

export const controlAt = 66560;
export const argsAt = 67584;
/** Most PARAM and SCALAR slots together. */
export const argSlots = 2048;
export const tableAt: number = argsAt + argSlots * 8;
export const tableSlots = 4096;
export const ringAt: number = tableAt + tableSlots * 16;
export const ringSlots = 1024;
export const heapAt: number = ringAt + ringSlots * 4;

/** Control words as indices into an Int32Array over the memory; 64 bytes apart so that they do not share a cache line. */
export const control = {
  /** Number of the dispatch in the upper 19 bits, chunks not yet taken in the lower 13. */
  ticket: controlAt / 4,
  /** Chunks finished. */
  done: controlAt / 4 + 16,
  /** Workers blocked in Atomics.wait. */
  sleepers: controlAt / 4 + 32,
  /** Workers that have started. */
  ready: controlAt / 4 + 48,
  /** Count of entries ever written to the ring. */
  events: controlAt / 4 + 64,
  /** 1 while the main thread is blocked waiting for `done`. */
  mainWaits: controlAt / 4 + 80,
  /** 1 once the engine is disposed. */
  stop: controlAt / 4 + 96,
  /** 1 if a chunk failed in a worker. */
  failed: controlAt / 4 + 112,
  /** The running dispatch: module slot, function, number of chunks, groups per chunk, groups. */
  slot: controlAt / 4 + 128,
  fn: controlAt / 4 + 129,
  chunks: controlAt / 4 + 130,
  chunkGroups: controlAt / 4 + 131,
  groups: controlAt / 4 + 132,
} as const;

/** Bits of the ticket that count chunks. */
export const chunkBits = 13;
