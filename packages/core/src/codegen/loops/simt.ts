/**
 * Loop choices for SIMT engines.
 *
 * Without long reductions one thread computes one element of the stores' common loops, or one vector of them where there are
 * many, in turns where there are very many; its own reductions and loops go along memory by vectors. With long ones, one group
 * computes one instance of the reductions (cooperative.ts).
 */
import type { CodegenCaps } from '../lowering.ts';
import { bindApart } from './inner-ranges.ts';
import { findTranspose, shapeTranspose, type Transpose } from './transpose.ts';
import { shapeTogether } from './cooperative.ts';
import { type Binder, NestWork } from './work.ts';
import type { Exprs } from '../../ir/expr.ts';
import { nodesOf } from '../../ir/traverse.ts';
import { assumeBounds } from '../../ir/node.ts';
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { isArg } from '../linearize/combine.ts';
import { oneSubgroup } from '../linearize/group.ts';
import { vectorLanes } from '../linearize/vector.ts';
import { decodeRanges, type Replacement, Rewriter } from '../../ir/rewrite.ts';

/** Threads of a group where threads work alone, and at least and at most where they reduce together. */
const aloneThreads = 64;
const leastTogether = 32;
const togetherThreads = 256;
/** Threads that reduce together where those of a group run one after another, but for a few side by side: these, or one subgroup. */
const emulatedThreads = 8;
/** Elements of a reduction for one of the threads that share it, where there are few groups and where there are many. */
const elementsEach = { few: 4, many: 8 };
const manyGroups = 256;
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

interface Plan {
  readonly stores: readonly LoopStore[];
  readonly binders: readonly Binder[];
  /** Ranges taken by groups (together) or by threads (alone); the others are loops inside. */
  readonly spread: readonly Range[];
  /** Elements of the reductions that a group shares; 0: threads work alone. */
  readonly together: number;
  /** The range of which each thread takes a vector, if any. */
  readonly along: Range | null;
  /** Ranges of reductions and of the loops inside that go by whole vectors. */
  readonly byVectors: ReadonlySet<Range>;
  readonly transpose: Transpose | null;
}

const none: ReadonlySet<Range> = new Set();

/** All nests of a kernel with their loops spread over groups and threads. */
export function shapeSimt(nests: readonly (readonly LoopStore[])[], e: Exprs, caps: CodegenCaps): LoopStore[] {
  const plans = nests.map((nest) => planNest(nest, e, caps));
  const elements = plans.reduce((n, p) => Math.max(n, p.together), 0);
  const groups = plans.reduce((n, p) => (p.together > 0 ? n + sizeOf(p.spread) : n), 0);
  const each = elementsEach[groups >= manyGroups ? 'many' : 'few'];
  const single = oneSubgroup(caps);
  const shared = caps.sharedIsMemory
    ? (single ?? emulatedThreads)
    : Math.max(leastTogether, Math.min(togetherThreads, elements / each));
  const wanted = elements === 0 ? aloneThreads : shared;
  const threads = 2 ** Math.floor(Math.log2(Math.min(wanted, caps.maxGroup)));
  return plans.flatMap((p) =>
    p.transpose !== null
      ? shapeTranspose(p.stores, p.transpose, e, threads)
      : p.together > 0
        ? // Devices that emulate groups keep nothing in registers across barriers, and take long to compile what is written out.
          shapeTogether(
            { ...p, held: caps.sharedIsMemory !== true || threads === single },
            e,
            threads,
            vectorLanes(p.stores, caps),
          )
        : shapeAlone(p, e, threads, vectorLanes(p.stores, caps)),
  );
}

function planNest(stores: readonly LoopStore[], e: Exprs, caps: CodegenCaps): Plan {
  const transpose = findTranspose(stores, caps);
  if (transpose !== null)
    return { stores, binders: [], spread: [], together: 1024, along: null, byVectors: none, transpose };
  const work = new NestWork(stores);
  const shared = (stores[0]?.ranges ?? []).filter((r) => stores.every((s) => s.ranges.includes(r)));
  const outer = work.binders.filter((b) => b.free.every((r) => shared.includes(r)));
  const needed = shared.filter((r) => outer.some((b) => b.free.includes(r)));
  const elements = outer.reduce((n, b) => Math.max(n, sizeOf(b.own)), 0);
  const alone = caps.sharedIsMemory === true;
  const inRows = !alone && outer.some((b) => sizeOf(b.own) >= longRow && isRow(b, work));
  const isLong = inRows || (elements >= longReduction && sizeOf(needed) < (alone ? someInstances : manyInstances));
  const lanes = vectorLanes(stores, caps);
  if (isLong) {
    const apart = bindApart(stores, outer, e);
    if (apart !== stores) return planNest(apart, e, caps);
    const byVectors = vectorLoops(work, needed, lanes);
    return { stores, binders: outer, spread: needed, together: elements, along: null, byVectors, transpose };
  }
  // A range no reduction depends on would have every thread repeat the reductions.
  const spread = outer.length > 0 && needed.length > 0 && needed.length < shared.length ? needed : shared;
  const along = outer.length === 0 ? vectorRange(work, spread, lanes) : null;
  const byVectors = outer.length > 0 ? vectorLoops(work, spread, lanes) : none;
  return { stores, binders: outer, spread, together: 0, along, byVectors, transpose };
}

/**
 * The last ranges of reductions, and of the stores' loops inside `spread`, along which all memory lies one by one and that are whole
 * vectors. None where one reduction lies inside another.
 */
function vectorLoops(work: NestWork, spread: readonly Range[], lanes: number): ReadonlySet<Range> {
  if (lanes < 2 || work.binders.some((b) => b.free.some((r) => !spread.includes(r)))) return none;
  const ends = new Set<Range>();
  for (const { node, own } of work.binders) {
    const last = own[own.length - 1];
    if (last !== undefined && node.op === 'REDUCE' && !isArg(node.arg.op)) ends.add(last);
  }
  for (const { ranges } of work.stores) {
    const last = ranges[ranges.length - 1];
    if (last !== undefined && !spread.includes(last)) ends.add(last);
  }
  const whole = (r: Range): boolean => r.src.length === 0 && r.arg.extent % lanes === 0 && r.arg.extent > lanes;
  const isStored = (r: Range): boolean =>
    work.stores.every(
      ({ store, ranges }) =>
        !ranges.includes(r) || (ranges[ranges.length - 1] === r && work.strideOf(store.src[1], r) === 1),
    );
  const isLast = (r: Range): boolean =>
    work.binders.every(({ own, node }) => !own.includes(r) || (own[own.length - 1] === r && !isArgNode(node)));
  return new Set([...ends].filter((r) => whole(r) && isStored(r) && isLast(r) && (work.accessesAlong(r) ?? 0) > 0));
}

function isArgNode(n: KNode): boolean {
  return n.op === 'REDUCE' && isArg(n.arg.op);
}

/** True if a reduction reads memory along its last range one by one. */
function isRow({ node, own }: Binder, work: NestWork): boolean {
  const r = own[own.length - 1] as Range;
  if (r.arg.extent < longRow) return false;
  for (const n of nodesOf([node])) if (n.op === 'LOAD' && Math.abs(work.strideOf(n.src[1], r) ?? 0) === 1) return true;
  return false;
}

/** The range along which all stores and some load run one by one, if there are many vectors of it. */
function vectorRange(work: NestWork, spread: readonly Range[], lanes: number): Range | null {
  const along = spread[spread.length - 1];
  if (along === undefined || lanes < 2 || along.arg.extent % lanes !== 0) return null;
  if (sizeOf(spread) < manyVectors * lanes || work.stores.some((s) => s.ranges.length !== spread.length)) return null;
  const loads = work.accessesAlong(along);
  return work.writes(along, 1) && loads !== null ? along : null;
}

function shapeAlone({ stores, spread, along, byVectors }: Plan, e: Exprs, threads: number, lanes: number): LoopStore[] {
  const width = along === null ? 1 : lanes;
  const total = sizeOf(spread) / width;
  if (spread.length === 0 || total === 0) return [...stores];
  const turns = Math.max(1, Math.min(mostTurns, Math.floor(total / manyThreads)));
  const grid = e.range(Math.ceil(total / (threads * turns)), 'grid');
  const start = e.mul(grid, threads * turns);
  const inside: Range[] = [];
  let flat: KNode;
  if (turns === 1) {
    const limit = total % threads === 0 ? undefined : e.min(e.sub(total, start), threads);
    const local = e.range(threads, 'local', limit);
    inside.push(local);
    flat = e.add(start, local);
  } else {
    const local = e.range(threads, 'local');
    const left = e.idiv(e.sub(total + threads - 1, e.add(start, local)), threads);
    const limit = total % (threads * turns) === 0 ? undefined : e.min(left, turns);
    const turn = e.range(turns, 'serial', limit);
    inside.push(local, turn);
    flat = e.add(e.add(start, e.mul(turn, threads)), local);
  }
  assumeBounds(flat, 0, total - 1);
  const changes = new Map<Range, Replacement>();
  if (along === null) decodeRanges(e, spread, flat, changes);
  else {
    const [block, lane] = [e.range(along.arg.extent / lanes), e.range(lanes, 'vector')];
    decodeRanges(e, [...spread.slice(0, -1), block], flat, changes);
    const first = (changes.get(block) as Replacement).value;
    changes.set(along, { value: e.add(e.mul(first, lanes), lane), ranges: [lane] });
  }
  for (const r of byVectors) {
    const [block, lane] = [e.range(r.arg.extent / lanes, 'serial'), e.range(lanes, 'vector')];
    changes.set(r, { value: e.add(e.mul(block, lanes), lane), ranges: [block, lane] });
  }
  const rewriter = new Rewriter(e, changes);
  return stores.map((s) => {
    const { store, ranges } = rewriter.store(s);
    return { store, ranges: [grid, ...inside, ...ranges] };
  });
}
