/** The programs of a lowered kernel as an engine takes them. */
import type { CodegenCaps, Lowered } from './lowering.ts';
import type { Program } from '../ir/ir.ts';

export function legalPrograms({ dispatches }: Lowered, caps: CodegenCaps): readonly Program[] {
  return dispatches.map(({ program }) => caps.lowering.legalize?.(program, caps) ?? program);
}
