/** What `#listing` is outside published pages: the text of a program that is refused, in full. */
import { type Program, printProgram } from '@polygrad/core/kernel/ir';

export function listing(program: Program): string {
  return printProgram(program);
}
