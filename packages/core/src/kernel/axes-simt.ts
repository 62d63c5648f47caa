/**
 * Loop choices for SIMT engines.
 *
 * Without long reductions one thread computes one element of the stores' common loops, or one vector of them where there are
 * many, in turns where there are very many. With them, one group computes one instance of the reductions: its threads take
 * elements in turns and combine through shared memory, then spread over the stores' remaining loops.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { findTranspose, shapeTranspose, type Transpose } from './axes-transpose.ts';
import { type Binder, NestWork } from './axes-work.ts';
import { assumeBounds, type Exprs } from './expr.ts';
import type { Range } from './free-ranges.ts';
import type { KNode, LoopStore } from './ir.ts';
import { vectorLanes } from './linearize-vector.ts';
import { decodeRanges, type Replacement, Rewriter } from './rewrite.ts';

/** Threads of a group where threads work alone, and at least and at most where they reduce together. */
const aloneThreads = 64;
const leastTogether = 32;
const togetherThreads = 256;
/** Elements of a reduction for one of the threads that share it. */
const elementsEach = 4;
/** Reductions over at least this many elements are shared by a group; over this many where these lie side by side in memory. */
const longReduction = 128;
const longRow = 32;
/** With at least this many independent instances, one thread each is parallel enough. */
const manyInstances = 16384;
/** The same where threads of a group run one after another. */
const someInstances = 32;
/** Vectors from which on each thread takes one; threads from which on each takes several turns, and the most of those. */
const manyVectors = 16384;
const manyThreads = 2 ** 20;
const mostTurns = 16;

function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((n, r) => n * r.arg.extent, 1);
}

interface Plan {
  readonly stores: readonly LoopStore[];
  readonly binders: readonly Binder[];
  /** Ranges taken by groups (together) or by threads (alone); the others are loops inside. */
  readonly spread: readonly Range[];
  /** Elements of the reductions that a group shares; 0: threads work alone. */
  readonly together: number;
  /** The range of which each thread takes a vector, if any. */
  readonly along: Range | null;
  readonly transpose: Transpose | null;
}

/** All nests of a kernel with their loops spread over groups and threads. */
export function shapeSimt(nests: readonly (readonly LoopStore[])[], e: Exprs, caps: EngineCaps): LoopStore[] {
  const plans = nests.map((nest) => planNest(nest, caps));
  const elements = plans.reduce((n, p) => Math.max(n, p.together), 0);
  const wanted =
    elements === 0 ? aloneThreads : Math.max(leastTogether, Math.min(togetherThreads, elements / elementsEach));
  const threads = 2 ** Math.floor(Math.log2(Math.min(wanted, caps.maxGroup)));
  return plans.flatMap((p) =>
    p.transpose !== null
      ? shapeTranspose(p.stores, p.transpose, e, threads)
      : p.together > 0
        ? shapeTogether(p, e, threads)
        : shapeAlone(p, e, threads, vectorLanes(p.stores, caps)),
  );
}

function planNest(stores: readonly LoopStore[], caps: EngineCaps): Plan {
  const transpose = findTranspose(stores, caps);
  if (transpose !== null) return { stores, binders: [], spread: [], together: 1024, along: null, transpose };
  const work = new NestWork(stores);
  const shared = (stores[0]?.ranges ?? []).filter((r) => stores.every((s) => s.ranges.includes(r)));
  const outer = work.binders.filter((b) => b.free.every((r) => shared.includes(r)));
  const needed = shared.filter((r) => outer.some((b) => b.free.includes(r)));
  const elements = outer.reduce((n, b) => Math.max(n, sizeOf(b.own)), 0);
  const alone = caps.sharedIsMemory === true;
  const inRows = !alone && outer.some((b) => sizeOf(b.own) >= longRow && isRow(b, work));
  const isLong = inRows || (elements >= longReduction && sizeOf(needed) < (alone ? someInstances : manyInstances));
  if (isLong) return { stores, binders: outer, spread: needed, together: elements, along: null, transpose };
  // A range no reduction depends on would have every thread repeat the reductions.
  const spread = outer.length > 0 && needed.length > 0 && needed.length < shared.length ? needed : shared;
  const along = outer.length === 0 ? vectorRange(work, spread, vectorLanes(stores, caps)) : null;
  return { stores, binders: outer, spread, together: 0, along, transpose };
}

/** True if a reduction reads memory along its last range one by one. */
function isRow({ node, own }: Binder, work: NestWork): boolean {
  const r = own[own.length - 1] as Range;
  if (r.arg.extent < longRow) return false;
  const seen = new Set<KNode>();
  const stack: KNode[] = [node];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' && Math.abs(work.strideOf(n.src[1] as KNode, r) ?? 0) === 1) return true;
    stack.push(...n.src);
  }
  return false;
}

/** The range along which all stores and some load run one by one, if there are many vectors of it. */
function vectorRange(work: NestWork, spread: readonly Range[], lanes: number): Range | null {
  const along = spread[spread.length - 1];
  if (along === undefined || lanes < 2 || along.arg.extent % lanes !== 0) return null;
  if (sizeOf(spread) < manyVectors * lanes || work.stores.some((s) => s.ranges.length !== spread.length)) return null;
  const loads = work.accessesAlong(along);
  const stored = work.stores.every((s) => work.strideOf(s.store.src[1] as KNode, along) === 1);
  return stored && loads !== null ? along : null;
}

function shapeAlone({ stores, spread, along }: Plan, e: Exprs, threads: number, lanes: number): LoopStore[] {
  const width = along === null ? 1 : lanes;
  const total = sizeOf(spread) / width;
  if (spread.length === 0 || total === 0) return [...stores];
  const turns = Math.max(1, Math.min(mostTurns, Math.floor(total / manyThreads)));
  const grid = e.range(Math.ceil(total / (threads * turns)), 'grid');
  const start = e.mul(grid, e.i32(threads * turns));
  const inside: Range[] = [];
  let flat: KNode;
  if (turns === 1) {
    const limit = total % threads === 0 ? undefined : e.min(e.sub(e.i32(total), start), e.i32(threads));
    const local = e.range(threads, 'local', limit);
    inside.push(local);
    flat = e.add(start, local);
  } else {
    const local = e.range(threads, 'local');
    const left = e.idiv(e.sub(e.i32(total + threads - 1), e.add(start, local)), e.i32(threads));
    const limit = total % (threads * turns) === 0 ? undefined : e.min(left, e.i32(turns));
    const turn = e.range(turns, 'serial', limit);
    inside.push(local, turn);
    flat = e.add(e.add(start, e.mul(turn, e.i32(threads))), local);
  }
  assumeBounds(flat, 0, total - 1);
  const changes = new Map<Range, Replacement>();
  if (along === null) decodeRanges(e, spread, flat, changes);
  else {
    const [block, lane] = [e.range(along.arg.extent / lanes), e.range(lanes, 'vector')];
    decodeRanges(e, [...spread.slice(0, -1), block], flat, changes);
    const first = (changes.get(block) as Replacement).value;
    changes.set(along, { value: e.add(e.mul(first, e.i32(lanes)), lane), ranges: [lane] });
  }
  const rewriter = new Rewriter(e, changes);
  return stores.map((s) => {
    const { store, ranges } = rewriter.store(s);
    return { store, ranges: [grid, ...inside, ...ranges] };
  });
}

function shapeTogether({ stores, binders, spread }: Plan, e: Exprs, threads: number): LoopStore[] {
  const changes = new Map<Range, Replacement>();
  const grid = e.range(sizeOf(spread), 'grid');
  decodeRanges(e, spread, grid, changes);
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
  // Stores of the same loops stay in the same loops: one may read what another writes to the same place.
  const known: { readonly inner: readonly Range[]; readonly ranges: readonly Range[]; readonly rewriter: Rewriter }[] =
    [];
  return stores.map((s) => {
    const inner = s.ranges.filter((r) => !spread.includes(r));
    let loops = known.find((k) => k.inner.length === inner.length && k.inner.every((r, i) => r === inner[i]));
    if (loops === undefined) {
      const own = new Map(changes);
      const ranges: Range[] = [grid];
      if (inner.length > 0) {
        const local = e.range(threads, 'local');
        const { value, turn } = takeTurns(e, local, sizeOf(inner), threads, 'serial');
        decodeRanges(e, inner, value, own);
        ranges.push(local, turn);
      }
      loops = { inner, ranges, rewriter: new Rewriter(e, own) };
      known.push(loops);
    }
    return { store: loops.rewriter.store(s).store, ranges: loops.ranges };
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
