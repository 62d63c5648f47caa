/** What engines with groups of threads bring along to have kernels shaped for them (`caps.lowering`). */
import { shapeSimt } from '../codegen/loops/gpu.ts';
import { acrossThreads } from '../codegen/linearize/group.ts';
import { startTuning } from '../tuning/automatic.ts';
import { choicesOf } from '../tuning/choices.ts';
import type { Lowering } from '../engine/engine.ts';
import { candidateTiles, threadContraction } from '../contraction/simt/choose.ts';
import { lowerSimt } from '../contraction/simt/gemm.ts';
import { nameOf } from '../contraction/simt/problem.ts';

/** For engines with groups of threads, workgroup memory and barriers, that compute in every dtype they hold. */
export const threadLowering: Lowering = {
  shape: shapeSimt,
  acrossThreads,
  sizes: true,
  contraction: (kernel, e, engine) => threadContraction(kernel, e, engine.caps, choicesOf(engine)),
  ways: (c, _kernel, e, caps) =>
    candidateTiles(c, caps).map((tile) => [nameOf(tile), () => lowerSimt(c, e, caps, tile)]),
  start: startTuning,
};
