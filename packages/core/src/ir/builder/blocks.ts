/**
 * Blocks of a program being written: the body, loops and IFs, as a tree until the program is built.
 */
import type { Exprs } from '../expr.ts';
import type { KNode, ProgramNode } from '../ir.ts';
import type { Known } from '../node.ts';
import { fromLinear } from '../simplify/int.ts';
import { linearOf } from '../simplify/linear.ts';

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
export function writeBlock(block: Block, used: number, out: ProgramNode[]): boolean {
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
    } else if ((item as Known).mark !== used) continue;
    const { src } = item;
    for (let k = 0; k < src.length; k++) (src[k] as Known).mark = used;
    out.push(item);
  }
  return effect;
}

// Order of the terms of an index sum inside a program: outer blocks first, constant last.
//
// `row * 768 + column + 1` with `row` from an outer loop is then computed as `(row * 768) + column`, whose first part
// stays outside, and all accesses at constant distances share the sum before the constant.

/** The terms of an int32 sum that has several of them, or null. */
export function sumTerms(n: KNode): readonly KNode[] | null {
  if ((n.op !== 'ADD' && n.op !== 'SUB') || n.dtype !== 'int32' || n.lanes !== 1) return null;
  const form = linearOf(n);
  return form.terms.length < 2 || form.terms.includes(n) ? null : form.terms;
}

/** The same sum with its terms in placement order. */
export function depthOrdered(e: Exprs, n: KNode, depthOf: (term: KNode) => number): KNode {
  const form = linearOf(n);
  const depths = form.terms.map(depthOf);
  return fromLinear(e, form, (i, j) => depths[i]! - depths[j]!);
}
