/**
 * Loops cut where conditions change: borders of padding, joints of concatenation.
 *
 * If an index condition is known to hold from some iteration on, the loop is cut there. In each segment the condition is
 * a constant and disappears, with it the gates of loads, so that the long inner segments run as plain vector code.
 */
import { leastInner, leastSegment, mostSegments } from '../costs/cpu.ts';
import { type NestWork, workOf } from './work.ts';
import { cut, innermost, split } from '../transforms/loops.ts';
import type { LoopNest } from '../transforms/nest.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { combine, formHigh, formLow, linearOf, literalOf, selectTerms } from '../../ir/simplify/integers.ts';
import { nodesOf } from '../../ir/traverse.ts';

/** The nest with its unit-stride loop cut where conditions cut it. */
export function cutSegments(nest: LoopNest): LoopNest {
  const { stores } = nest;
  const work = workOf(nest);
  const along = work.unitRange();
  if (along === undefined || along.arg.extent < leastSegment || along.src.length > 0) return nest;
  if (work.binders.some((b) => !b.free.includes(along) && stores[0]?.ranges.length === 1)) return nest;
  const cuts = findCuts(stores, along, work);
  if (cuts.length === 0 || cuts.length >= mostSegments) return nest;
  const lengths = [...cuts, along.arg.extent].map((x, i) => x - (cuts[i - 1] ?? 0));
  return Math.max(...lengths) < leastSegment ? nest : cut(innermost(nest, along), along, cuts);
}

/** Iterations before which a condition changes for certain, in order. */
function findCuts(stores: readonly LoopStore[], along: Range, work: NestWork): number[] {
  const cuts = new Set<number>();
  const depends = (n: KNode): boolean => work.free.has(n, along);
  const roots = stores.map((s) => s.store).filter(depends);
  for (const n of nodesOf(roots, (n) => n.src.filter(depends))) {
    if (n.op !== 'LT' || n.src[0]?.dtype !== 'int32') continue;
    const d = combine(linearOf(n.src[0]), 1, linearOf(n.src[1] as KNode), -1);
    const at = d === null ? -1 : d.terms.indexOf(along);
    if (d === null || at < 0 || d.terms.some((t, i) => i !== at && work.free.has(t, along))) continue;
    // c * along + rest < 0, with the rest between low and high.
    const c = d.coefs[at]!;
    const rest = selectTerms(d, (_, i) => i !== at, 1, d.offset);
    for (const bound of [formLow(rest), formHigh(rest)]) {
      const cut = c > 0 ? Math.ceil(-bound / c) : Math.floor(bound / -c) + 1;
      if (cut > 0 && cut < along.arg.extent) cuts.add(cut);
    }
  }
  return [...cuts].sort((a, b) => a - b);
}

/**
 * Loops cut in two where they walk memory as two: what a reshape has merged and a tile, a repeat or a transpose takes apart again.
 *
 * A loop over r whose indices take r modulo d has an inner loop of d: r = a * d + b. With both open, b is an index as any other and its
 * stretches of memory are vectors, where r modulo d is a division for every element unless d is a multiple of a vector.
 */

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
