/** The programs of a lowered kernel as an engine takes them. */
import type { EngineCaps } from '../engine/engine.ts';
import type { Program } from '../ir/ir.ts';
import type { Lowered } from './contract.ts';

export function legalPrograms({ dispatches }: Lowered, caps: EngineCaps): readonly Program[] {
  return dispatches.map(({ program }) => caps.lowering.legalize?.(program, caps) ?? program);
}
