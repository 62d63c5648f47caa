/**
 * Entry point @polygrad/core/engine/threads: how loops are shaped for engines with groups of threads, and for those that may be of either kind.
 *
 * A separate entry, because some bundlers load everything that an entry names together: a page loads this with the engine of its GPU, later.
 */
export { keepRounding } from '@polygrad/compiler/arithmetic/rounded';
export { anyLowering, matrixLowering } from '../targets/any.ts';
export { threadLowering } from '../targets/threads.ts';
