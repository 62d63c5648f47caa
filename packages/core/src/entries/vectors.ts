/**
 * Entry point @polygrad/core/engine/vectors: how loops are shaped for engines where a group is one thread, with vectors.
 *
 * A separate entry for the same reason as `engine/threads`: a page may load it with the engine of the CPU, later.
 */
export { vectorLowering } from '../targets/vectors.ts';
