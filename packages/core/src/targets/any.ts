/**
 * What engines bring along that may be of either kind, or have a library. The two kinds have files of their own: a page with engines of one
 * kind carries nothing of the other.
 */
import { legalize } from '../arithmetic/legalize.ts';
import { reduceColumns } from '../codegen/linearize/columns.ts';
import { acrossThreads } from '../codegen/linearize/group.ts';
import { questionOf } from '../contraction/choice.ts';
import { byLibrary, type ContractionTemplate, hasSizes, worthwhile } from '../contraction/contraction.ts';
import { lowerTiled } from '../contraction/gemm.ts';
import { byThreads } from '../contraction/simt/choose.ts';
import type { Lowering } from '../engine/engine.ts';
import { startTuning } from '../tuning/automatic.ts';
import { choicesOf } from '../tuning/choices.ts';
import { threadLowering } from './threads.ts';
import { vectorLowering } from './vectors.ts';

const of = ({ simt }: { readonly simt: boolean }): Lowering => (simt ? threadLowering : vectorLowering);

/** Lowers a contraction by the choice of that name, or as its shape calls for. */
type ByChoice = typeof byThreads;

/** Lowers a kernel around a contraction by a library where that was measured faster, else by `others`; null where the plain loop nest is as good. */
const byLibraryOr =
  (others: ByChoice): ContractionTemplate =>
  (kernel, e, caps, choices) => {
    const c = worthwhile(kernel, e, caps);
    if (c === null) return null;
    const question = choices === undefined ? null : questionOf(c, caps, choices.library);
    if (question !== null && !hasSizes(c)) choices?.note(question.key, kernel, e);
    const chosen = question === null ? undefined : choices?.find(question.key);
    if (chosen === byLibrary && question?.product)
      return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
    return others(c, e, caps, chosen);
  };

/** By the engine's kind, or by a library. */
export const lowerContraction: ContractionTemplate = byLibraryOr((c, e, caps, chosen) =>
  caps.simt ? byThreads(c, e, caps, chosen) : lowerTiled(c, e, caps),
);
const threadsOrLibrary = byLibraryOr(byThreads);

/** For engines that are one or the other by `caps.simt`, and for those with a library. */
export const anyLowering: Lowering = {
  shape: (kernel, e, caps) => of(caps).shape(kernel, e, caps),
  acrossThreads,
  columns: reduceColumns,
  sizes: true,
  legalize,
  contraction: (kernel, e, engine) => lowerContraction(kernel, e, engine.caps, choicesOf(engine)),
  ways: (c, kernel, e, caps) => of(caps).ways(c, kernel, e, caps),
  start: startTuning,
};

/** As `threadLowering`, for engines whose products of matrices a library may compute. */
export const libraryLowering: Lowering = {
  ...threadLowering,
  contraction: (kernel, e, engine) => threadsOrLibrary(kernel, e, engine.caps, choicesOf(engine)),
};
