/**
 * Loops cut in two where they walk memory as two: what a reshape has merged and a tile, a repeat or a transpose takes apart again.
 *
 * A loop over r whose indices take r modulo d has an inner loop of d: r = a * d + b. With both open, b is an index as any other and its
 * stretches of memory are vectors, where r modulo d is a division for every element unless d is a multiple of a vector.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { Rewriter } from '../../ir/rewrite.ts';
import { literalOf } from '../../ir/simplify/int.ts';
import { nodesOf } from '../../ir/traverse.ts';

/** Inner loops shorter than a vector would be worse. */
const leastInner = 4;

/** The stores with every loop cut that divides evenly by what its index is taken modulo. */
export function splitRanges(stores: readonly LoopStore[], e: Exprs): readonly LoopStore[] {
  let now = stores;
  for (let found = evenDivision(now); found !== null; found = evenDivision(now)) {
    const { range, by } = found;
    const outer = e.range(range.arg.extent / by, range.arg.kind);
    const inner = e.range(by, range.arg.kind);
    const value = e.add(e.mul(outer, by), inner);
    const rewriter = new Rewriter(e, new Map([[range, { value, ranges: [outer, inner] }]]));
    now = now.map((s) => rewriter.store(s));
  }
  return now;
}

/** A loop and the largest divisor of its length that its index is divided by. */
function evenDivision(stores: readonly LoopStore[]): { readonly range: Range; readonly by: number } | null {
  let found: { range: Range; by: number } | null = null;
  for (const n of nodesOf(stores.map((s) => s.store))) {
    if ((n.op !== 'IREM' && n.op !== 'IDIV') || n.src[0]?.op !== 'RANGE') continue;
    const range = n.src[0];
    const by = literalOf(n.src[1] as KNode) as number | null;
    if (by === null || by < leastInner || range.arg.extent % by !== 0 || range.src.length > 0) continue;
    if (found === null || by > found.by) found = { range, by };
  }
  return found;
}
