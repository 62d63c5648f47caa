/**
 * Entry point @polygrad/core/engine/shaping: `engine/vectors` without what legalizes small dtypes, for an engine that loads that later; and the
 * allocator of engines on processors.
 */
export { vectorShaping } from '../targets/vector-shaping.ts';
export { type Block, type GrowingMemory, Heap } from '../engine/heap.ts';
