/**
 * Loops cut in two where they walk memory as two: what a reshape has merged and a tile, a repeat or a transpose takes apart again.
 *
 * A loop over r whose indices take r modulo d has an inner loop of d: r = a * d + b. With both open, b is an index as any other and its
 * stretches of memory are vectors, where r modulo d is a division for every element unless d is a multiple of a vector.
 */
import { leastInner } from '../costs/cpu.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { literalOf } from '../../ir/simplify/int.ts';
import { nodesOf } from '../../ir/traverse.ts';
import { split } from '../transforms/loops.ts';
import type { LoopNest } from '../transforms/nest.ts';

/** The nest with every loop split that divides evenly by what its index is taken modulo. */
export function splitRanges(nest: LoopNest): LoopNest {
  const found = evenDivision(nest.stores);
  return found === null ? nest : splitRanges(split(nest, found.range, found.by));
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
