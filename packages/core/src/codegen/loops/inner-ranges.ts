/**
 * Reductions inside others get ranges of their own where reductions outside bind the same ones.
 *
 * A row may be reduced and stored: where its elements are reductions themselves, each is computed in both places, over the same
 * ranges. Threads of a group share the one outside. The one inside is of an element that is one thread's, and stays its own.
 */
import type { Binder } from './work.ts';
import type { Exprs } from '../../ir/expr.ts';
import { FreeRanges, ownRanges, type Range } from '../../ir/free-ranges.ts';
import type { KNodeOf } from '../../ir/ir.ts';
import { idOf } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { nodesOf } from '../../ir/traverse.ts';
import type { LoopNest } from '../transforms/nest.ts';

/** The nest with all reductions but `outer` over ranges that none of `outer` binds; the same nest where nothing changes. */
export function bindApart(nest: LoopNest, outer: readonly Binder[]): LoopNest {
  const { e } = nest;
  const taken = new Set(outer.flatMap((b) => b.own));
  const around = new Set(outer.flatMap((b) => b.free));
  const free = new FreeRanges();
  const own = new Map<Range, Replacement>();
  for (let now = nest; ; ) {
    const inside = [...nodesOf(now.stores.map((s) => s.store))].filter(
      (n): n is KNodeOf<'REDUCE'> =>
        n.op === 'REDUCE' && ownRanges(n).some((r) => taken.has(r)) && free.of(n).some((r) => !around.has(r)),
    );
    if (inside.length === 0) return now;
    // What contains others first: they may depend on its ranges.
    const node = inside.reduce((x, y) => (idOf(x) > idOf(y) ? x : y));
    const changes = new Map<Range, Replacement>();
    for (const r of ownRanges(node)) {
      if (!taken.has(r)) continue;
      if (!own.has(r)) own.set(r, renamed(r, e));
      changes.set(r, own.get(r) as Replacement);
    }
    const inner = new Rewriter(e, changes, free);
    const apart = e.reduce(node.arg.op, inner.node(node.src[0]), inner.list(ownRanges(node)));
    now = now.with(node, apart, 'rename', changes.keys());
  }
}

function renamed(r: Range, e: Exprs): Replacement {
  const value = e.range(r.arg.extent, r.arg.kind, r.src[0]);
  return { value, ranges: [value] };
}
