/**
 * Blocks of a program being written: the body, loops and IFs, as a tree until the program is built.
 */
import type { KNode, ProgramNode } from '../ir.ts';

export interface Block {
  readonly parent: Block | null;
  readonly depth: number;
  /** True where entering is not certain: IF, and loops that may run zero times. */
  readonly maybe: boolean;
  readonly items: (ProgramNode | Block)[];
  open: boolean;
}

/** An empty open block. */
export function newBlock(parent: Block | null, maybe: boolean): Block {
  return { parent, depth: parent === null ? 0 : parent.depth + 1, maybe, items: [], open: true };
}

/**
 * Writes the block backwards into `out`, leaving out values that nothing uses and blocks without effect. Recursion goes
 * as deep as loops are nested.
 */
export function writeBlock(block: Block, used: Set<KNode>, out: ProgramNode[]): boolean {
  const start = out.length;
  let effect = false;
  for (let i = block.items.length - 1; i >= 0; i--) {
    const item = block.items[i]!;
    if ('items' in item) {
      if (writeBlock(item, used, out)) effect = true;
      continue;
    }
    const { op } = item;
    if (op === 'STORE' || op === 'ATOMIC' || op === 'BARRIER') effect = true;
    else if (op === 'LOOP' || op === 'IF' || op === 'ENDLOOP' || op === 'ENDIF') {
      if (i === 0 && !effect) {
        out.length = start;
        return false;
      }
    } else if (!used.has(item)) continue;
    for (const s of item.src) used.add(s);
    out.push(item);
  }
  return effect;
}
