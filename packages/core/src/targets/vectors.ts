/** What engines whose groups are one thread bring along to have kernels shaped for them (`caps.lowering`). */
import { legalize } from '@polygrad/compiler/arithmetic/legalize';
import type { Lowering } from '../engine/engine.ts';
import { vectorShaping } from './vector-shaping.ts';

/** For engines where a group is one thread, with vectors. */
export const vectorLowering: Lowering = { ...vectorShaping, legalize };
