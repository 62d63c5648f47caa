/**
 * Entry point @polygrad/core/engine/planned: what an engine runs plans with that an earlier process, or a build, has made. Nothing of what makes plans, because some
 * bundlers load all that an entry names together with it.
 */
export { CodeTable, type PackedProgram, packProgram, sameCode } from '@polygrad/compiler/ir/packed';
export { Heap, HeapBuffers } from '../engine/heap.ts';
export { LateCode, laterLowering } from '../targets/later.ts';
export { hasPlansFor } from '../stored/context.ts';
export type { Program } from '@polygrad/compiler/ir/ir';
