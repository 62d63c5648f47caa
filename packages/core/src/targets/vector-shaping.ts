/**
 * How loops are shaped where a group is one thread, with vectors: all of `caps.lowering` but what legalizes small dtypes. Pages load that with
 * the first small dtype, and some bundlers load all that a file names together with it.
 */
import { shapeVectors } from '@polygrad/compiler/codegen/loops/cpu';
import { writeCopies } from '@polygrad/compiler/codegen/linearize/copies';
import { vectorContraction } from '@polygrad/compiler/contraction/gemm';
import { rareForms } from '#rare';
import type { Lowering } from '../engine/engine.ts';
import { planner } from '../planner/plan.ts';

/** For engines where a group is one thread, with vectors, which add `legalize` themselves where they do not compute in every dtype they hold. */
export const vectorShaping: Lowering = {
  shape: shapeVectors,
  rare: rareForms,
  copies: writeCopies,
  sizes: true,
  planner,
  contraction: (kernel, e, { caps }) => vectorContraction(kernel, e, caps),
};
