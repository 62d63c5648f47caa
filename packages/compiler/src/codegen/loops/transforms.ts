/**
 * `LoopNest`: some stores, the replacements of their loops, and the list of transforms so far.
 *
 * Transforms (below) are functions from nest to nest. Replacements of loops are collected, and applied to expressions together when the
 * stores are needed, because rewriting expressions takes most of the time.
 */
import type { Exprs } from '../../ir/expr.ts';
import {
  divisorOf,
  endsAlone,
  lengthOf,
  limitOf,
  type Range,
  sizeLimit,
  sizeOf,
  splitNests,
  stretchesOf,
} from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel, LoopStore, RangeKind, Transform } from '../../ir/ir.ts';
import { assumeBounds, highOf, lowOf, nodesOf, sameNodes } from '../../ir/node.ts';
import { flattened, type Replacement, Rewriter, step } from '../../ir/rewrite.ts';
import type { NestWork } from './work.ts';

/** Replacements of loops. */
export type Changes = ReadonlyMap<Range, Replacement>;

export class LoopNest {
  readonly e: Exprs;
  /** The transforms so far, in order. */
  readonly done: readonly Transform[];
  /** Stores before the pending changes, and the changes; null if there are none. */
  base: readonly LoopStore[];
  changes: Changes | null;
  /** What it computes, once requested (codegen/loops/work.ts). */
  work: NestWork | undefined;

  constructor(e: Exprs, base: readonly LoopStore[], done: readonly Transform[] = [], changes: Changes | null = null) {
    this.e = e;
    this.base = base;
    this.done = done;
    this.changes = changes;
  }

  /** The stores with all changes applied. */
  get stores(): readonly LoopStore[] {
    if (this.changes !== null) {
      const rewriter = new Rewriter(this.e, this.changes);
      this.base = this.base.map((s) => rewriter.store(s));
      this.changes = null;
    }
    return this.base;
  }

  /** The loops that replace one. */
  loopsOf(r: Range): readonly Range[] {
    return this.changes?.get(r)?.ranges ?? [r];
  }

  /** The nest with other, equivalent stores, made by transform `name`; `changes` are still to be applied. */
  wrote(
    stores: readonly LoopStore[],
    name: string,
    loops: Iterable<Range>,
    args: Transform['args'] = [],
    made: readonly Range[] = [],
    changes: Changes | null = null,
  ): LoopNest {
    return new LoopNest(this.e, stores, [...this.done, step(name, loops, made, args)], changes);
  }

  /** The nest with one node computed in another way, by transform `name`. */
  with(from: KNode, to: KNode, name: string, loops: Iterable<Range>): LoopNest {
    const rewriter = new Rewriter(this.e, new Map());
    rewriter.set(from, to);
    return this.wrote(
      this.stores.map((s) => rewriter.store(s)),
      name,
      loops,
    );
  }

  /**
   * The nest with some loops replaced by transform `name`. They may be in the stores, or in the result of an earlier transform: then they are
   * replaced in that.
   */
  put(put: Changes, name: string, ...args: Transform['args']): LoopNest {
    const changes = new Map(this.changes);
    if ([...changes.values()].some(({ ranges }) => ranges.some((r) => put.has(r)))) {
      const rewriter = new Rewriter(this.e, put);
      for (const [r, { value, ranges }] of changes) {
        const now = rewriter.node(value);
        assumeBounds(now, lowOf(value), highOf(value));
        changes.set(r, { value: now, ranges: rewriter.list(ranges) });
      }
    }
    for (const [r, change] of put) changes.set(r, change);
    const made = [...put.values()].flatMap(({ ranges }) => ranges);
    return this.wrote(this.base, name, put.keys(), args, made, changes);
  }

  /** Separate nests of the stores that share loops. The first keeps the list of transforms. */
  parts(): readonly LoopNest[] {
    return splitNests(this.stores).map((stores, i) => new LoopNest(this.e, stores, i === 0 ? this.done : []));
  }
}

/** A kernel with its nests shaped by a policy. */
export function shaped(
  kernel: LoopKernel,
  e: Exprs,
  policy: (nests: readonly LoopNest[]) => readonly LoopNest[],
): LoopKernel {
  const nests = policy(new LoopNest(e, kernel.stores, kernel.transforms).parts());
  return { ...kernel, stores: nests.flatMap((n) => n.stores), transforms: nests.flatMap((n) => n.done) };
}

// Loop transforms that all policies use: functions from nest to nest that keep its meaning, and add themselves to its list.
//
// The policy decides which of them a nest gets (codegen/loops/).

/** Stretches that iterations are cut into. */
interface Stretches {
  /** The loop over them; null: there is one. Default: a new loop. */
  readonly outer?: Range | null;
  /** The end of the iterations, if known only at dispatch: a loop then ends early, while the number of groups stays and some have nothing to do. */
  readonly end?: KNode | null;
}

/** `n` iterations as outer * by + inner; the last stretch may be shorter. */
export function inChunks(
  e: Exprs,
  n: number,
  by: number,
  [outerKind, innerKind]: readonly [outer: RangeKind, inner: RangeKind],
  { outer = e.range(Math.ceil(n / by), outerKind), end = null }: Stretches = {},
): Replacement {
  if (end !== null) return inChunksTo(e, n, by, end, innerKind, outer);
  if (by === 1 && outer !== null) return { value: outer, ranges: [outer] };
  const start = outer === null ? e.i32(0) : e.mul(outer, by);
  const limit = n % by === 0 ? undefined : e.min(e.sub(n, start), by);
  if (limit !== undefined) assumeBounds(limit, 1, by);
  const inner = e.range(by, innerKind, limit);
  const value = e.add(start, inner);
  assumeBounds(value, 0, n - 1);
  return { value, ranges: outer === null ? [inner] : [outer, inner] };
}

function inChunksTo(
  e: Exprs,
  n: number,
  by: number,
  end: KNode,
  innerKind: RangeKind,
  outer: Range | null,
): Replacement {
  if (outer === null) {
    const inner = e.range(by, innerKind, end);
    return { value: inner, ranges: [inner] };
  }
  const { extent, kind } = outer.arg;
  const isGroup = kind === 'grid' || kind === 'local';
  // The number of groups stays the same: some of them have nothing to do here.
  const idle = isGroup && outer.src.length === 0;
  const stretches = isGroup ? outer : e.range(extent, kind, stretchesOf(e, end, by));
  if (by === 1 && !idle) return { value: stretches, ranges: [stretches] };
  const start = e.mul(stretches, by);
  const inner = e.range(by, innerKind, limitWithin(e, end, start, by, idle));
  const value = e.add(start, inner);
  assumeBounds(value, 0, n - 1);
  return { value, ranges: [stretches, inner] };
}

/** The end of the stretch from `start` on, unless all are whole; `idle`: the stretch may be empty. */
function limitWithin(e: Exprs, end: KNode, start: KNode, by: number, idle: boolean): KNode | undefined {
  if (!idle && divisorOf(end) % by === 0) return undefined;
  const limit = e.min(e.sub(end, start), by);
  if (idle) return e.max(limit, 0);
  assumeBounds(limit, 1, by);
  return limit;
}

/** A loop as two, with `by` iterations inside. Groups of a loop that ends at a size end with it. */
export function split(
  nest: LoopNest,
  r: Range,
  by: number,
  outer: RangeKind = r.arg.kind,
  inner: RangeKind = r.arg.kind,
): LoopNest {
  const { e } = nest;
  const n = r.arg.extent;
  const end = sizeLimit(r);
  const stretches = e.range(Math.ceil(n / by), outer, end === null ? undefined : stretchesOf(e, end, by));
  return nest.put(
    new Map([[r, inChunks(e, n, by, [outer, inner], { outer: stretches, end })]]),
    'split',
    by,
    outer,
    inner,
  );
}

/** Several loops as one flat index, which is itself split into loops: groups and their threads, for example. */
export function flatten(
  nest: LoopNest,
  loops: readonly Range[],
  change: Replacement,
  name: string,
  ...args: Transform['args']
): LoopNest {
  return nest.put(flattened(nest.e, loops, change, new Map()), name, ...args);
}

/** The loops of each store in another order; the sort is stable. */
export function reorder(nest: LoopNest, compare: (a: Range, b: Range) => number): LoopNest {
  let loops: readonly Range[] | null = null;
  const base = nest.base.map(({ store, ranges }) => {
    const sorted = [...ranges].sort(compare);
    if (!sameNodes(ranges, sorted)) loops ??= sorted;
    return { store, ranges: sorted };
  });
  return loops === null ? nest : nest.wrote(base, 'reorder', loops, [], [], nest.changes);
}

// Transforms for targets where a group is one thread: kinds of single loops, and loops cut in stretches.

/** A loop of another kind. */
export function as(nest: LoopNest, r: Range, kind: RangeKind): LoopNest {
  const { e, changes } = nest;
  const [limit] = r.src;
  const now = e.range(r.arg.extent, kind, limit && new Rewriter(e, changes ?? new Map()).node(limit));
  return nest.put(new Map([[r, { value: now, ranges: [now] }]]), kind);
}

/** Merges neighbouring loops, in place of the last. All lists that have one of them have all. */
export function merge(nest: LoopNest, loops: readonly Range[]): LoopNest {
  const one = nest.e.range(sizeOf(loops), loops[0]?.arg.kind, limitOf(nest.e, loops));
  return flatten(nest, loops, { value: one, ranges: [one] }, 'merge');
}

/**
 * Repeats the stores, which have the same loops, for each stretch of one of them (index set splitting). With `separate` the
 * stretches after the first are nests of their own, which share no loop with the others (peeling).
 */
export function cut(nest: LoopNest, r: Range, at: readonly number[], separate = false): LoopNest {
  const edges = [0, ...at, r.arg.extent];
  const parts = edges.slice(1).map((end, i): Stretch => ({ start: edges[i]!, extent: end - edges[i]! }));
  return inStretches(nest, r, parts, at, separate);
}

/** Repeats the stores for the whole multiples of `by` iterations of a loop, whose end depends on no other loop, and for the remainder. */
export function cutRest(nest: LoopNest, r: Range, by: number, separate = false): LoopNest {
  const { e } = nest;
  const { extent } = r.arg;
  const rest = extent % by;
  const end = sizeLimit(r);
  if (end === null) return cut(nest, r, [extent - rest], separate);
  const whole = e.mul(e.idiv(end, by), by);
  const parts: readonly Stretch[] = [
    { start: 0, extent: extent - rest, limit: whole },
    { start: whole, extent: Math.min(by - 1, extent), limit: e.irem(end, by) },
  ];
  return inStretches(nest, r, parts, [by], separate);
}

/** The nest for rows of `least` iterations of a loop and more, and separately for shorter ones: one of the two has nothing to do. */
export function cutShorter(nest: LoopNest, r: Range, least: number): LoopNest {
  const { e } = nest;
  const end = lengthOf(e, r);
  const isShort = e.lt(end, least);
  const parts: readonly Stretch[] = [
    { start: 0, extent: r.arg.extent, limit: e.where(isShort, 0, end) },
    { start: 0, extent: least - 1, limit: e.where(isShort, end, 0) },
  ];
  return inStretches(nest, r, parts, [least], true);
}

interface Stretch {
  readonly start: number | KNode;
  readonly extent: number;
  readonly limit?: KNode;
}

function inStretches(
  nest: LoopNest,
  r: Range,
  parts: readonly Stretch[],
  at: readonly number[],
  separate: boolean,
): LoopNest {
  const { e, stores } = nest;
  const all = parts.flatMap(({ start, extent, limit }, i) => {
    const changes = new Map<Range, Replacement>();
    for (const x of stores[0]?.ranges ?? []) {
      // A loop that ends early is made again with the loops it depends on.
      if (x !== r && (!separate || i === 0 || !endsAlone(x))) continue;
      const own = x === r ? e.range(extent, x.arg.kind, limit) : e.range(x.arg.extent, x.arg.kind, x.src[0]);
      const value = x === r ? e.add(own, start) : own;
      if (limit !== undefined && x === r) assumeBounds(value, 0, r.arg.extent - 1);
      changes.set(x, { value, ranges: [own] });
    }
    const rewriter = new Rewriter(e, changes);
    return stores.map((s) => rewriter.store(s));
  });
  return nest.wrote(all, separate ? 'peel' : 'cut', [r], at);
}

/** The nest with one loop moved inside all others of its stores. */
export function innermost(nest: LoopNest, r: Range): LoopNest {
  return reorder(nest, (a, b) => Number(a === r) - Number(b === r));
}

// Stores of a kernel of which only some results may be kept.

/** The stores rewritten, over `ranges`, executed where `kept` holds (null: everywhere). */
export function storesWhere(
  e: Exprs,
  stores: readonly LoopStore[],
  rewriter: Rewriter,
  kept: KNode | null,
  ranges: readonly Range[],
): LoopStore[] {
  if (kept === null) return stores.map((s) => ({ store: rewriter.store(s).store, ranges }));
  const gated = (gate: KNode | undefined): KNode => (gate === undefined ? kept : e.and(gate, kept));
  // A value updated in place must not even be read where another group may have written it.
  for (const load of mutableLoads(stores)) {
    const [memory, index, gate, alt] = load.src.map((s) => rewriter.node(s)) as [KNode, KNode, KNode?, KNode?];
    rewriter.set(load, e.load(memory, index, gated(gate), alt));
  }
  return stores.map((s) => {
    const { store } = rewriter.store(s);
    const [memory, index, value, gate] = store.src;
    return { store: e.store(memory, index, value, gated(gate)), ranges };
  });
}

/** True if the stores write something that depends on the old contents: then they may not run twice. */
export function readsWhatItWrites(stores: readonly LoopStore[]): boolean {
  return mutableLoads(stores).length > 0;
}

/** Loads from tensors that the stores write, outside of the sum. */
function mutableLoads(stores: readonly LoopStore[]): KNodeOf<'LOAD'>[] {
  const outside = nodesOf(
    stores.map((s) => s.store),
    (n) => (n.op === 'REDUCE' ? [] : n.src),
  );
  return [...outside].filter((n): n is KNodeOf<'LOAD'> => {
    const memory = n.src[0];
    return n.op === 'LOAD' && memory?.op === 'PARAM' && memory.arg.access === 'readwrite';
  });
}
