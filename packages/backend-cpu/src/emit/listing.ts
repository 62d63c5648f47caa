/** What `#listing` is outside published pages: the text of a program that is refused, in full. */
import { type Program, printProgram } from '@polygrad/core/kernel/ir';

export function listing(program: Program): string {
  return printProgram(program);
}

/** Whether errors say which rule of the emitter a program breaks. Constant, so that bundlers leave texts out. */
export const told: boolean = true;
