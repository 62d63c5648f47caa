/** A loop nest as it stands, lowered with the default choices: one dispatch. */
import type { CodegenCaps, Lowered } from './lowering.ts';
import { optimize } from './loops/optimize.ts';
import { linearize } from './linearize/linearize.ts';
import type { LoopKernel, Program } from '../ir/ir.ts';

export function lowerPlain(loop: LoopKernel, caps: CodegenCaps): Lowered {
  const program = linearize(optimize(loop, caps), caps);
  return { dispatches: [{ program, bindings: loop.params.map((_, param) => ({ param })) }], temps: [] };
}

/** The programs of a lowered kernel as an engine takes them. */

export function legalPrograms({ dispatches }: Lowered, caps: CodegenCaps): readonly Program[] {
  return dispatches.map(({ program }) => caps.lowering.legalize?.(program, caps) ?? program);
}
