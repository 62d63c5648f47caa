/** Programs as objects: what makes them of their fields, and what people see of one. */
import { showAs } from '#shown-as';
import type { Program } from './ir.ts';

/** What JSON and Node's console show of a program. Its text is printProgram's (print.ts). */
export function outlineOf({ name, grid, group, params, scalars, body, cost }: Program): object {
  return { name, grid, group, params: params.length, scalars: scalars.length, nodes: body.length, cost };
}

/** A program of these fields, which has nothing else. */
class ProgramObject {
  constructor(fields: Program) {
    Object.assign(this, fields);
  }
}

showAs(ProgramObject.prototype as Program, outlineOf, 'Program');

/** A program of these fields. */
export function programOf(fields: Program): Program {
  return new ProgramObject(fields) as Program;
}
