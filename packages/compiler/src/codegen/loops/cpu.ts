/**
 * Loop choices for engines without SIMT: one thread runs a group, vectors are SIMD registers.
 *
 * For every nest: the range that becomes the vector (by a small cost model), the order of loops, and the cut
 * into groups. Group sizes depend only on the work, never on the number of threads, so results do not either.
 */
import type { LoopKernel } from '../../ir/ir.ts';
import { isPosition, nodesOf } from '../../ir/node.ts';
import type { Exprs } from '../../ir/expr.ts';
import {
  countOf,
  endsAlone,
  isMultiple,
  isSized,
  productOf,
  type Range,
  sizeOf,
  typicalOf,
} from '../../ir/free-ranges.ts';
import {
  groupWork,
  leastColumnElements,
  leastColumns,
  leastVector,
  reducedSteps,
  repeatable,
  shortRow,
  interleavedRows,
  vectorChunk,
  vectorSteps,
} from '../costs/cpu.ts';
import { vectorLanes } from '../linearize/vector.ts';
import type { CodegenCaps } from '../lowering.ts';
import { cutSegments, division, narrowRows, splitRanges, unevenLoop } from './cuts.ts';
import { besideRows, cutRows, cutStreams, interleaveRows, canInterleaveRows, streamed } from './streams.ts';
import { tiledTransposes } from './tile.ts';
import { as, LoopNest, reorder, shaped, split } from './transforms.ts';
import { type Steps, type Binder, type NestWork, type Width, workOf } from './work.ts';

/** One nest with its loops chosen. */
function shapeNest(given: LoopNest, caps: CodegenCaps): LoopNest {
  let nest = given;
  const work = workOf(nest);
  const { along, own, lanes } = chooseWidth(nest, work, caps);
  for (const r of own) nest = as(nest, r, 'vector');
  for (const binder of work.binders)
    if (isWindow(binder, work) && !binder.own.some((r) => own.has(r)))
      for (const r of binder.own) nest = as(nest, r, 'unroll');

  nest = besideRows(nest, work, along, lanes, caps);
  const order = orderRanges(work, along);
  const columns = columnsAlong(work, along, lanes, caps);
  nest = cutIntoGroups(nest, work, caps, order, along, columns);
  nest = reorder(nest, (a, b) => order.indexOf(a) - order.indexOf(b));
  // Reductions of columns are computed before the columns are opened, so these may be the innermost loop.
  const isColumn = (r: Range): number => Number(r.arg.kind === 'column');
  if (columns === null) return nest;
  return reorder(new LoopNest(nest.e, nest.stores, nest.done), (a, b) => isColumn(a) - isColumn(b));
}

/** The vector range whose reductions are accumulated in memory, and the number of columns per group; or null. */
function columnsAlong(
  work: NestWork,
  along: ReadonlySet<Range>,
  lanes: number,
  caps: CodegenCaps,
): { readonly range: Range; readonly chunk: number } | null {
  const [range] = along;
  if (range === undefined || along.size !== 1 || !mayHaveColumns(work, range)) return null;
  const chunk = caps.lowering.rare?.()?.columnsOf(work, range, lanes, caps) ?? null;
  return chunk === null ? null : { range, chunk };
}

/** True if all that a nest does is to reduce rows of large matrices; then it is worth loading what asks further (columns.ts). */
function mayHaveColumns({ binders }: NestWork, range: Range): boolean {
  return (
    range.arg.extent >= leastColumns &&
    binders.length > 0 &&
    binders.every(
      ({ node, own, free }) =>
        node.op === 'REDUCE' && free.includes(range) && productOf([...own, range], typicalOf) >= leastColumnElements,
    )
  );
}

/** A small fixed window, such as 3 x 3 pooling: unrolled completely. */
function isWindow(binder: Binder, work: NestWork): boolean {
  const size = sizeOf(binder.own);
  if (binder.node.op !== 'REDUCE' || size > 9 || size === 0) return false;
  return binder.own.every((r) => work.countIn(r) * size <= 64 && r.src.length === 0) && binder.free.length > 0;
}

interface VectorChoice {
  /** Ranges of stores, at most one per store. */
  readonly along: ReadonlySet<Range>;
  /** Ranges of reductions that depend on none of those. */
  readonly own: ReadonlySet<Range>;
  readonly cost: number;
}

/** The vectors of a nest; on a processor with several widths, those of the cheapest one. */
function chooseWidth(nest: LoopNest, work: NestWork, caps: CodegenCaps): VectorChoice & { readonly lanes: number } {
  const { fittingBytes, ...others } = caps;
  let best: ReturnType<typeof chooseWidth> | null = null;
  for (let vectorBytes = caps.vectorBytes; ; vectorBytes /= 2) {
    const lanes = vectorLanes(nest.stores, { ...others, vectorBytes });
    if (best === null || lanes < best.lanes) {
      const steps: Steps = (n, reduced) =>
        (fittingBytes === undefined || reduced ? reducedSteps : vectorSteps)(n, lanes);
      const next = chooseVectors(work, { lanes, steps, each: new Map() });
      if (best === null || next.cost < best.cost) best = { ...next, lanes };
    }
    if (fittingBytes === undefined || vectorBytes <= leastVector) return best;
  }
}

/** Starts with scalar stores and adds the best vector range as long as that gets cheaper. */
function chooseVectors(work: NestWork, width: Width): VectorChoice {
  const { lanes } = width;
  let best = weigh(work, new Set(), width);
  if (lanes <= 1) return best;
  const candidates = new Set(work.stores.flatMap((s) => s.ranges).filter((r) => canStoreAlong(work, r, lanes)));
  for (let found = true; found; ) {
    found = false;
    for (const r of candidates) {
      if (best.along.has(r)) continue;
      const others = [...best.along].filter(
        (o) => !work.stores.some((s) => s.ranges.includes(o) && s.ranges.includes(r)),
      );
      const next = weigh(work, new Set([...others, r]), width);
      if (next.cost < best.cost) [best, found] = [next, true];
    }
  }
  return best;
}

/**
 * True if all stores inside the range write consecutive elements along it, or if it runs over short rows that are reduced. Where one store writes
 * such elements others may write theirs one by one: what they share is computed by vectors.
 */
function canStoreAlong(work: NestWork, r: Range, lanes: number): boolean {
  if (typicalOf(r) < lanes) return false;
  const strides = work.stores.flatMap(({ store, ranges }) =>
    ranges.includes(r) ? (work.typicalStrideOf(store.src[1], r) ?? Number.NaN) : [],
  );
  const most = strides.includes(1) ? Infinity : isReduced(work, r) ? shortRow : 1;
  return strides.every((stride) => stride >= 1 && stride <= most);
}

/** True if something is reduced for each element of the range, and nothing for what is inside it. */
function isReduced(work: NestWork, r: Range): boolean {
  const { binders } = work;
  return binders.length > 0 && binders.every(({ free }) => free.includes(r));
}

function weigh(work: NestWork, along: ReadonlySet<Range>, width: Width): VectorChoice {
  const own = width.lanes > 1 ? chooseOwn(work, along, width) : new Set<Range>();
  return { along, own, cost: work.cost(width, along, own) };
}

/** For each list of ranges of reductions that depend on no range of `along`: the best one to vectorise, if any. */
function chooseOwn(work: NestWork, along: ReadonlySet<Range>, width: Width): Set<Range> {
  const chosen = new Set<Range>();
  const decided = new Set<Range>();
  for (const { own, free, node } of work.binders) {
    if (free.some((r) => along.has(r))) for (const r of own) decided.add(r);
    if (own.some((r) => decided.has(r))) continue;
    for (const r of own) decided.add(r);
    let best: Range | null = null;
    let least = work.cost(width, along, chosen);
    const ordered = node.op === 'STAGE' || isPosition(node);
    for (const r of ordered ? own.slice(-1) : own) {
      if (r.arg.kind === 'unroll' || typicalOf(r) < width.lanes) continue;
      const cost = work.cost(width, along, new Set([...chosen, r]));
      if (cost < least) [best, least] = [r, cost];
    }
    if (best !== null) chosen.add(best);
  }
  return chosen;
}

/** Loops on which expensive reductions depend go outside, the vector range innermost of its kind. */
function orderRanges(work: NestWork, along: ReadonlySet<Range>): Range[] {
  const all: Range[] = [];
  for (const { ranges } of work.stores) for (const r of ranges) if (!all.includes(r)) all.push(r);
  const binders = work.binders.filter((b) => b.work > 0);
  const needed = (r: Range): number => binders.filter((b) => b.free.includes(r)).length;
  const isShared = (r: Range): boolean => work.stores.every((s) => s.ranges.includes(r));
  return all
    .map((r, i) => ({ r, i, needed: needed(r), last: (isShared(r) ? 0 : 2) + (along.has(r) ? 1 : 0) }))
    .sort((a, b) => b.needed - a.needed || a.last - b.last || a.i - b.i)
    .map((x) => x.r);
}

/** Chooses grid ranges and chunks so that a group has about `groupWork` operations. */
function cutIntoGroups(
  nest: LoopNest,
  work: NestWork,
  caps: CodegenCaps,
  order: readonly Range[],
  along: ReadonlySet<Range>,
  columns: ReturnType<typeof columnsAlong>,
): LoopNest {
  const kindOf = (r: Range, extent: number): 'vector' | 'column' | 'serial' =>
    columns?.range === r && extent <= columns.chunk ? 'column' : along.has(r) ? 'vector' : 'serial';
  const keep = (r: Range): LoopNest => as(now, r, r.arg.kind === 'unroll' ? 'unroll' : kindOf(r, r.arg.extent));
  let now = nest;
  // Groups that most sizes leave without work are not free.
  let rest = work.total(typicalOf);
  let done = rest <= groupWork;
  for (const r of order) {
    const n = countOf(r).most;
    const shared = work.stores.every((s) => s.ranges.includes(r));
    const cheap = work.binders.every((b) => b.free.includes(r) || b.work <= repeatable || isInner(b, work));
    if (done || !shared || !cheap || n === 0 || !endsAlone(r) || r.arg.kind === 'unroll') {
      done = true;
      now = keep(r);
      continue;
    }
    const inner = rest / typicalOf(r);
    rest = inner;
    const halves = along.has(r) ? streamed(now, work, r) : null;
    if (halves !== null) {
      now = halves;
      done = true;
      continue;
    }
    const interleaves = along.size === 0 && isMultiple(r, interleavedRows) && canInterleaveRows(work, r, caps);
    const unit = along.has(r) ? vectorChunk : interleaves ? interleavedRows : 1;
    const wanted = Math.max(unit, Math.ceil(groupWork / Math.max(1, inner) / unit) * unit);
    const groups = Math.ceil(n / (columns?.range === r ? columns.chunk : wanted));
    const chunk = Math.ceil(n / groups / unit) * unit;
    if (inner <= groupWork) done = true;
    if (chunk >= n) now = keep(r);
    else now = interleaves ? interleaveRows(now, r, chunk) : split(now, r, chunk, 'grid', kindOf(r, chunk));
  }
  return now;
}

/** True if a reduction is inside another one, whose dependence then decides. */
function isInner(b: Binder, work: NestWork): boolean {
  return work.binders.some((other) => other !== b && other.own.some((r) => b.free.includes(r)));
}

/** Engines where a group is one thread: the passes that shape loop nests for vectors, one after another. */

/** A loop of fewer iterations is not worth loading what cuts it, or joins it where it is shorter than a vector. */
const worthLoading = 4096;

/** Each pass takes a nest of stores that share loops, and may return several nests. */
const passes: readonly ((nest: LoopNest, caps: CodegenCaps) => LoopNest)[] = [
  (nest, { lowering }) => {
    const uneven = unevenLoop(nest);
    return (uneven && lowering.rare?.(uneven.arg.extent >= worthLoading)?.cutStretches(nest, division)) ?? nest;
  },
  (nest, { lowering }) => {
    const staged = (hasStage(nest) ? lowering.rare?.()?.reduceWhileStaging(nest) : null) ?? nest;
    return cutSegments(splitRanges(lowering.splitPhases?.(staged) ?? staged));
  },
  cutStreams,
  cutRows,
  (nest, caps) => narrow(nest, caps, 'cutNarrow'),
  short,
];

/** What is made of rows shorter than a vector, where the nest has any. */
function narrow(nest: LoopNest, caps: CodegenCaps, how: 'cutNarrow' | 'widenNarrow'): LoopNest {
  const found = narrowRows(nest, caps);
  const forms = found && caps.lowering.rare?.(found.row.arg.extent >= worthLoading);
  return forms?.[how](nest, caps, found!) ?? nest;
}

const hasStage = ({ stores }: LoopNest): boolean =>
  [...nodesOf(stores.map((s) => s.store))].some((n) => n.op === 'STAGE');

const hasSizes = ({ stores }: LoopNest): boolean => stores.some(({ ranges }) => ranges.some(isSized));

/** What is made of short rows that end at a size, where the nest has any: before its loops have their kinds, and after that. */
function short(nest: LoopNest, caps: CodegenCaps): LoopNest {
  return (hasSizes(nest) ? caps.lowering.rare?.()?.short(nest, caps) : null) ?? nest;
}

/** The shapes of nests for engines where a group is one thread. */
export function shapeVectors(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel {
  return shaped(kernel, e, (nests) =>
    passes
      .reduce((now, pass) => now.flatMap((nest) => partsOf(nest, pass(nest, caps))), nests)
      .flatMap((nest) => tiledTransposes(narrow(nest, caps, 'widenNarrow'), caps))
      .map((nest) => short(shapeNest(nest, caps), caps)),
  );
}

/** The result of a pass as nests of stores that share loops. */
function partsOf(before: LoopNest, after: LoopNest): readonly LoopNest[] {
  return after === before ? [after] : after.parts();
}
