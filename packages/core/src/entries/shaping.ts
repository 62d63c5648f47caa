/**
 * Entry point @polygrad/core/engine/shaping: `engine/vectors` without what legalizes small dtypes, for an engine that loads that later; and what
 * emitters and allocators for processors share.
 */
export { vectorShaping } from '../targets/vector-shaping.ts';
export { CodeTable } from '@polygrad/compiler/ir/packed';
export { type GrowingMemory, Heap, HeapBuffers } from '../engine/heap.ts';
export { findRareSides, type RareSide } from '@polygrad/compiler/ir/rare';
export { unrollFactor } from '@polygrad/compiler/ir/unroll';
export { operandsOf } from '@polygrad/compiler/ir/operands';
export { hostArrays } from '@polygrad/compiler/shape/host';
