/** What emitters that make addresses of index sums compute nodes from. */
import type { KNode } from './ir.ts';
import { linearOf } from './simplify/integers.ts';

/**
 * The values that the code of a node reads, each as often as it does. Of an index those are the terms its address is made of, so that sums
 * which dissolve into addresses are not computed a second time; registers are addressed by constants.
 *
 * @example
 * const e = new Exprs();
 * const i = e.range(8);
 * operandsOf(e.load(e.param(0, 'float32', 'read', 9), e.add(i, 1))).length; // 1
 */
export function operandsOf(n: KNode): readonly KNode[] {
  const { src } = n;
  if (n.op !== 'LOAD' && n.op !== 'STORE' && n.op !== 'ATOMIC') return src;
  if (src[0].op === 'REG') return src.slice(2);
  const { terms } = linearOf(src[1]);
  return src.length === 2 ? terms : [...terms, ...src.slice(2)];
}
