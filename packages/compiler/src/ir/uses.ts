/**
 * What emitters ask of programs: which values are needed, how often, and by whom; and which block each node stands in (below).
 *
 * Statements are needed, and what needed nodes are made from. Emitters say what that is: one that makes addresses of index sums, or prints
 * two operations as one, needs other nodes than the sources.
 */
import { told } from '#shown-as';
import { fault } from '../shape/errors.ts';
import type { KNode, Program } from './ir.ts';

/** The nodes that the code of a node is made from, where these are not its sources. */
export type Operands = (n: KNode) => readonly KNode[];

/** How often needed nodes are made from a value. */
export interface Use {
  readonly count: number;
  /** Where in the body its user stands, if it has but one. */
  readonly at: number;
}

/** The values that are needed. */
export type Uses = ReadonlyMap<KNode, Use>;

/**
 * Counts uses in one walk from the end of the body to its start.
 *
 * @param operands what needed nodes are made from, all of which come before them
 *
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'int32', 'write', 4);
 * p.loop(4, (i) => p.store(y, i, i));
 * const { body } = p.build({ name: 'count' });
 * const uses = usesOf(body, (n) => n.src);
 * body.map((n) => uses.get(n)?.count ?? 0); // [1, 1, 2, 0, 0]
 */
export function usesOf(body: Program['body'], operands: Operands): Uses {
  const uses = new Map<KNode, { count: number; readonly at: number }>();
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at]!;
    // Statements give no value, but for the counter of a LOOP.
    if (n.dtype !== 'void' && n.op !== 'LOOP' && !uses.has(n)) continue;
    const sources = operands(n);
    for (let i = 0; i < sources.length; i++) {
      const s = sources[i]!;
      const use = uses.get(s);
      if (use === undefined) uses.set(s, { count: 1, at });
      else use.count++;
    }
  }
  return uses;
}

// Which block of a program each node stands in. Where blocks end is in block-ends.ts, the blocks of the builder in builder/builder.ts.
//
// Keyed by the body of the program: programs that share a body share it, and a new body gets a new one.

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
    if (open >= 0) throw fault('kernel', told && 'unpaired blocks');
    known.set(body, around);
  }
  return around;
}
