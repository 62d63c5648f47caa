/**
 * Attention as programs: forward, and its gradients, with no scores in memory. threads/ is for groups of threads, processors/ for processors;
 * operands.ts says what they are given.
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import { ProgramSet } from '../program-set.ts';
import type { AttentionSpec, GradientSpec } from './operands.ts';
import { forwardByProcessors } from './processors/forward.ts';
import { gradientByProcessors } from './processors/gradients.ts';
import { forwardByThreads } from './threads/forward.ts';
import { isByMatrices } from './threads/blocks.ts';
import { keysByThreads, queriesByThreads } from './threads/gradients.ts';
import { widened } from './wide.ts';

/** The program of attention. */
export function lowerAttention(spec: AttentionSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet('attention', caps, spec.sizes);
  if (!caps.simt) forwardByProcessors(set, widened(set, spec, caps), caps);
  else forwardByThreads(set, isByMatrices(spec, caps) ? spec : widened(set, spec, caps), caps);
  return set.result();
}

/** The programs of its gradients. */
export function lowerAttentionGradient(spec: GradientSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet('attention_gradient', caps, spec.sizes);
  if (caps.simt) {
    const own = isByMatrices(spec, caps) ? spec : widened(set, spec, caps);
    if (spec.part !== 'keys') queriesByThreads(set, own, caps);
    if (spec.part !== 'queries') keysByThreads(set, own, caps);
  } else gradientByProcessors(set, widened(set, spec, caps), caps);
  return set.result();
}
