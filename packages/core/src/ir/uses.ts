/**
 * Which values of a program are needed, how often, and by whom.
 *
 * Statements are needed, and what needed nodes are made from. Emitters say what that is: one that makes addresses of index sums, or prints
 * two operations as one, needs other nodes than the sources.
 */
import type { KNode, Program } from './ir.ts';

/** The nodes that the code of a node is made from, where these are not its sources. */
export type Operands = (n: KNode) => readonly KNode[];

interface Use {
  count: number;
  /** Position of the last user. */
  at: number;
}

/** Uses of the values of one program. */
export class Uses {
  readonly #uses: Map<KNode, Use>;

  constructor(uses: Map<KNode, Use>) {
    this.#uses = uses;
  }

  /** How many operands of needed nodes the value is. */
  countOf(n: KNode): number {
    return this.#uses.get(n)?.count ?? 0;
  }

  /** The position in the body of the only node that uses the value, once; -1 where there is none or more. */
  onlyUserOf(n: KNode): number {
    const use = this.#uses.get(n);
    return use?.count === 1 ? use.at : -1;
  }
}

/**
 * True for nodes that do something besides giving a value.
 *
 * @example
 * const { program } = randomProgram(1);
 * program.body.filter(isStatement).every((n) => n.op === 'LOOP' || n.dtype === 'void'); // true
 */
export function isStatement(n: KNode): boolean {
  return n.dtype === 'void' || n.op === 'LOOP';
}

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
 * body.map((n) => uses.countOf(n)); // [1, 1, 2, 0, 0]
 */
export function usesOf(body: Program['body'], operands: Operands): Uses {
  const uses = new Map<KNode, Use>();
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at] as KNode;
    if (!isStatement(n) && !uses.has(n)) continue;
    for (const s of operands(n)) {
      const use = uses.get(s);
      if (use === undefined) uses.set(s, { count: 1, at });
      else use.count++;
    }
  }
  return new Uses(uses);
}
