/**
 * Transforms of loops that all policies use: functions from nest to nest that keep what the nest means, and add themselves to its list.
 *
 * Which of them a nest gets is the policy's choice (codegen/loops/).
 */
import type { Exprs } from '../../ir/expr.ts';
import { type Range, sameRanges, sizeOf } from '../../ir/free-ranges.ts';
import type { RangeKind, Transform } from '../../ir/ir.ts';
import { assumeBounds } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import type { LoopNest } from './nest.ts';
import { flattened } from './step.ts';

/** `n` iterations as outer * by + inner; the last stretch may be shorter. With `outer` null they are one stretch. */
export function inChunks(
  e: Exprs,
  n: number,
  by: number,
  outerKind: RangeKind,
  innerKind: RangeKind,
  outer: Range | null = e.range(Math.ceil(n / by), outerKind),
): Replacement {
  if (by === 1 && outer !== null) return { value: outer, ranges: [outer] };
  const start = outer === null ? e.i32(0) : e.mul(outer, by);
  const limit = n % by === 0 ? undefined : e.min(e.sub(n, start), by);
  if (limit !== undefined) assumeBounds(limit, 1, by);
  const inner = e.range(by, innerKind, limit);
  const value = e.add(start, inner);
  assumeBounds(value, 0, n - 1);
  return { value, ranges: outer === null ? [inner] : [outer, inner] };
}

/** A loop as two: `by` iterations inside. */
export function split(
  nest: LoopNest,
  r: Range,
  by: number,
  outer: RangeKind = r.arg.kind,
  inner: RangeKind = r.arg.kind,
): LoopNest {
  return nest.put(new Map([[r, inChunks(nest.e, r.arg.extent, by, outer, inner)]]), 'split', by, outer, inner);
}

/** Loops as one that is itself loops: groups and their threads, for example. */
export function flatten(
  nest: LoopNest,
  loops: readonly Range[],
  change: Replacement,
  name: string,
  ...args: Transform['args']
): LoopNest {
  return nest.put(flattened(nest.e, loops, change, new Map()), name, ...args);
}

/** The loops of each store in another order, those that compare alike as they were. */
export function reorder(nest: LoopNest, compare: (a: Range, b: Range) => number): LoopNest {
  let loops: readonly Range[] | null = null;
  const base = nest.base.map(({ store, ranges }) => {
    const sorted = [...ranges].sort(compare);
    if (!sameRanges(ranges, sorted)) loops ??= sorted;
    return { store, ranges: sorted };
  });
  return loops === null ? nest : nest.wrote(base, 'reorder', loops, [], [], nest.changes);
}

// Transforms of loops where a group is one thread: kinds of single loops, and loops cut in stretches.

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
