/**
 * Order of the terms of an index sum inside a program: outer blocks first, constant last.
 *
 * `row * 768 + column + 1` with `row` from an outer loop is then computed as `(row * 768) + column`, whose first part
 * stays outside, and all accesses at constant distances share the sum before the constant.
 */
import type { Exprs } from '../expr.ts';
import type { KNode } from '../ir.ts';
import { fromLinear } from '../simplify/int.ts';
import { linearOf } from '../simplify/linear.ts';

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
