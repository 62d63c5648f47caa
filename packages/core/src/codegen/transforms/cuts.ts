/** Transforms of loops where a group is one thread: kinds of single loops, and loops cut in stretches. */
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { RangeKind } from '../../ir/ir.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { flatten, reorder } from './loops.ts';
import type { LoopNest } from './nest.ts';

/** A loop of another kind. */
export function as(nest: LoopNest, r: Range, kind: RangeKind): LoopNest {
  const { e, changes } = nest;
  const [limit] = r.src;
  const now = e.range(r.arg.extent, kind, limit && new Rewriter(e, changes ?? new Map()).node(limit));
  return nest.put(new Map([[r, { value: now, ranges: [now] }]]), kind);
}

/** Neighbouring loops as one, in the place of the last. All lists that have one of them have all. */
export function merge(nest: LoopNest, loops: readonly Range[]): LoopNest {
  const one = nest.e.range(sizeOf(loops), loops[0]?.arg.kind);
  return flatten(nest, loops, { value: one, ranges: [one] }, 'merge');
}

/**
 * The stores, which have the same loops, once for each stretch of one of them. With `apart` the stretches after the first are nests of their
 * own, which share no loop with the others.
 */
export function cut(nest: LoopNest, r: Range, at: readonly number[], apart = false): LoopNest {
  const { e, stores } = nest;
  const edges = [0, ...at, r.arg.extent];
  const all = edges.slice(1).flatMap((end, i) => {
    const start = edges[i]!;
    const changes = new Map<Range, Replacement>();
    for (const x of stores[0]?.ranges ?? []) {
      // A loop that ends early is made again with the loops it depends on.
      if (x !== r && (!apart || i === 0 || x.src.length > 0)) continue;
      const own = e.range(x === r ? end - start : x.arg.extent, x.arg.kind);
      changes.set(x, { value: x === r ? e.add(own, start) : own, ranges: [own] });
    }
    const rewriter = new Rewriter(e, changes);
    return stores.map((s) => rewriter.store(s));
  });
  return nest.wrote(all, apart ? 'peel' : 'cut', [r], at);
}

/** The nest with one loop inside all others of its stores. */
export function innermost(nest: LoopNest, r: Range): LoopNest {
  return reorder(nest, (a, b) => Number(a === r) - Number(b === r));
}
