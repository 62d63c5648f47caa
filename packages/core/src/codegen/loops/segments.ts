/**
 * Loops cut where conditions change: borders of padding, joints of concatenation.
 *
 * If an index condition is known to hold from some iteration on, the loop is cut there. In each segment the condition is
 * a constant and disappears, with it the gates of loads, so that the long inner segments run as plain vector code.
 */
import { leastSegment, mostSegments } from '../costs/cpu.ts';
import { type NestWork, workOf } from './work.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { combine, formBounds, linearOf, selectTerms } from '../../ir/simplify/linear.ts';
import { nodesOf } from '../../ir/traverse.ts';
import { cut, innermost } from '../transforms/cuts.ts';
import type { LoopNest } from '../transforms/nest.ts';

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
    const c = d.coefs[at] as number;
    const rest = selectTerms(d, (_, i) => i !== at, 1, d.offset);
    for (const bound of formBounds(rest)) {
      const cut = c > 0 ? Math.ceil(-bound / c) : Math.floor(bound / -c) + 1;
      if (cut > 0 && cut < along.arg.extent) cuts.add(cut);
    }
  }
  return [...cuts].sort((a, b) => a - b);
}
