/**
 * Order of the terms of an index sum inside a program: outer blocks first, constant last.
 *
 * `row * 768 + column + 1` with `row` from an outer loop is then computed as `(row * 768) + column`, whose first part
 * stays outside, and all accesses at constant distances share the sum before the constant.
 */
import type { Exprs } from './expr.ts';
import type { KNode } from './ir.ts';
import { idOf, inner } from './node.ts';
import { fitsInt32, linearHigh, linearLow, linearOf } from './simplify-linear.ts';

/** The terms of an int32 sum that has several of them, or null. */
export function sumTerms(n: KNode): readonly KNode[] | null {
  if ((n.op !== 'ADD' && n.op !== 'SUB') || n.dtype !== 'int32' || n.lanes !== 1) return null;
  const form = linearOf(n);
  return form.terms.length < 2 || form.terms.includes(n) ? null : form.terms;
}

/** The same sum with its terms in placement order. */
export function depthOrdered(e: Exprs, n: KNode, depthOf: (term: KNode) => number): KNode {
  const form = linearOf(n);
  const order = form.terms.map((term, i) => ({ term, coef: form.coefs[i] as number, depth: depthOf(term) }));
  order.sort((a, b) => a.depth - b.depth || Number(a.coef < 0) - Number(b.coef < 0) || idOf(a.term) - idOf(b.term));
  let sum: KNode | null = null;
  let offset = form.offset;
  for (const { term, coef } of order) {
    const size = Math.abs(coef);
    const part: KNode = size === 1 ? term : e.intern('MUL', 'int32', 1, [term, e.i32(size)]);
    if (sum === null && coef < 0) {
      sum = offset === 0 ? e.intern('NEG', 'int32', 1, [part]) : e.intern('SUB', 'int32', 1, [e.i32(offset), part]);
      offset = 0;
    } else {
      sum = sum === null ? part : e.intern(coef < 0 ? 'SUB' : 'ADD', 'int32', 1, [sum, part]);
    }
  }
  if (offset !== 0) sum = e.intern('ADD', 'int32', 1, [sum as KNode, e.i32(offset)]);
  const [low, high] = [linearLow(form), linearHigh(form)];
  if (fitsInt32(low, high)) {
    const obj = inner(sum as KNode);
    obj.lo = Math.max(obj.lo, low);
    obj.hi = Math.min(obj.hi, high);
  }
  return sum as KNode;
}
