/** A loop nest as it stands, lowered with the default choices: one dispatch. */
import type { EngineCaps } from '../engine/engine.ts';
import { optimize } from '../kernel/axes.ts';
import type { LoopKernel } from '../kernel/ir.ts';
import { linearize } from '../kernel/linearize.ts';
import type { Lowered } from './contract.ts';

export function lowerPlain(loop: LoopKernel, caps: EngineCaps): Lowered {
  const program = linearize(optimize(loop, caps), caps);
  return { dispatches: [{ program, bindings: loop.params.map((_, param) => ({ param })) }], temps: [] };
}
