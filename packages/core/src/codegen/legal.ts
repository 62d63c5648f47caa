/** The programs of a lowered kernel as an engine takes them. */
import type { CodegenCaps } from './lowering.ts';
import type { Program } from '../ir/ir.ts';
import type { Lowered } from './lowering.ts';

export function legalPrograms({ dispatches }: Lowered, caps: CodegenCaps): readonly Program[] {
  return dispatches.map(({ program }) => caps.lowering.legalize?.(program, caps) ?? program);
}
