/**
 * Where things lie at the start of the engine's WebAssembly memory. Numbers are byte addresses.
 *
 *     0            zero bytes, read by loads whose gate is false
 *     66560        words that threads use to hand out work, one cache line each (threads/control.ts)
 *     argsAt       the args block of the running dispatch
 *     tableAt      per module: address, length and version of its bytes, for worker threads
 *     ringAt       numbers of the modules that changed last
 *     heapAt       everything else
 */

/** Emitted code may add constants below this to addresses after they were cut to 32 bits. */
export const lowBytes = 65536;

export const argsAt = 67584;
/** Most PARAM slots, and most SCALAR slots; 8 bytes each, scalars behind all parameters. */
export const argSlots = 1024;
export const scalarOffset: number = argSlots * 8;
export const tableAt: number = argsAt + 2 * scalarOffset;
export const tableSlots = 4096;
export const ringAt: number = tableAt + tableSlots * 16;
export const ringSlots = 1024;
export const heapAt: number = ringAt + ringSlots * 4;
