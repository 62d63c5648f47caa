/** Programs as objects: what makes them of their fields, and what people see of one. */
import { showAs } from '#shown-as';
import { dtypeInfo } from '../shape/dtype.ts';
import type { KNode, Program } from './ir.ts';
import { highOf, isArithmetic } from './node.ts';

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

// Rough cost of one group of a program: arithmetic operations and bytes moved to and from device memory.
//
// Counted from the text of the program with the largest trip counts of its loops; used for placement, work splitting and
// profiles, never for results.

/**
 * Cost of a group of `threads` threads, each of which runs the body. `typical` gives, for conditions of IFs, the part of all groups
 * that enter; for counts of LOOPs, how many steps they take on average where that is far from the most.
 */
export function costOf(body: readonly KNode[], typical: ReadonlyMap<KNode, number>, threads: number): Program['cost'] {
  let flops = 0;
  let bytes = 0;
  let weight = 1;
  const outer: number[] = [];
  for (let at = 0; at < body.length; at++) {
    const n = body[at]!;
    switch (n.op) {
      case 'LOOP':
        outer.push(weight);
        weight *= typical.get(n.src[0]) ?? Math.max(0, Math.min(highOf(n.src[0]), 2 ** 24));
        break;
      case 'IF':
        outer.push(weight);
        weight *= typical.get(n.src[0]) ?? 1;
        break;
      case 'ENDLOOP':
      case 'ENDIF':
        weight = outer.pop()!;
        break;
      case 'LOAD':
      case 'STORE':
      case 'ATOMIC': {
        const mem = n.src[0];
        if (mem.op === 'PARAM')
          bytes += weight * dtypeInfo[mem.dtype].bytes * (n.op === 'LOAD' ? n.lanes : (n.src[2]?.lanes ?? 1));
        break;
      }
      default:
        if (isArithmetic(n.op)) flops += weight * n.lanes * (n.op === 'FMA' || n.op === 'MULADD' ? 2 : 1);
    }
  }
  return { flops: Math.round(threads * flops), bytes: Math.round(threads * bytes) };
}
