/**
 * Reductions that a group of threads computes together: its threads alternate over the elements and combine through shared memory,
 * then spread over the stores' remaining loops.
 *
 * If a thread's part of a row is small, its iterations are unrolled. What is read or computed for one reduction is the same
 * expression in the next one and in the stores, and stays in registers. Elements past the end of the row are moved back and
 * ignored. Contiguous memory is accessed in vectors.
 */
import { heldIterations } from '../costs/gpu.ts';
import { identityOf } from '../linearize/reduce.ts';
import type { Binder } from './work.ts';
import { type LoopNest, storesWhere } from './transforms.ts';
import type { KNode, KNodeOf, LoopStore } from '../../ir/ir.ts';
import { assumeBounds, idOf, isPosition, nodesOf, sameNodes } from '../../ir/node.ts';
import type { Exprs } from '../../ir/expr.ts';
import { endOf, FreeRanges, mostOf, type Range, ownRanges, sizeLimit, sizeOf } from '../../ir/free-ranges.ts';
import { type Replacement, Rewriter, decodeRanges } from '../../ir/rewrite.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';

export interface Together {
  readonly nest: LoopNest;
  readonly binders: readonly Binder[];
  /** Loops of which every combination is a group. */
  readonly spread: readonly Range[];
  /** Ranges that are whole vectors. */
  readonly byVectors: ReadonlySet<Range>;
  /** True if the few iterations are unrolled. */
  readonly held: boolean;
}

/** The elements of a thread: their position, the ranges that enumerate them, and when they exist (null: always). */
interface Share {
  readonly value: KNode;
  readonly ranges: readonly Range[];
  readonly inside: KNode | null;
}

/** The nest for groups of `threads` threads, a power of two, and vectors of `lanes` elements. */
export function shapeTogether(
  { nest, binders, spread, byVectors, held }: Together,
  threads: number,
  lanes: number,
): LoopNest {
  const { e, stores } = nest;
  const changes = new Map<Range, Replacement>();
  const grid = e.range(sizeOf(spread), 'grid', endOf(e, spread) ?? undefined);
  decodeRanges(e, spread, grid, changes);
  const gates = new Map<KNode, KNode>();
  // Positions of argument reductions are row-major over their ranges: only the first range may be rounded up.
  for (const { own, node } of [...binders].sort((x, y) => Number(isPosition(y.node)) - Number(isPosition(x.node)))) {
    const taken = isPosition(node) ? own[0] : own[own.length - 1];
    if (taken === undefined || node.op !== 'REDUCE') continue;
    const others = binders.filter((b) => b.own.includes(taken));
    if (others.some((b) => b.own.some((r) => changes.has(r)) || (isPosition(b.node) && b.own[0] !== taken))) continue;
    const whole = held && others.every((b) => b.own.length === 1 && isHeld(b.node));
    const share = shareOf(e, [taken], threads, {
      kind: 'reduce',
      held: whole,
      lanes: byVectors.has(taken) ? lanes : 1,
    });
    changes.set(taken, { value: share.value, ranges: share.ranges });
    if (share.inside !== null) for (const b of others) gates.set(b.node, share.inside);
  }
  // Stores of the same loops stay in the same loops: one may read what another writes to the same place.
  const known: { readonly inner: readonly Range[]; readonly stores: LoopStore[] }[] = [];
  for (const s of stores) {
    const inner = s.ranges.filter((r) => !spread.includes(r));
    const same = known.find((k) => sameNodes(k.inner, inner));
    if (same === undefined) known.push({ inner, stores: [s] });
    else same.stores.push(s);
  }
  const written = known.flatMap(({ inner, stores: group }) => {
    const own = new Map(changes);
    const last = inner[inner.length - 1];
    if (last === undefined) return rewritten(e, group, own, gates, null, [grid]);
    const width = byVectors.has(last) ? lanes : 1;
    const limit = sizeLimit(last);
    const blocks = e.range(last.arg.extent / width, 'loop', limit === null ? undefined : e.idiv(limit, width));
    const all = [...inner.slice(0, -1), blocks];
    const { value, ranges, inside } = shareOf(e, all, threads, { kind: 'serial', held, vectors: width > 1 });
    decodeRanges(e, all, value, own);
    const lane = width > 1 ? e.range(width, 'vector') : null;
    const first = own.get(blocks)!.value;
    own.set(last, { value: lane === null ? first : e.add(e.mul(first, width), lane), ranges: [] });
    const [turn, local] = ranges as [Range, Range];
    return rewritten(e, group, own, gates, inside, [grid, local, turn, ...(lane === null ? [] : [lane])]);
  });
  // In the original order.
  const all = stores.map(({ store }) => {
    const at = known.flatMap((k) => k.stores).findIndex((s) => s.store === store);
    return written[at]!;
  });
  return nest.wrote(all, 'share', changes.keys(), [threads]);
}

/** True if elements past the end can be ignored. */
function isHeld(n: KNode): boolean {
  return n.op === 'REDUCE' && !isPosition(n) && n.dtype !== 'bool' && dtypeInfo[n.dtype as DType].bytes >= 4;
}

/** The stores in terms of the new ranges; a reduction takes its neutral element for parts that do not exist. */
function rewritten(
  e: Exprs,
  stores: readonly LoopStore[],
  changes: ReadonlyMap<Range, Replacement>,
  gates: ReadonlyMap<KNode, KNode>,
  inside: KNode | null,
  ranges: readonly Range[],
): LoopStore[] {
  const rewriter = new Rewriter(e, changes);
  // Inner ones first: sources have smaller ids.
  for (const node of [...gates.keys()].sort((x, y) => idOf(x) - idOf(y)) as KNodeOf<'REDUCE'>[]) {
    const { op } = node.arg;
    const value = rewriter.node(node.src[0]);
    const gated = e.where(gates.get(node)!, value, identityOf(e, op, value.dtype as DType));
    rewriter.set(node, e.reduce(op, gated, rewriter.list(node.src.slice(1) as Range[])));
  }
  return storesWhere(e, stores, rewriter, inside, ranges);
}

/** How a thread goes through its elements. */
interface Turns {
  readonly kind: 'reduce' | 'serial';
  /** If they are few, they are unrolled. */
  readonly held: boolean;
  /** Elements of a vector. Default 1. */
  readonly lanes?: number;
  /** True if each is a vector, even where the loops count vectors. Default: if there are several lanes. */
  readonly vectors?: boolean;
}

/**
 * The elements of some loops for one thread, in vectors of `lanes`, those of neighbouring threads adjacent: vectors local, local +
 * threads, ...
 */
function shareOf(
  e: Exprs,
  loops: readonly Range[],
  threads: number,
  { kind, held, lanes = 1, vectors = lanes > 1 }: Turns,
): Share {
  const count = mostOf(loops) / lanes;
  const end = endOf(e, loops);
  const length = end === null ? e.i32(count) : e.idiv(end, lanes);
  const turns = Math.ceil(count / threads);
  const exact = end === null && count % threads === 0;
  const local = e.range(threads, 'local');
  const unrolled = held && count > 0 && turns <= heldIterations[vectors ? 'vectors' : 'elements'];
  const limit = exact || unrolled ? undefined : e.idiv(e.sub(e.add(length, threads - 1), local), threads);
  const turn = e.range(turns, unrolled ? 'unroll' : kind, limit);
  const nominal = e.add(e.mul(turn, threads), local);
  const moved = unrolled && !exact;
  const at = moved ? e.min(nominal, e.sub(length, 1)) : nominal;
  assumeBounds(at, 0, Math.max(0, count - 1));
  const inside = moved ? e.lt(nominal, length) : null;
  if (lanes === 1) return { value: at, ranges: [turn, local], inside };
  const lane = e.range(lanes, 'vector');
  return { value: e.add(e.mul(at, lanes), lane), ranges: [turn, local, lane], inside };
}

/**
 * Gives nested reductions distinct ranges if an outer one binds the same ranges.
 *
 * A row may be reduced and stored: if its elements are reductions themselves, each is computed in both places, over the same
 * ranges. Threads of a group share the outer one. The inner one is for an element of a single thread, which computes it alone.
 */

/** The nest in which all reductions except `outer` use ranges that none of `outer` binds; the same nest if nothing changes. */
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
    // The containing ones first: others may depend on their ranges.
    const node = inside.reduce((x, y) => (idOf(x) > idOf(y) ? x : y));
    const changes = new Map<Range, Replacement>();
    for (const r of ownRanges(node)) {
      if (!taken.has(r)) continue;
      if (!own.has(r)) own.set(r, renamed(r, e));
      changes.set(r, own.get(r)!);
    }
    const inner = new Rewriter(e, changes, free);
    const apart = e.reduce(node.arg.op, inner.node(node.src[0]), inner.list(ownRanges(node)));
    now = now.with(node, apart, 'rename', changes.keys());
  }
}

/** A new loop like another one. */
export function renamed(r: Range, e: Exprs): Replacement {
  const value = e.range(r.arg.extent, r.arg.kind, r.src[0]);
  return { value, ranges: [value] };
}
