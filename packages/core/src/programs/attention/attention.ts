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
import { keysByThreads, queriesByThreads } from './threads/gradients.ts';

/** The program of attention. */
export function lowerAttention(spec: AttentionSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet('attention', caps, spec.sizes);
  if (caps.simt) forwardByThreads(set, spec, caps);
  else forwardByProcessors(set, spec, caps);
  return set.result();
}

/** The programs of its gradients. */
export function lowerAttentionGradient(spec: GradientSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet('attention_gradient', caps, spec.sizes);
  if (caps.simt) {
    if (spec.part !== 'keys') queriesByThreads(set, spec, caps);
    if (spec.part !== 'queries') keysByThreads(set, spec, caps);
  } else gradientByProcessors(set, spec, caps);
  return set.result();
}
