/**
 * Attention as programs, forward and backward, without scores in memory (FlashAttention).
 *
 * In: a spec with the operands (operands.ts). Out: dispatches. threads/ is for engines with groups of threads, processors/ for those
 * where a group is one thread. Tiles of threads may be measured on the device (ProgramChoices); otherwise they are guessed.
 */
import type { CodegenCaps, Lowered, Way } from '../../codegen/lowering.ts';
import type { ProgramChoices } from '../choices.ts';
import { ProgramSet } from '../program-set.ts';
import type { AttentionSpec, GradientSpec } from './operands.ts';
import { forwardByProcessors } from './processors/forward.ts';
import { gradientByProcessors } from './processors/gradients.ts';
import { addBlocks, type BlockProgram, isByMatrices, tilesOf } from './threads/blocks.ts';
import { forwardProgram } from './threads/forward.ts';
import { keysProgram, queriesProgram } from './threads/gradients.ts';
import { widened } from './wide.ts';

/** The spec with operands as groups of threads multiply them. */
function operandsFor<S extends AttentionSpec>(set: ProgramSet, spec: S, caps: CodegenCaps): S {
  return isByMatrices(spec, caps) ? spec : widened(set, spec, caps);
}

/** Adds programs for groups of threads, each with the tile that was measured for it, or the guess. */
function addPrograms<S extends AttentionSpec>(
  set: ProgramSet,
  spec: S,
  caps: CodegenCaps,
  programs: readonly BlockProgram<S>[],
  choices: ProgramChoices | undefined,
): void {
  const own = operandsFor(set, spec, caps);
  for (const program of programs) {
    const { names, key } = tilesOf(own, caps, program);
    // Programs for several sizes are not measured; they use what was measured for one.
    if (names.length > 1 && spec.sizes === null)
      choices?.ask(
        key,
        names.map((name): Way => [name, () => alone(spec, caps, program, name)]),
      );
    addBlocks(set, own, caps, program, choices?.find(key));
  }
}

/** A program by itself, with its operands, to be measured. */
function alone<S extends AttentionSpec>(spec: S, caps: CodegenCaps, program: BlockProgram<S>, tile: string): Lowered {
  const set = new ProgramSet('attention', caps, null);
  addBlocks(set, operandsFor(set, spec, caps), caps, program, tile);
  return set.result();
}

/** The program of attention. */
export function lowerAttention(spec: AttentionSpec, caps: CodegenCaps, choices?: ProgramChoices): Lowered {
  const set = new ProgramSet('attention', caps, spec.sizes);
  if (caps.simt) addPrograms(set, spec, caps, [forwardProgram], choices);
  else forwardByProcessors(set, widened(set, spec, caps), caps);
  return set.result();
}

/** The programs of its gradients. */
export function lowerAttentionGradient(spec: GradientSpec, caps: CodegenCaps, choices?: ProgramChoices): Lowered {
  const set = new ProgramSet('attention_gradient', caps, spec.sizes);
  if (caps.simt) {
    const programs = [
      ...(spec.part === 'keys' ? [] : [queriesProgram]),
      ...(spec.part === 'queries' ? [] : [keysProgram]),
    ];
    addPrograms(set, spec, caps, programs, choices);
  } else gradientByProcessors(set, widened(set, spec, caps), caps);
  return set.result();
}
