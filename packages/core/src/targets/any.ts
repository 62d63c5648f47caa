/**
 * Lowering for engines that may be of either kind, have a library, or multiply tiles of matrices (`caps.matrix`). Each kind has a separate file: a page
 * with engines of one kind carries nothing of the other.
 */
import { legalize } from '@polygrad/compiler/arithmetic/legalize';
import { writeCopies } from '@polygrad/compiler/codegen/linearize/copies';
import { sideBySide } from '@polygrad/compiler/codegen/loops/beside';
import { acrossThreads } from '@polygrad/compiler/codegen/linearize/group';
import { questionOf } from '@polygrad/compiler/contraction/choice';
import { worthwhile } from '@polygrad/compiler/contraction/contraction';
import { lowerPlain } from '@polygrad/compiler/codegen/plain';
import { byLibrary, byTiles, type ContractionTemplate } from '@polygrad/compiler/contraction/template';
import { paysFor } from '@polygrad/compiler/contraction/choose';
import { lowerTiled } from '@polygrad/compiler/contraction/gemm';
import { byThreads } from '@polygrad/compiler/contraction/simt/choose';
import { stagedContraction, stagedWays } from '@polygrad/compiler/contraction/simt/staged';
import { rareForms } from '#rare';
import type { Lowering } from '../engine/engine.ts';
import { planner } from '../planner/plan.ts';
import { startTuning } from '../tuning/automatic.ts';
import { choicesOf } from '../tuning/choices.ts';
import { threadLowering } from './threads.ts';
import { vectorShaping } from './vector-shaping.ts';

const of = ({ simt }: { readonly simt: boolean }): Lowering => (simt ? threadLowering : vectorShaping);

/**
 * Lowers a kernel around a contraction by the engine's kind, or by a library where that was measured faster; null where the plain loop nest is
 * as good.
 */
export const lowerContraction: ContractionTemplate = (kernel, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps, caps.simt ? undefined : paysFor);
  if (c === null) return null;
  const question = choices === undefined ? null : questionOf(c, caps, choices.library);
  if (question !== null) choices?.note(question.key, kernel, e);
  const chosen = question === null ? undefined : choices?.find(question.key);
  if (chosen === byLibrary && question?.product)
    return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
  return caps.simt ? byThreads(c, e, caps, chosen) : lowerTiled(c, e, caps);
};

/** For engines that are one or the other by `caps.simt`, and for those with a library. */
export const anyLowering: Lowering = {
  shape: (kernel, e, caps) => of(caps).shape(kernel, e, caps),
  acrossThreads,
  beside: sideBySide,
  rare: rareForms,
  copies: writeCopies,
  sizes: true,
  planner,
  legalize,
  contraction: (kernel, e, engine) => lowerContraction(kernel, e, engine.caps, choicesOf(engine)),
  choices: choicesOf,
  ways: (c, kernel, e, caps) =>
    caps.simt
      ? threadLowering.ways!(c, kernel, e, caps)
      : [[byTiles, () => lowerTiled(c, e, caps) ?? lowerPlain(kernel, caps)]],
  start: startTuning,
};

const byStages = /* @__PURE__ */ stagedContraction(lowerContraction);

/**
 * For engines with groups of threads that compute in every dtype they hold. They may have a library, and multiply tiles of matrices where their
 * `caps` list some.
 */
export const matrixLowering: Lowering = {
  ...threadLowering,
  beside: sideBySide,
  contraction: (kernel, e, engine) => byStages(kernel, e, engine.caps, choicesOf(engine)),
  ways: (c, _kernel, e, caps) => stagedWays(c, e, caps),
};
