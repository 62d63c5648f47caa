/** What engines with groups of threads bring along to have kernels shaped for them (`caps.lowering`). */
import { shapeSimt } from '@polygrad/compiler/codegen/loops/gpu';
import { acrossThreads } from '@polygrad/compiler/codegen/linearize/group';
import { rareForms } from '#rare';
import { startTuning } from '../tuning/automatic.ts';
import { choicesOf } from '../tuning/choices.ts';
import type { Lowering } from '../engine/engine.ts';
import { planner } from '../planner/plan.ts';
import { candidateTiles, threadContraction } from '@polygrad/compiler/contraction/simt/choose';
import { lowerSimt } from '@polygrad/compiler/contraction/simt/gemm';
import { nameOf } from '@polygrad/compiler/contraction/simt/problem';

/** For engines with groups of threads, workgroup memory and barriers, that compute in every dtype they hold. */
export const threadLowering: Lowering = {
  shape: shapeSimt,
  acrossThreads,
  rare: rareForms,
  sizes: true,
  planner,
  contraction: (kernel, e, engine) => threadContraction(kernel, e, engine.caps, choicesOf(engine)),
  choices: choicesOf,
  ways: (c, _kernel, e, caps) =>
    candidateTiles(c, caps).map((tile) => [nameOf(tile), () => lowerSimt(c, e, caps, tile)]),
  start: startTuning,
};
