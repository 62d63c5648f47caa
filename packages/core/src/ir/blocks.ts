/**
 * Where the blocks of a program open and close, and which one each node stands in. The builder's own blocks are in builder/blocks.ts.
 *
 * Kept with the body of the program, which is what it tells of: programs that share a body share it, and a new body has its own.
 */
import type { KNode, Program } from './ir.ts';

/** The blocks of a program's body, by position. */
export class Blocks {
  /** For each position, that of the LOOP or IF around it; -1 outside all blocks. What opens or ends a block stands in the one around. */
  readonly around: Int32Array;
  /** For the position of a LOOP or IF that of its end, and for an end that of what it ends; -1 for all other nodes. */
  readonly partner: Int32Array;
  /** What is wrong with how blocks open and close, or null. Then `around` and `partner` hold nothing to rely on. */
  readonly wrong: string | null;
  readonly #body: readonly KNode[];
  #positions: Map<KNode, number> | null = null;

  constructor(body: readonly KNode[]) {
    this.#body = body;
    this.around = new Int32Array(body.length);
    this.partner = new Int32Array(body.length).fill(-1);
    this.wrong = this.#match();
  }

  /** The position of a node in the body; undefined for one that does not stand there. */
  positionOf(n: KNode): number | undefined {
    if (this.#positions === null) {
      this.#positions = new Map();
      for (const [at, x] of this.#body.entries()) this.#positions.set(x, at);
    }
    return this.#positions.get(n);
  }

  #match(): string | null {
    const [body, around, partner] = [this.#body, this.around, this.partner];
    let open = -1;
    for (let at = 0; at < body.length; at++) {
      const { op } = body[at] as KNode;
      if (op === 'ENDLOOP' || op === 'ENDIF') {
        if (open < 0) return `${op} without a beginning`;
        const opener = (body[open] as KNode).op;
        if ((op === 'ENDLOOP') !== (opener === 'LOOP')) return `${op} ends ${opener}`;
        partner[open] = at;
        partner[at] = open;
        open = around[open] as number;
      }
      around[at] = open;
      if (op === 'LOOP' || op === 'IF') open = at;
    }
    let count = 0;
    for (; open >= 0; open = around[open] as number) count++;
    return count > 0 ? `${count} blocks are not closed` : null;
  }
}

const known = new WeakMap<Program['body'], Blocks>();

/**
 * The blocks of a program; found when first asked for, the same object ever after.
 *
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'int32', 'write', 4);
 * p.loop(4, (i) => p.store(y, i, i));
 * const program = p.build({ name: 'count' });
 * console.log(program.body.map((n) => n.op)); //=> [ 'CONST', 'PARAM', 'LOOP', 'STORE', 'ENDLOOP' ]
 * console.log([...blocksOf(program).around]); //=> [ -1, -1, -1, 2, -1 ]
 * console.log([...blocksOf(program).partner]); //=> [ -1, -1, 4, -1, 2 ]
 */
export function blocksOf({ body }: Program): Blocks {
  let blocks = known.get(body);
  if (blocks === undefined) known.set(body, (blocks = new Blocks(body)));
  return blocks;
}
