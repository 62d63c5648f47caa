/** Programs as objects: what makes them of their fields, and what people see of one. */
import { showAs } from '../shape/shown-as.ts';
import type { Program } from './ir.ts';

/** What JSON and Node's console show of a program. Its text is printProgram's (print.ts). */
export function outlineOf({ name, grid, group, params, scalars, body, cost }: Program): object {
  return { name, grid, group, params: params.length, scalars: scalars.length, nodes: body.length, cost };
}

/** What programs inherit. */
const face = showAs({} as Program, outlineOf, 'Program');

/** A program of these fields. */
export function programOf(fields: Program): Program {
  return Object.assign(Object.create(face) as Program, fields);
}
