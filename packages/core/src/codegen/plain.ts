/** A loop nest as it stands, lowered with the default choices: one dispatch. */
import type { CodegenCaps, Lowered } from './lowering.ts';
import { optimize } from './loops/optimize.ts';
import type { LoopKernel } from '../ir/ir.ts';
import { linearize } from './linearize/linearize.ts';

export function lowerPlain(loop: LoopKernel, caps: CodegenCaps): Lowered {
  const program = linearize(optimize(loop, caps), caps);
  return { dispatches: [{ program, bindings: loop.params.map((_, param) => ({ param })) }], temps: [] };
}
