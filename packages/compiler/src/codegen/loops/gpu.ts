/**
 * Loop choices for SIMT engines.
 *
 * Without long reductions, one thread computes one element of the stores' common loops; with many elements a vector,
 * and with very many several in turn. Its own reductions and inner loops access memory in vectors. With long reductions, one group
 * computes one instance of them (cooperative.ts).
 */
import type { KNode, KNodeOf, LoopKernel, LoopStore } from '../../ir/ir.ts';
import { assumeBounds, isPosition, nodesOf } from '../../ir/node.ts';
import type { Exprs } from '../../ir/expr.ts';
import {
  divisorOf,
  countOf,
  endOf,
  endsAlone,
  isSized,
  isMultiple,
  lengthOf,
  mostOf,
  type Range,
  sizeLimit,
  sizeOf,
  stretchesOf,
} from '../../ir/free-ranges.ts';
import { type Replacement, Rewriter, step } from '../../ir/rewrite.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import {
  aloneThreads,
  elementsEach,
  emulatedThreads,
  fullRow,
  leastTogether,
  leastTransposed,
  leastTransposedElements,
  longReduction,
  longRow,
  manyGroups,
  manyInstances,
  manyThreads,
  manyVectors,
  mostIterations,
  someInstances,
  togetherThreads,
  transposeSide,
} from '../costs/gpu.ts';
import { oneSubgroup } from '../linearize/group.ts';
import { vectorLanes } from '../linearize/vector.ts';
import type { CodegenCaps, Beside } from '../lowering.ts';
import { bindApart, renamed, shapeTogether } from './cooperative.ts';
import { as, flatten, inChunks, LoopNest, reorder, shaped, split, storesWhere } from './transforms.ts';
import { type Binder, type NestWork, workOf } from './work.ts';

interface Plan {
  readonly nest: LoopNest;
  readonly binders: readonly Binder[];
  /** Ranges distributed to groups (together) or to threads (alone); the others are inner loops. */
  readonly spread: readonly Range[];
  /** Elements of the reductions that a group shares; 0: threads share nothing. */
  readonly together: number;
  /** The range along which each thread takes a vector, if any. */
  readonly along: Range | null;
  /** Ranges of reductions and of inner loops that are whole vectors. */
  readonly byVectors: ReadonlySet<Range>;
  readonly transpose: Transpose | null;
  /** Neighbours among the reductions that a group computes together, if any. */
  readonly beside?: Beside | null;
}

const none: ReadonlySet<Range> = new Set();

/** All nests of a kernel with their loops spread over groups and threads. */
export function shapeSimt(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel {
  return shaped(kernel, e, (nests) => spreadNests(caps.sharedIsMemory === true ? nests : nests.flatMap(byLoops), caps));
}

/**
 * Makes stores with further loops separate nests if the shared loops are few: otherwise a thread per shared iteration would run through all others.
 * Common values, unless they are reductions, are computed in each.
 */
function byLoops(nest: LoopNest): readonly LoopNest[] {
  const { e, stores } = nest;
  const groups: LoopStore[][] = [];
  for (const s of stores) {
    const own = groups.find(([first]) => isSameSet(first!.ranges, s.ranges));
    if (own === undefined) groups.push([s]);
    else own.push(s);
  }
  const shared = stores[0]!.ranges.filter((r) => stores.every((s) => s.ranges.includes(r)));
  if (groups.length < 2 || sizeOf(shared) >= manyInstances || workOf(nest).binders.length > 0) return [nest];
  // One store may read what another writes to the same place.
  const written = stores.map(({ store }) => store.src[0]);
  const read = nodesOf(stores.flatMap(({ store }) => store.src.slice(1) as KNode[]));
  if (written.some((memory) => read.has(memory))) return [nest];
  return groups.map((own, i) => {
    const mine = [...new Set(own.flatMap((s) => s.ranges))];
    if (i === 0) return new LoopNest(e, own, nest.done);
    const changes = new Map(mine.map((r): [Range, Replacement] => [r, renamed(r, e)]));
    const rewriter = new Rewriter(e, changes);
    return new LoopNest(
      e,
      own.map((s) => rewriter.store(s)),
      [step('apart', mine)],
    );
  });
}

function isSameSet(x: readonly Range[], y: readonly Range[]): boolean {
  return x.length === y.length && x.every((r) => y.includes(r));
}

function spreadNests(nests: readonly LoopNest[], caps: CodegenCaps): LoopNest[] {
  const plans = nests.map((nest) => planNest(nest, caps));
  const elements = plans.reduce((n, p) => Math.max(n, p.together), 0);
  const groups = plans.reduce((n, p) => (p.together > 0 ? n + sizeOf(p.spread) / (p.beside?.width ?? 1) : n), 0);
  const each = elementsEach[groups >= manyGroups ? 'many' : 'few'];
  const single = oneSubgroup(caps);
  const shared = caps.sharedIsMemory
    ? (single ?? emulatedThreads)
    : Math.max(leastTogether, Math.min(togetherThreads, elements / each));
  const wanted = elements === 0 ? aloneThreads : shared;
  const threads = 2 ** Math.floor(Math.log2(Math.min(wanted, caps.maxGroup)));
  // Devices that emulate groups keep nothing in registers across barriers, and take long to compile unrolled code.
  const held = caps.sharedIsMemory !== true || threads === single;
  return plans.map((p) => {
    if (p.transpose !== null) return shapeTranspose(p.nest, p.transpose, threads);
    if (p.beside != null && threads >= 2 * p.beside.width)
      return p.beside.shape(p.nest, p.binders, p.spread, p.beside, threads);
    const lanes = vectorLanes(p.nest.stores, caps);
    return p.together > 0 ? shapeTogether({ ...p, held }, threads, lanes) : shapeAlone(p, threads, lanes);
  });
}

function planNest(nest: LoopNest, caps: CodegenCaps): Plan {
  const transpose = findTranspose(nest, caps);
  if (transpose !== null)
    return { nest, binders: [], spread: [], together: 1024, along: null, byVectors: none, transpose };
  const { stores } = nest;
  const work = workOf(nest);
  const shared = (stores[0]?.ranges ?? []).filter((r) => stores.every((s) => s.ranges.includes(r)));
  const outer = work.binders.filter((b) => b.free.every((r) => shared.includes(r)));
  const needed = shared.filter((r) => outer.some((b) => b.free.includes(r)));
  const elements = outer.reduce((n, b) => Math.max(n, mostOf(b.own)), 0);
  const alone = caps.sharedIsMemory === true;
  const inRows = !alone && outer.some((b) => sizeOf(b.own) >= longRow && isRow(b, work));
  const isLong = inRows || (elements >= longReduction && sizeOf(needed) < (alone ? someInstances : manyInstances));
  const lanes = vectorLanes(stores, caps);
  if (isLong) {
    const apart = bindApart(nest, outer);
    if (apart !== nest) return planNest(apart, caps);
    const beside = caps.lowering.beside?.(nest, work, outer, needed, caps) ?? null;
    const byVectors = vectorLoops(work, needed, lanes);
    const together = elements * (beside?.width ?? 1);
    return { nest, binders: outer, spread: needed, together, along: null, byVectors, transpose, beside };
  }
  // Threads of a range that no reduction depends on would each repeat the reductions.
  const spread = outer.length > 0 && needed.length > 0 && needed.length < shared.length ? needed : shared;
  const along = outer.length === 0 ? vectorRange(work, spread, lanes) : null;
  const byVectors = outer.length > 0 ? vectorLoops(work, spread, lanes, alone) : none;
  return { nest, binders: outer, spread, together: 0, along, byVectors, transpose };
}

/**
 * The last ranges of reductions, and of the stores' inner loops, along which all memory is contiguous and that are whole
 * vectors. None if reductions are nested. With `ragged` also ranges that end at a size, which may have a remainder.
 */
function vectorLoops(work: NestWork, spread: readonly Range[], lanes: number, ragged = false): ReadonlySet<Range> {
  if (lanes < 2 || work.binders.some((b) => b.free.some((r) => !spread.includes(r)))) return none;
  const ends = new Set<Range>();
  for (const { node, own } of work.binders) {
    const last = own[own.length - 1];
    if (last !== undefined && node.op === 'REDUCE' && !isPosition(node)) ends.add(last);
  }
  for (const { ranges } of work.stores) {
    const last = ranges[ranges.length - 1];
    if (last !== undefined && !spread.includes(last)) ends.add(last);
  }
  const whole = (r: Range): boolean =>
    endsAlone(r) && (isMultiple(r, lanes) || (ragged && isSized(r))) && r.arg.extent > lanes;
  const isStored = (r: Range): boolean =>
    work.stores.every(
      ({ store, ranges }) =>
        !ranges.includes(r) || (ranges[ranges.length - 1] === r && work.strideOf(store.src[1], r) === 1),
    );
  const isLast = (r: Range): boolean =>
    work.binders.every(({ own, node }) => !own.includes(r) || (own[own.length - 1] === r && !isPosition(node)));
  return new Set([...ends].filter((r) => whole(r) && isStored(r) && isLast(r) && (work.accessesAlong(r) ?? 0) > 0));
}

/** True if a reduction reads contiguous memory along its last range. */
function isRow({ node, own }: Binder, work: NestWork): boolean {
  const r = own[own.length - 1]!;
  if (r.arg.extent < longRow) return false;
  for (const n of nodesOf([node])) if (n.op === 'LOAD' && Math.abs(work.strideOf(n.src[1], r) ?? 0) === 1) return true;
  return false;
}

/** The range along which all stores and some load are contiguous, if it has many vectors. */
function vectorRange(work: NestWork, spread: readonly Range[], lanes: number): Range | null {
  const along = spread[spread.length - 1];
  if (along === undefined || lanes < 2 || !isMultiple(along, lanes)) return null;
  if (sizeOf(spread) < manyVectors * lanes || work.stores.some((s) => s.ranges.length !== spread.length)) return null;
  const loads = work.accessesAlong(along);
  return work.writes(along, 1) && loads !== null ? along : null;
}

function shapeAlone({ nest: given, spread, along, byVectors }: Plan, threads: number, lanes: number): LoopNest {
  const total = sizeOf(spread) / (along === null ? 1 : lanes);
  if (spread.length === 0 || total === 0) return given;
  const inside = (r: Range): number => Number(!spread.includes(r));
  let nest = reorder(given, (a, b) => inside(a) - inside(b));
  let loops = spread;
  if (along !== null) {
    nest = split(nest, along, lanes, along.arg.kind, 'vector');
    loops = [...spread.slice(0, -1), nest.loopsOf(along)[0]!];
  }
  const last = loops[loops.length - 1]!;
  if (loops.length > 1 && isSized(last) && countOf(last).least >= fullRow * threads)
    nest = inRows(nest, loops, threads);
  else nest = inOne(nest, loops, threads);
  for (const r of byVectors)
    nest = isMultiple(r, lanes) ? split(nest, r, lanes, 'serial', 'vector') : as(nest, r, 'vector');
  return nest;
}

/** Groups that take elements of all loops, as one flat index. */
function inOne(nest: LoopNest, loops: readonly Range[], threads: number): LoopNest {
  const total = sizeOf(loops);
  const turns = Math.max(1, Math.min(mostIterations, Math.floor(total / manyThreads)));
  const end = endOf(nest.e, loops);
  const grid = nest.e.range(
    Math.ceil(total / (threads * turns)),
    'grid',
    end === null ? undefined : stretchesOf(nest.e, end, threads * turns),
  );
  const change =
    turns > 1
      ? inTurns(nest.e, total, end, threads, turns, grid)
      : inChunks(nest.e, total, threads, ['grid', 'local'], { outer: grid, end });
  return flatten(nest, loops, change, 'bind', threads, turns);
}

/** Groups that take elements of one row only, so that each divides by the row's length, which is known at dispatch, only once. */
function inRows(nest: LoopNest, loops: readonly Range[], threads: number): LoopNest {
  const { e } = nest;
  const [rows, last] = [loops.slice(0, -1), loops[loops.length - 1]!];
  const row = e.range(sizeOf(rows), 'grid', endOf(e, rows) ?? undefined);
  const end = lengthOf(e, last);
  const part = e.range(Math.ceil(last.arg.extent / threads), 'grid', stretchesOf(e, end, threads));
  const inRow = flatten(nest, rows, { value: row, ranges: [row] }, 'bind', 1);
  const change = inChunks(e, last.arg.extent, threads, ['grid', 'local'], { outer: part, end });
  return flatten(inRow, [last], change, 'bind', threads);
}

/** A thread's elements are a group's number of threads apart, so that neighbouring threads access neighbours. */
function inTurns(e: Exprs, total: number, end: KNode | null, threads: number, turns: number, grid: Range): Replacement {
  const start = e.mul(grid, threads * turns);
  const local = e.range(threads, 'local');
  const all = end ?? e.i32(total);
  const left = e.idiv(e.sub(e.add(all, threads - 1), e.add(start, local)), threads);
  const limit = divisorOf(all) % (threads * turns) === 0 ? undefined : e.min(left, turns);
  const turn = e.range(turns, 'serial', limit);
  const value = e.add(e.add(start, e.mul(turn, threads)), local);
  assumeBounds(value, 0, total - 1);
  return { value, ranges: [grid, local, turn] };
}

// Transposes on SIMT engines: tiles in group memory, so that neighbouring threads read and write neighbours.
//
// A kernel that writes along one loop and reads along another is cut into square tiles of both. The group fills group memory along
// the one and reads it along the other. Each line of the tile is rotated by its number, so that threads which read a column of it
// use different banks.

export interface Transpose {
  /** Loops that are written along, and that the loads below are read along. */
  readonly along: Range;
  readonly across: Range;
  readonly loads: readonly KNodeOf<'LOAD'>[];
}

/** What a nest transposes, if anything. */
function findTranspose(nest: LoopNest, caps: CodegenCaps): Transpose | null {
  if (caps.sharedIsMemory === true || caps.maxGroup < 2 * transposeSide) return null;
  const work = workOf(nest);
  const along = work.unitRange();
  if (work.binders.length > 0 || along === undefined || along.arg.extent < leastTransposed) return null;
  const list = work.common() ?? [];
  if (!list.every(endsAlone) || sizeOf(list) < leastTransposedElements) return null;
  const loads: KNodeOf<'LOAD'>[] = [];
  let across: Range | undefined;
  let bytes = 0;
  for (const n of nodesOf(nest.stores.map((s) => s.store))) {
    const memory = n.src[0];
    if (n.op !== 'LOAD' || memory?.op !== 'PARAM' || memory.arg.access !== 'read') continue;
    const index = n.src[1];
    const stride = work.strideOf(index, along);
    if (stride === null || Math.abs(stride) < leastTransposed) continue;
    const found = list.find((r) => r !== along && r.arg.extent >= leastTransposed && work.strideOf(index, r) === 1);
    if (found === undefined || (across !== undefined && across !== found)) continue;
    bytes += transposeSide * transposeSide * Math.max(4, dtypeInfo[n.dtype].bytes);
    if (bytes > caps.sharedBytes) continue;
    across = found;
    loads.push(n);
  }
  return across === undefined ? null : { along, across, loads };
}

/** The nest in tiles, for groups of `threads`, a power of two. */
function shapeTranspose(nest: LoopNest, { along, across, loads }: Transpose, threads: number): LoopNest {
  const { e, stores } = nest;
  const changes = new Map<Range, Replacement>();
  const grid: Range[] = [];
  const open = (r: Range, by: number): Range => {
    const end = sizeLimit(r);
    const opened = e.range(Math.ceil(r.arg.extent / by), 'grid', end === null ? undefined : stretchesOf(e, end, by));
    grid.push(opened);
    return opened;
  };
  for (const r of stores[0]!.ranges) {
    if (r !== along && r !== across) changes.set(r, { value: open(r, 1), ranges: [] });
  }
  const [down, right] = [across, along].map((r) => e.mul(open(r, transposeSide), transposeSide)) as [KNode, KNode];
  const steps = (kind: 'unroll' | 'serial'): { flat: KNode; ranges: Range[] } => {
    const [turn, local] = [e.range((transposeSide * transposeSide) / threads, kind), e.range(threads, 'local')];
    return { flat: e.add(e.mul(turn, threads), local), ranges: [local, turn] };
  };
  const inside = (start: KNode, within: KNode, r: Range): KNode => {
    const at = e.add(start, within);
    if (!isMultiple(r, transposeSide)) return e.min(at, e.sub(lengthOf(e, r), 1));
    assumeBounds(at, 0, r.arg.extent - 1);
    return at;
  };
  const turned = (line: KNode, at: KNode): KNode => e.irem(e.add(line, at), transposeSide);

  const out = steps('serial');
  const [i, j] = [e.idiv(out.flat, transposeSide), e.irem(out.flat, transposeSide)];
  const outside = new Map(changes);
  outside.set(across, { value: inside(down, i, across), ranges: [] });
  outside.set(along, { value: inside(right, j, along), ranges: [] });
  const rewriter = new Rewriter(e, outside);
  for (const load of loads) {
    const { flat, ranges } = steps('unroll');
    const line = e.idiv(flat, transposeSide);
    const filling = new Map(changes);
    const back = turned(e.sub(transposeSide, line), e.irem(flat, transposeSide));
    filling.set(across, { value: inside(down, back, across), ranges: [] });
    filling.set(along, { value: inside(right, line, along), ranges: [] });
    const [local, turn] = ranges as [Range, Range];
    const tile = e.stage('shared', new Rewriter(e, filling).node(load), [turn, local]);
    rewriter.set(load, e.load(tile, e.add(e.mul(j, transposeSide), turned(j, i))));
  }
  const edges = [
    { r: across, at: e.add(down, i) },
    { r: along, at: e.add(right, j) },
  ].flatMap(({ r, at }) => (isMultiple(r, transposeSide) ? [] : [e.lt(at, lengthOf(e, r))]));
  const kept = edges.length === 0 ? null : edges.reduce((x, y) => e.and(x, y));
  const tiled = storesWhere(e, stores, rewriter, kept, [...grid, ...out.ranges]);
  return nest.wrote(tiled, 'stage', [across, along], [transposeSide, transposeSide]);
}
