/**
 * Which values of a program are needed, how often, and by whom.
 *
 * Statements are needed, and what needed nodes are made from. Emitters say what that is: one that makes addresses of index sums, or prints
 * two operations as one, needs other nodes than the sources.
 */
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
    const n = body[at] as KNode;
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
