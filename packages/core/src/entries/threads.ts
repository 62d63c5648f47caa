/**
 * Entry point @polygrad/core/engine/threads: how loops are shaped for engines with groups of threads, and for those that may be of either kind.
 *
 * An entry of its own, because some bundlers load all that an entry names together with it: a page loads this with the engine of its GPU, later.
 */
export { keepRounding } from '@polygrad/compiler/arithmetic/rounded';
export { anyLowering } from '../targets/any.ts';
export { threadLowering } from '../targets/threads.ts';
export { matrixLowering } from '../targets/matrix.ts';
