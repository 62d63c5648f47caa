/**
 * What engines bring along that may be of either kind, or have a library. The two kinds have files of their own: a page with engines of one
 * kind carries nothing of the other.
 */
import { legalize } from '../arithmetic/legalize.ts';
import { reduceColumns } from '../codegen/linearize/columns.ts';
import { acrossThreads } from '../codegen/linearize/group.ts';
import { startTuning } from '../tuning/automatic.ts';
import { choicesOf } from '../tuning/choices.ts';
import type { Lowering } from '../engine/engine.ts';
import { threadLowering } from './threads.ts';
import { vectorLowering } from './vectors.ts';
import { lowerContraction } from '../contraction/select.ts';

const of = ({ simt }: { readonly simt: boolean }): Lowering => (simt ? threadLowering : vectorLowering);

/** For engines that are one or the other by `caps.simt`, and for those with a library. */
export const anyLowering: Lowering = {
  shape: (kernel, e, caps) => of(caps).shape(kernel, e, caps),
  acrossThreads,
  columns: reduceColumns,
  legalize,
  contraction: (kernel, e, engine) => lowerContraction(kernel, e, engine.caps, choicesOf(engine)),
  ways: (c, kernel, e, caps) => of(caps).ways(c, kernel, e, caps),
  start: startTuning,
};
