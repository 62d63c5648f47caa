/**
 * Entry point @polygrad/core/engine/shaping: `engine/vectors` without what legalizes small dtypes, for an engine that loads that later; and what
 * emitters and allocators for processors share.
 */
export { vectorShaping } from '../targets/vector-shaping.ts';
export { CodeTable } from '../engine/code-table.ts';
export { type GrowingMemory, Heap, HeapBuffers } from '../engine/heap.ts';
export { findRareSides, type RareSide } from '../ir/rare.ts';
export { operandsOf } from '../ir/operands.ts';
export { hostArrays } from '../shape/host.ts';
