/** A loop nest lowered with the default choices: loops by the policy of the target's kind, then statements. */
import type { LoopKernel } from '../ir/ir.ts';
import { linearize } from './linearize/linearize.ts';
import { optimize } from './loops/optimize.ts';
import type { CodegenCaps, Lowered } from './lowering.ts';

/** One dispatch, whose program has the parameters of the nest. */
export function lowerPlain(loop: LoopKernel, caps: CodegenCaps): Lowered {
  const program = linearize(optimize(loop, caps), caps);
  return { dispatches: [{ program, bindings: loop.params.map((_, param) => ({ param })) }], temps: [] };
}
