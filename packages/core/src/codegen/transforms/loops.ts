/**
 * Transforms of loops that all policies use: functions from nest to nest that keep what the nest means, and add themselves to its list.
 *
 * Which of them a nest gets is the policy's choice (codegen/loops/).
 */
import type { Exprs } from '../../ir/expr.ts';
import { type Range, sameRanges } from '../../ir/free-ranges.ts';
import type { RangeKind, Transform } from '../../ir/ir.ts';
import { assumeBounds } from '../../ir/node.ts';
import type { Replacement } from '../../ir/rewrite.ts';
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
