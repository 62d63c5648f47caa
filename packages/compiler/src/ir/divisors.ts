/**
 * What emitters ask besides `uses.ts` and `folding.ts`: which powers of two divide an index, so that whole vectors are loaded and stored, and
 * what a kernel is called.
 */
import type { KNode } from './ir.ts';

const most = 1 << 16;

/**
 * A power of two that certainly divides an integer value. `known` has those of its sources; missing ones count as 1.
 *
 * @example
 * const e = new Exprs();
 * divisorOf(e.i32(12), new Map()); // 4
 */
export function divisorOf(n: KNode, known: ReadonlyMap<KNode, number>): number {
  const of = (i: number): number => known.get(n.src[i]!) ?? 1;
  switch (n.op) {
    case 'CONST': {
      const value = Number(n.arg.value);
      return value === 0 ? most : Math.min(most, value & -value);
    }
    case 'MUL':
      return Math.min(most, of(0) * of(1));
    case 'SHL':
      return n.src[1]?.op === 'CONST' ? Math.min(most, of(0) * 2 ** (Number(n.src[1].arg.value) & 31)) : of(0);
    case 'AND':
      return Math.max(of(0), of(1));
    case 'ADD':
    case 'SUB':
    case 'MAX':
    case 'MIN':
    case 'OR':
    case 'XOR':
      return Math.min(of(0), of(1));
    case 'WHERE':
      return Math.min(of(1), of(2));
    case 'NEG':
      return of(0);
    default:
      return 1;
  }
}

/**
 * A name of letters, digits and single underscores that begins with a letter: what kernels and memories are called in a target's language.
 *
 * @example
 * identifier('sum of 2 x 3'); // 'sum_of_2_x_3'
 */
export function identifier(text: string): string {
  const plain = text.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_+|_+$/g, '');
  return /^[A-Za-z]/.test(plain) ? plain : `k_${plain}`;
}
