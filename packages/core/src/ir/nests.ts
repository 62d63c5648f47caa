/**
 * Which stores of a kernel belong together.
 *
 * Stores are of one nest if they share a loop, or if they are outside all loops and share a reduction's ranges. Nests
 * are independent of each other and may run in different groups at the same time.
 */
import { ownRanges, type Range } from './free-ranges.ts';
import type { KNode, LoopStore } from './ir.ts';
import { nodesOf } from './traverse.ts';

/** The stores of a kernel by nest, in order of first appearance. */
export function splitNests(stores: readonly LoopStore[]): LoopStore[][] {
  const nests: { keys: Set<Range>; stores: LoopStore[] }[] = [];
  for (const s of stores) {
    const keys = s.ranges.length > 0 ? [s.ranges[0] as Range] : reduceRanges(s.store);
    const same = nests.filter((n) => keys.some((k) => n.keys.has(k)));
    const target = same[0] ?? { keys: new Set<Range>(), stores: [] };
    if (same.length === 0) nests.push(target);
    for (const other of same.slice(1)) {
      for (const k of other.keys) target.keys.add(k);
      target.stores.push(...other.stores);
      nests.splice(nests.indexOf(other), 1);
    }
    for (const k of keys) target.keys.add(k);
    target.stores.push(s);
  }
  return nests.map((n) => n.stores);
}

/** Ranges bound by the reductions of a store. */
export function reduceRanges(store: KNode): Range[] {
  return [...nodesOf([store])].flatMap((n) => (n.op === 'REDUCE' ? ownRanges(n) : []));
}
