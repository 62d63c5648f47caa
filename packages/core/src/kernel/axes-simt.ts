/**
 * Loop choices for SIMT engines.
 *
 * Without long reductions one thread computes one element of the stores' common loops. With them, one group computes one
 * instance of the reductions: its threads take elements in turns and combine through shared memory, then spread over the
 * stores' remaining loops.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { type Binder, NestWork } from './axes-work.ts';
import { assumeBounds, type Exprs } from './expr.ts';
import type { Range } from './free-ranges.ts';
import type { KNode, LoopStore } from './ir.ts';
import { type Replacement, Rewriter } from './rewrite.ts';

/** Threads of a group where threads work alone, and where they reduce together. */
const aloneThreads = 64;
const togetherThreads = 256;
/** Reductions over at least this many elements are shared by a group. */
const longReduction = 128;
/** With at least this many independent instances, one thread each is parallel enough. */
const manyInstances = 16384;

function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((n, r) => n * r.arg.extent, 1);
}

interface Plan {
  readonly stores: readonly LoopStore[];
  readonly binders: readonly Binder[];
  /** Ranges taken by groups (together) or by threads (alone); the others are loops inside. */
  readonly spread: readonly Range[];
  readonly together: boolean;
}

/** All nests of a kernel with their loops spread over groups and threads. */
export function shapeSimt(nests: readonly (readonly LoopStore[])[], e: Exprs, caps: EngineCaps): LoopStore[] {
  const plans = nests.map(planNest);
  const wanted = plans.some((p) => p.together) ? togetherThreads : aloneThreads;
  const threads = 2 ** Math.floor(Math.log2(Math.min(wanted, caps.maxGroup)));
  return plans.flatMap((p) => (p.together ? shapeTogether(p, e, threads) : shapeAlone(p, e, threads)));
}

function planNest(stores: readonly LoopStore[]): Plan {
  const { binders } = new NestWork(stores);
  const shared = (stores[0]?.ranges ?? []).filter((r) => stores.every((s) => s.ranges.includes(r)));
  const outer = binders.filter((b) => b.free.every((r) => shared.includes(r)));
  const needed = shared.filter((r) => outer.some((b) => b.free.includes(r)));
  const long = outer.some((b) => sizeOf(b.own) >= longReduction);
  if (long && sizeOf(needed) < manyInstances) return { stores, binders: outer, spread: needed, together: true };
  // A range no reduction depends on would have every thread repeat the reductions.
  const spread = outer.length > 0 && needed.length > 0 && needed.length < shared.length ? needed : shared;
  return { stores, binders: outer, spread, together: false };
}

/** Expressions of ranges in terms of one flat index, the last range varying fastest. */
function decode(e: Exprs, ranges: readonly Range[], flat: KNode, changes: Map<Range, Replacement>): void {
  let rest = flat;
  for (let i = ranges.length - 1; i >= 0; i--) {
    const r = ranges[i] as Range;
    const extent = e.i32(r.arg.extent);
    changes.set(r, { value: i === 0 ? rest : e.irem(rest, extent), ranges: [] });
    rest = e.idiv(rest, extent);
  }
}

function shapeAlone({ stores, spread }: Plan, e: Exprs, threads: number): LoopStore[] {
  const total = sizeOf(spread);
  if (spread.length === 0 || total === 0) return [...stores];
  const grid = e.range(Math.ceil(total / threads), 'grid');
  const start = e.mul(grid, e.i32(threads));
  const local = e.range(
    threads,
    'local',
    total % threads === 0 ? undefined : e.min(e.sub(e.i32(total), start), e.i32(threads)),
  );
  const flat = e.add(start, local);
  assumeBounds(flat, 0, total - 1);
  const changes = new Map<Range, Replacement>();
  decode(e, spread, flat, changes);
  const rewriter = new Rewriter(e, changes);
  return stores.map((s) => {
    const { store, ranges } = rewriter.store(s);
    return { store, ranges: [grid, local, ...ranges] };
  });
}

function shapeTogether({ stores, binders, spread }: Plan, e: Exprs, threads: number): LoopStore[] {
  const changes = new Map<Range, Replacement>();
  const grid = e.range(sizeOf(spread), 'grid');
  decode(e, spread, grid, changes);
  // Positions of argument reductions are row-major over their ranges: only the first may be rounded up to whole turns.
  const isArg = (n: KNode): boolean => n.op === 'REDUCE' && (n.arg.op === 'argmax' || n.arg.op === 'argmin');
  for (const { own, node } of [...binders].sort((x, y) => Number(isArg(y.node)) - Number(isArg(x.node)))) {
    const taken = isArg(node) ? own[0] : own[own.length - 1];
    if (taken === undefined || node.op !== 'REDUCE') continue;
    const others = binders.filter((b) => b.own.includes(taken));
    if (others.some((b) => b.own.some((r) => changes.has(r)) || (isArg(b.node) && b.own[0] !== taken))) continue;
    const local = e.range(threads, 'local');
    const { value, turn } = takeTurns(e, local, taken.arg.extent, threads, 'reduce');
    changes.set(taken, { value, ranges: [turn, local] });
  }
  return stores.map((s) => {
    const inner = s.ranges.filter((r) => !spread.includes(r));
    if (inner.length === 0) return { store: new Rewriter(e, changes).store(s).store, ranges: [grid] };
    const total = sizeOf(inner);
    const local = e.range(threads, 'local');
    const { value, turn } = takeTurns(e, local, total, threads, 'serial');
    const own = new Map(changes);
    decode(e, inner, value, own);
    return { store: new Rewriter(e, own).store(s).store, ranges: [grid, local, turn] };
  });
}

/** Elements local, local + threads, ... below `total`, as turn * threads + local. */
function takeTurns(
  e: Exprs,
  local: Range,
  total: number,
  threads: number,
  kind: 'reduce' | 'serial',
): { value: KNode; turn: Range } {
  const limit = total % threads === 0 ? undefined : e.idiv(e.sub(e.i32(total + threads - 1), local), e.i32(threads));
  const turn = e.range(Math.ceil(total / threads), kind, limit);
  const value = e.add(e.mul(turn, e.i32(threads)), local);
  assumeBounds(value, 0, Math.max(0, total - 1));
  return { value, turn };
}
