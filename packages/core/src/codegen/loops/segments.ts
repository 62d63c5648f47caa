/**
 * Loops cut where conditions change: borders of padding, joints of concatenation.
 *
 * If an index condition is known to hold from some iteration on, the loop is cut there. In each segment the condition is
 * a constant and disappears, with it the gates of loads, so that the long inner segments run as plain vector code.
 */
import { NestWork } from './work.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { combine, formBounds, linearOf, selectTerms } from '../../ir/simplify/linear.ts';
import { nodesOf } from '../../ir/traverse.ts';

/** A cut pays if the longest segment has this many elements and there are not too many of them. */
const leastSegment = 4;
const mostSegments = 5;

/** The stores of a nest, each repeated for the segments of its unit-stride loop where conditions cut that loop. */
export function cutSegments(stores: readonly LoopStore[], e: Exprs): readonly LoopStore[] {
  const work = new NestWork(stores);
  const along = work.unitRange();
  if (along === undefined || along.arg.extent < leastSegment || along.src.length > 0) return stores;
  if (work.binders.some((b) => !b.free.includes(along) && stores[0]?.ranges.length === 1)) return stores;
  const cuts = findCuts(stores, along, work);
  if (cuts.length === 0 || cuts.length >= mostSegments) return stores;
  const edges = [0, ...cuts, along.arg.extent];
  const lengths = edges.slice(1).map((x, i) => x - (edges[i] as number));
  if (Math.max(...lengths) < leastSegment) return stores;
  return cutAt(stores, along, cuts, e);
}

/** The stores, which have the same ranges, once for each part of `along` between the cuts. */
export function cutAt(stores: readonly LoopStore[], along: Range, cuts: readonly number[], e: Exprs): LoopStore[] {
  const list = stores[0]?.ranges ?? [];
  const edges = [0, ...cuts, along.arg.extent];
  const lengths = edges.slice(1).map((x, i) => x - (edges[i] as number));
  const outer = list.filter((r) => r !== along);
  return lengths.flatMap((n, i) => {
    const segment = e.range(n, along.arg.kind);
    const value = e.add(segment, edges[i] as number);
    const rewriter = new Rewriter(e, new Map([[along, { value, ranges: [segment] }]]));
    return stores.map(({ store }) => ({
      store: rewriter.store({ store, ranges: [] }).store,
      ranges: [...outer, segment],
    }));
  });
}

/** The stores with loops of their own. */
export function apart(stores: readonly LoopStore[], e: Exprs): LoopStore[] {
  const changes = new Map<Range, Replacement>();
  for (const r of stores[0]?.ranges ?? []) {
    const own = e.range(r.arg.extent, r.arg.kind);
    changes.set(r, { value: own, ranges: [own] });
  }
  const rewriter = new Rewriter(e, changes);
  return stores.map((s) => rewriter.store(s));
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
