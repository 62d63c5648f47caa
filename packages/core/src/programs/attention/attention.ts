/**
 * Attention as programs: forward, and its gradients, with no scores in memory. threads.ts is for groups of threads, processors.ts for
 * processors; operands.ts says what they are given.
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import { ProgramSet } from '../program-set.ts';
import type { AttentionSpec, GradientSpec } from './operands.ts';
import { forwardByProcessors, gradientByProcessors } from './processors.ts';
import { forwardByThreads, keysByThreads, queriesByThreads } from './threads.ts';

/** The program of attention. */
export function lowerAttention(spec: AttentionSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet('attention', caps);
  if (caps.simt) forwardByThreads(set, spec, caps);
  else forwardByProcessors(set, spec, caps);
  return set.result();
}

/** The programs of its gradients: those of queries, keys and values, one behind the other. */
export function lowerAttentionGradient(spec: GradientSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet('attention_gradient', caps);
  if (caps.simt) {
    queriesByThreads(set, spec, caps);
    keysByThreads(set, spec, caps);
  } else gradientByProcessors(set, spec, caps);
  return set.result();
}
