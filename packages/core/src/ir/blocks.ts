/**
 * Which block of a program each node stands in. Where blocks end is in block-ends.ts, the blocks of the builder in builder/builder.ts.
 *
 * Kept with the body of the program, which is what it tells of: programs that share a body share it, and a new body has its own.
 */
import type { Program } from './ir.ts';

const known = new WeakMap<Program['body'], Int32Array>();

/**
 * For each position of the body, that of the LOOP or IF around it; -1 outside all blocks. A LOOP or IF stands outside the block it opens,
 * an ENDLOOP or ENDIF inside the one it ends. Found when first asked for, the same array ever after.
 *
 * @throws Error where a block does not end, or what ends did not begin
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'int32', 'write', 4);
 * p.loop(4, (i) => p.store(y, i, i));
 * const program = p.build({ name: 'count' });
 * console.log(program.body.map((n) => n.op)); //=> [ 'CONST', 'PARAM', 'LOOP', 'STORE', 'ENDLOOP' ]
 * console.log([...blocksOf(program)]); //=> [ -1, -1, -1, 2, 2 ]
 */
export function blocksOf({ body }: Program): Int32Array {
  let around = known.get(body);
  if (around === undefined) {
    around = new Int32Array(body.length);
    let open = -1;
    for (let at = 0; at < body.length; at++) {
      const { op } = body[at]!;
      around[at] = open;
      if (op === 'LOOP' || op === 'IF') open = at;
      // What ends without a beginning leaves open what never ends.
      if (op === 'ENDLOOP' || op === 'ENDIF') open = around[open] ?? body.length;
    }
    if (open >= 0) throw new Error('[kernel] unpaired blocks');
    known.set(body, around);
  }
  return around;
}
