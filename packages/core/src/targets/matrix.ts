/** What engines with tiles of matrices (`caps.matrix`) bring along to have kernels shaped for them. Apart from threads.ts: pages have none. */
import { stagedContraction, stagedWays } from '@polygrad/compiler/contraction/simt/staged';
import { sideBySide } from '@polygrad/compiler/codegen/loops/beside';
import type { Lowering } from '../engine/engine.ts';
import { choicesOf } from '../tuning/choices.ts';
import { lowerContraction } from './any.ts';
import { threadLowering } from './threads.ts';

const contraction = stagedContraction(lowerContraction);

/** For engines with groups of threads that compute in every dtype they hold, may have a library, and multiply tiles of matrices where their `caps` list some. */
export const matrixLowering: Lowering = {
  ...threadLowering,
  beside: sideBySide,
  contraction: (kernel, e, engine) => contraction(kernel, e, engine.caps, choicesOf(engine)),
  ways: (c, _kernel, e, caps) => stagedWays(c, e, caps),
};
