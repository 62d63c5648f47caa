/**
 * Contractions on engines of either kind and on those with a library: which of the ways lowers a kernel, or none. The planner gets here by
 * `caps.lowering` (targets/any.ts).
 */
import { questionOf } from './choice.ts';
import { byLibrary, type ContractionTemplate } from './contract.ts';
import { worthwhile } from './contraction.ts';
import { lowerTiled } from './gemm.ts';
import { byThreads } from './simt/choose.ts';

/** Lowers a kernel around a contraction by the engine's kind, or by a library where that was measured faster; null where the plain
 * loop nest is as good. */
export const lowerContraction: ContractionTemplate = (kernel, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps);
  if (c === null) return null;
  const question = choices === undefined ? null : questionOf(c, caps, choices.library);
  if (question !== null) choices?.note(question.key, kernel, e);
  const chosen = question === null ? undefined : choices?.find(question.key);
  if (chosen === byLibrary && question?.product)
    return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
  return caps.simt ? byThreads(c, e, caps, chosen) : lowerTiled(c, e, caps);
};
