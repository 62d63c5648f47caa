/**
 * Entry point @polygrad/core/engine/vectors: what engines whose groups are one thread bring along to have kernels shaped for them (`caps.lowering`).
 *
 * A separate entry for the same reason as `engine/threads`: a page may load it with the engine of the CPU, later.
 */
import { legalize } from '@polygrad/compiler/arithmetic/legalize';
import type { Lowering } from '../engine/engine.ts';
import { vectorShaping } from './vector-shaping.ts';

/** For engines where a group is one thread, with vectors. */
export const vectorLowering: Lowering = { ...vectorShaping, legalize };
