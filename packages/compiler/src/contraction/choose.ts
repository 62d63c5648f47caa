/**
 * Roles of the ranges of a contraction: which become columns (vectors), which rows, and how both factors are read.
 *
 * Every candidate is rated by a rough estimate in nanoseconds: copies, tiles including their waste, stores.
 */
import { lineBytes, linesThatStay } from '../codegen/costs/caches.ts';
import {
  accessAround,
  accessScattered,
  accessStrides,
  accessTransposed,
  accessVectors,
  copyComputed,
  copyComputedOther,
  copyDispatch,
  copyFar,
  copyOther,
  copySame,
  crowdedLines,
  dotAligned,
  dotLane,
  dotMemory,
  dotOther,
  farBytes,
  farColumns,
  farMostRows,
  farOrder,
  farRows,
  groupCopy,
  heightCost,
  leastVector,
  lookUpPart,
  mostCopiedTiles,
  oneVector,
  overfullLines,
  ownColumns,
  ownOrder,
  ownRows,
  ownShortColumns,
  ownShortSum,
  type ProductCosts,
  productCosts,
  sharedSlowdown,
} from '../codegen/costs/cpu.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { productOf, type Range, sizeOf } from '../ir/free-ranges.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { type Axis, isFixed, leastOf, type LinearAccess, Operand } from './access.ts';
import type { Assembly } from './assembly.ts';
import type { Contraction } from './contraction.ts';
import { type Depth, depthOf, innermostLoop, lookUps, planDepth } from './depth.ts';
import { collide, type GroupCopy, layoutInPlace, stageDomain, stagePanels, type TileLayout } from './staging.ts';
import { dotShape, type Segment, sharedShape, type TileShape, tileShape } from './tiles.ts';

/** True for a copy that a dispatch of its own makes. */
const isBefore = ({ kind }: Way): boolean => kind === 'domain' || kind === 'panels';

/** One choice of roles. */
export interface Choice {
  readonly columns: Operand;
  /** A range that only `columns` has, or one that both factors have: then rows are vectors along columns too. */
  readonly column: Range;
  readonly rows: Operand;
  readonly row: Range | null;
  readonly shape: TileShape;
  /** Lanes of the vectors, which run along columns or along the sum. */
  readonly lanes: number;
  /** The range of the sum along which vectors run; null if they run along columns. */
  readonly along: Range | null;
  readonly columnWay: Way;
  readonly rowWay: Way;
  readonly outer: readonly Range[];
  readonly cost: number;
}

/** Roles of ranges and factors. */
export type Roles = Pick<Choice, 'columns' | 'column' | 'rows' | 'row' | 'outer'>;

/** Weighs a tile for some roles. `slower`: how much slower its products are than the shape says; `rest`: nanoseconds besides. */
type Weigh = (shape: TileShape, along: Range | null, rowWay: Way, columnWay: Way, slower: number, rest: number) => void;

/** Further tiles for some roles, where the rows' factor has `height` rows at least. */
export type MoreTiles = (
  c: Contraction,
  roles: Roles,
  height: number,
  lanes: number,
  costs: ProductCosts,
  weigh: Weigh,
) => void;

/** The cheapest roles that the ranges can take, with the widest vectors, or with narrower ones that fit as well. */
export function choose(c: Contraction, elementBytes: number, caps: CodegenCaps, more?: MoreTiles): Choice | null {
  const narrowest = caps.fittingBytes === undefined ? caps.vectorBytes : leastVector;
  let best: Choice | null = null;
  for (let bytes = caps.vectorBytes; bytes >= narrowest; bytes /= 2) {
    const choice = chooseWith(c, Math.max(1, Math.floor(bytes / elementBytes)), caps, more);
    if (choice !== null && (best === null || choice.cost < best.cost)) best = choice;
  }
  return best;
}

/** The cheapest roles with vectors of `lanes` lanes. */
function chooseWith(c: Contraction, lanes: number, caps: CodegenCaps, more?: MoreTiles): Choice | null {
  const { sharedBytes, vectorBytes } = caps;
  const costs = productCosts(caps);
  const ordered = costs.formula !== undefined;
  const narrower = vectorBytes / (lanes * dtypeInfo[c.reduce.dtype].bytes);
  let best: Choice | null = null as Choice | null;
  const operands = c.factors.map((f) => new Operand(f.value, c.k, c.free)) as [Operand, Operand];
  const order = c.kernel.stores[0]?.ranges ?? [];
  const sized = ![...order, ...c.k].every(isFixed);
  const resultScale = productOf(order, leastOf) / sizeOf(order);
  for (const side of [0, 1] as const) {
    const [columns, rows] = [operands[side], operands[1 - side]!];
    const rowRanges = c.factors[1 - side]!.own;
    const depth = sizeOf(c.k);
    // Groups copy columns only for tiles of four rows or more, which are two vectors wide.
    const fits = depth * mostCopiedTiles * 2 * vectorBytes <= sharedBytes / 2;
    // Vectors run only along loops of fixed length.
    for (const column of [...c.factors[side].own, ...c.batch].filter(isFixed)) {
      const shared = c.batch.includes(column);
      for (const row of rowRanges.length === 0 ? [null] : rowRanges) {
        const outer = order.filter((r) => r !== column && r !== row);
        const roles = { columns, column, rows, row, outer };
        const height = row?.arg.extent ?? 1;
        const least = row === null ? 1 : leastOf(row);
        const rowScale = leastSize(rows) / rows.size;
        const columnScale = leastSize(columns) / columns.size;
        const walk = (x: Operand, { strides, apart }: Way, streams: number): Walk => {
          return { strides, apart, streams, elementBytes: x.elementBytes };
        };
        const weigh: Weigh = (shape, along, rowWay, columnWay, slower, rest) => {
          const streams = collisionPart(rows, rowWay, shape.rows, depth, costs);
          const misses = scatterPart(c.k, walk(rows, rowWay, shape.rows), walk(columns, columnWay, 1), costs);
          const tiles = slower * (1 + streams + misses);
          const copies = [rowWay.copy * costs.copies, columnWay.copy * costs.copies] as const;
          const before = copyDispatch * (Number(isBefore(rowWay)) + Number(isBefore(columnWay))) + rest;
          const most =
            computeCost(c, shape, row, column, narrower, costs, extentOf) * tiles + copies[0] + copies[1] + before;
          let cost = most;
          if (sized) {
            // A plan for several sizes is weighed at both ends: what it loses beside the best there counts alike.
            const few = computeCost(c, shape, row, column, narrower, costs, leastOf) * tiles;
            cost *= few + copies[0] * rowScale + copies[1] * columnScale + rest * resultScale + (before - rest);
          }
          if (best === null || cost < best.cost) best = { ...roles, shape, lanes, along, columnWay, rowWay, cost };
        };
        if (shared) {
          if (column.arg.extent < lanes || lanes === 1) continue;
          const shape = sharedShape(height, column.arg.extent, lanes, costs.registers, least);
          const rest = epilogueCost(c, column, costs);
          for (const rowWay of consecutiveWays(rows, row, column)) {
            for (const columnWay of columnWays(columns, column, shape.vectors * lanes, null, ordered))
              weigh(shape, null, rowWay, columnWay, sharedCost(shape), rest);
          }
          continue;
        }
        for (const k of lanes === 1 ? [] : c.k.filter((r) => isFixed(r) && r.arg.extent >= 6 * lanes)) {
          const shape = dotShape(least, column.arg.extent, costs, height);
          for (const rowWay of consecutiveWays(rows, row, k)) {
            for (const columnWay of consecutiveWays(columns, column, k)) {
              const slower = Math.max(dotCost(columnWay, k, lanes), dotCost(rowWay, k, lanes));
              weigh(
                shape,
                k,
                rowWay,
                columnWay,
                slower,
                resultsOf(c) * (dotMemory + lanes * dotLane + c.indices.length),
              );
            }
          }
        }
        more?.(c, roles, least, lanes, costs, weigh);
        if (column.arg.extent < lanes) continue;
        const shape = tileShape(least, column.arg.extent, lanes, costs, height);
        const epilogue = epilogueCost(c, column, costs);
        const local = fits && rowRanges.length === 1 ? ownCopies(c, rows, columns, column, height, costs) : null;
        for (const columnWay of columnWays(columns, column, shape.vectors * lanes, local, ordered)) {
          for (const rowWay of rowWays(rows, row, shape.rows, ordered))
            weigh(shape, null, rowWay, columnWay, 1, epilogue);
        }
      }
    }
  }
  return best;
}

/**
 * Whether groups may copy the columns they need. Where few rows share a column, that saves the copy made beforehand; `order` is the cost of
 * visiting the results column by column. Where everything fits in near caches it saves more: what one thread copies for all, the others fetch from
 * its cache, and the next copy takes it back, which costs more than the copy itself. Then nothing is copied beforehand.
 */
function ownCopies(
  c: Contraction,
  rows: Operand,
  columns: Operand,
  column: Range,
  height: number,
  { nearBytes }: ProductCosts,
): OwnCopies | null {
  const results = resultsOf(c);
  const width = column.arg.extent;
  const near = rows.bytes + columns.bytes + results * columns.elementBytes <= nearBytes;
  // With fewer columns there are too few groups; short sums read them in place.
  const isShort = sizeOf(c.k) <= ownShortSum;
  const suits = width >= ownColumns || (width >= ownShortColumns && isShort);
  if (near && height >= ownRows && suits && !columns.hasWindows)
    return { order: ownOrder * columns.size, instead: true };
  if (height < farRows || height > farMostRows || width < farColumns) return null;
  return { order: farOrder * results * c.indices.length, instead: false };
}

/** Reading both factors as vectors along the sum costs this much more than a broadcast tile; more where rows are not aligned. */
function dotCost({ kind, strides }: Way, along: Range, lanes: number): number {
  const apart = kind === 'inPlace' ? [...strides].flatMap(([r, s]) => (r === along ? [] : [s])) : [along.arg.extent];
  return apart.every((s) => s % lanes === 0) ? dotAligned : dotOther;
}

/** Tiles of elementwise products load a vector for every product. */
function sharedCost({ rows }: TileShape): number {
  return sharedSlowdown + sharedSlowdown / rows;
}

const extentOf = (r: Range): number => r.arg.extent;

/** Elements of a factor's domain at the least sizes. */
function leastSize({ axes }: Operand): number {
  return axes.reduce((n, { extent, end, members }) => n * (end === undefined ? extent : leastOf(members[0]!.range)), 1);
}

function resultsOf(c: Contraction): number {
  return sizeOf(c.kernel.stores[0]?.ranges ?? []);
}

function computeCost(
  c: Contraction,
  shape: TileShape,
  row: Range | null,
  column: Range,
  narrower: number,
  { flopsPerNs, formula }: ProductCosts,
  extent: (r: Range) => number,
): number {
  const all = productOf(c.k, extent) * productOf(c.kernel.stores[0]?.ranges ?? [], extent);
  const height = row === null ? 1 : extent(row);
  if (formula !== undefined) {
    const { bytes } = dtypeInfo[c.reduce.dtype as DType];
    const vectors = Math.ceil(column.arg.extent / shape.lanes);
    const slower = formula.slower(height, vectors, [shape.rows, shape.vectors]);
    const padding = (vectors * shape.lanes) / column.arg.extent;
    return ((2 * all) / flopsPerNs) * (Math.max(4, bytes) / 4) * slower * padding * narrower;
  }
  const padded = (extent: number, width: number): number => (Math.ceil(extent / width) * width) / extent;
  const waste = padded(height, shape.rows) * padded(column.arg.extent, shape.lanes * Math.min(2, shape.vectors));
  const narrow = shape.vectors === 1 && shape.rows > 1 && !c.batch.includes(column) ? oneVector : 1;
  return ((2 * all) / flopsPerNs) * waste * narrow * heightCost[Math.min(4, shape.rows)]!;
}

/** Nanoseconds of the epilogue's memory accesses per result: vectors only along a range of unit stride. */
function accessCost(c: Contraction, column: Range): number {
  let cost = 0;
  for (const index of c.indices) {
    const form = linearOf(index);
    const at = form.terms.indexOf(column);
    if (at >= 0) cost += form.coefs[at] === 1 ? accessVectors : accessStrides;
    else cost += c.free.has(index, column) ? accessScattered : accessAround;
  }
  return cost;
}

/** The same where sums go through memory, and a second dispatch reads them in the order of the results. */
function transposedCost(c: Contraction): number {
  const index = c.kernel.stores[0]?.store.src[1];
  const form = index && linearOf(index);
  const unit = form?.terms.find((r, i) => form.coefs[i] === 1 && r.op === 'RANGE');
  return unit === undefined ? Number.POSITIVE_INFINITY : accessTransposed + accessCost(c, unit as Range);
}

/** True if it pays to store sums in memory first and transpose them on the way out, because results are not contiguous along the columns. */
export function transposePays(c: Contraction, column: Range): boolean {
  return transposedCost(c) < accessCost(c, column);
}

/** Nanoseconds of the epilogue. */
export function epilogueCost(c: Contraction, column: Range, { formula }: ProductCosts): number {
  const inPlace = accessCost(c, column);
  return resultsOf(c) * (formula === undefined ? inPlace : Math.min(inPlace, transposedCost(c)));
}

/**
 * How much slower tiles get because their sum strides over memory: an estimate of first-level cache misses.
 */

/** How one factor is walked. */
export interface Walk {
  readonly strides: ReadonlyMap<Range, number>;
  /** Concurrent streams and their distance in elements. */
  readonly streams: number;
  readonly apart: number;
  readonly elementBytes: number;
}

/** The fraction by which a tile's time grows. */
export function scatterPart(k: readonly Range[], rows: Walk, columns: Walk, costs: ProductCosts): number {
  const depths = planDepth(k.map((r) => depthOf(r, rows.strides, columns.strides)));
  const walked = (which: 'row' | 'column', walk: Walk): number => missPart(depths.loops, which, walk, costs);
  return lookUpPart * lookUps(depths) + walked('row', rows) + walked('column', columns);
}

function missPart(
  loops: readonly Depth[],
  which: 'row' | 'column',
  { streams, apart, elementBytes }: Walk,
  { safeLines, stayingLines, worst, line }: ProductCosts,
): number {
  const side = Math.abs(apart) * elementBytes * streams <= lineBytes ? 1 : streams;
  let lines = side;
  let touches = side;
  let safe = safeLines;
  let products = 1;
  [...loops].reverse().forEach((d, i) => {
    const step = Math.abs(d[which]) * elementBytes;
    const own = step >= lineBytes ? d.extent : Math.max(1, (d.extent * step) / lineBytes);
    lines *= own;
    // Consecutive lines are prefetched, best where neighbouring vectors use all of them.
    const ahead = step > 1.25 * lineBytes ? 1 : step >= lineBytes / 4 ? 16 : 4;
    touches *= i > 0 ? d.extent : Math.max(1, own / ahead);
    if (step >= lineBytes && stayingLines !== undefined) {
      if (d.extent > stayingLines(step)) safe = Math.min(safe, stayingLines(step));
    } else if (step >= lineBytes) {
      if (d.extent > linesThatStay(step)) safe = Math.min(safe, overfullLines);
      if (collide(step, 2)) safe = crowdedLines;
    }
    products *= d.extent;
  });
  const far = worst * Math.min(1, touches / products) * Math.min(1, Math.max(0, lines - safe) / (16 * safe));
  if (line === undefined) return far;
  return far + line.cost * (touches / products) * Math.min(1, Math.max(0, lines / line.near - 1));
}

// How a factor can get to the tiles: read in place, copied over its domain, copied into panels, or copied by each group.
//
// Each candidate comes with what the choice needs to know of it; `choose` takes one for each factor.

/** One candidate, and how the sum then walks memory. */
export interface Way {
  /**
   * `domain` and `panels` are copies made beforehand (staging.ts); `local`: each group copies what its tiles of columns need into
   * group memory, so that only one group copies each element.
   */
  readonly kind: 'inPlace' | 'domain' | 'panels' | 'local';
  /** Axes of the copy in order; for panels those outside. */
  readonly outside: readonly Axis[];
  /** Axes inside panels. */
  readonly inside: readonly Axis[];
  /** Nanoseconds of the copy on one thread. */
  readonly copy: number;
  /** Strides of the ranges of the sum. */
  readonly strides: ReadonlyMap<Range, number>;
  /** Distance in elements of the streams that a tile reads concurrently; 0: one stream. */
  readonly apart: number;
}

/** Nanoseconds for copying a factor's domain with the axis of `innermost` last (null: the order of the original). */
function copyCost(x: Operand, innermost: Range | null): number {
  const last = x.axes[x.axes.length - 1];
  const same = innermost === null || (last?.members.some((m) => m.range === innermost) ?? false);
  // What does not fit in caches is written to memory and read again.
  const far = x.bytes > farBytes ? copyFar : 0;
  return x.size * (far + (x.access === null ? (same ? copyComputed : copyComputedOther) : same ? copySame : copyOther));
}

/** Strides of the ranges of some axes stored row-major, where elements along the last axis are `step` apart. */
function stridesOver(axes: readonly Axis[], step: number): Map<Range, number> {
  const strides = new Map<Range, number>();
  let size = step;
  for (const axis of [...axes].reverse()) {
    for (const m of axis.members) strides.set(m.range, m.step * size);
    size *= axis.extent;
  }
  return strides;
}

function inPlace(x: Operand, along: Range | null): Way[] {
  if (x.access === null) return [];
  const { strides } = x.access;
  const apart = along === null ? 0 : (strides.get(along) ?? 0);
  return [{ kind: 'inPlace', outside: [], inside: [], copy: 0, strides, apart }];
}

/** A copy over the domain with the axis of `innermost` last. */
export function domain(x: Operand, along: Range | null, innermost: Range | null): Way {
  const last = innermost === null ? null : x.axisOf(innermost);
  const outside = last === null ? x.axes : [...x.axes.filter((a) => a !== last), last];
  const strides = stridesOver(outside, 1);
  const apart = along === null ? 0 : (strides.get(along) ?? 0);
  return { kind: 'domain', outside, inside: [], copy: copyCost(x, innermost), strides, apart };
}

/**
 * Panels along a range with an axis of its own: with all axes inside, or only those of the sum. `ordered`: axes of the sum that cannot
 * become an innermost loop (depth.ts) stand outside the others, so that loops read panels without jumps.
 */
function panels(x: Operand, along: Range | null, width: number, ordered: boolean): Way[] {
  if (along !== null && !x.isAlone(along)) return [];
  const others = x.axes.filter((a) => along === null || a !== x.axisOf(along));
  const free = (a: Axis): boolean => a.members.every((m) => !x.k.includes(m.range));
  const make = (isInside: (a: Axis) => boolean): Way => {
    const isShort = (a: Axis): boolean => ordered && x.isDeep(a) && a.extent < innermostLoop;
    const within = others.filter(isInside);
    const outside = others.filter((a) => !isInside(a));
    const inside = [...within.filter(isShort), ...within.filter((a) => !isShort(a))];
    const depth = inside.reduce((n, a) => n * a.extent, width);
    const strides = new Map([...stridesOver(outside, depth), ...stridesOver(inside, width)]);
    return { kind: 'panels', outside, inside, copy: copyCost(x, along), strides, apart: 0 };
  };
  const all = make((a) => !free(a));
  return others.some((a) => !free(a) && !x.isDeep(a)) ? [all, make((a) => x.isDeep(a))] : [all];
}

/**
 * Candidates for the factor that is broadcast, `height` rows at a time. `ordered`: panels in the order of the sum's loops, and for a factor with
 * windows its domain with the longest loop of the sum last, so that its steps stay within cache lines.
 */
export function rowWays(x: Operand, along: Range | null, height: number, ordered: boolean): Way[] {
  const ways = [...inPlace(x, along), domain(x, along, null)];
  if (ordered && x.hasWindows) {
    const longest = x.k
      .filter(isFixed)
      .reduce<Range | null>((a, b) => (a !== null && a.arg.extent >= b.arg.extent ? a : b), null);
    if (longest !== null && longest !== along && x.isAlone(longest)) ways.push(domain(x, along, longest));
  }
  return [...ways, ...panels(x, along, height, ordered)];
}

/** Copies that groups make for themselves. */
export interface OwnCopies {
  /** Nanoseconds besides the copy itself. */
  readonly order: number;
  /** They replace panels copied before. */
  readonly instead: boolean;
}

/** Candidates for the factor that is read as vectors along `along`. `local`: null if groups cannot make copies. */
export function columnWays(x: Operand, along: Range, width: number, local: OwnCopies | null, ordered: boolean): Way[] {
  const unit = x.strideOf(along) === 1 ? inPlace(x, along) : [];
  const ways = local?.instead === true && unit.length > 0 ? [] : panels(x, along, width, ordered);
  for (const way of unit) ways.push({ ...way, apart: 0 });
  if (local !== null) {
    let size = width;
    const strides = new Map<Range, number>();
    for (const r of [...x.k].reverse()) {
      strides.set(r, size);
      size *= r.arg.extent;
    }
    for (const way of unit)
      ways.push({ ...way, kind: 'local', copy: x.size * groupCopy + local.order, strides, apart: 0 });
  }
  // Over a domain the range stays contiguous if it has the unit step of its axis.
  const axis = x.axisOf(along);
  if (x.hasWindows && axis?.members.find((m) => m.range === along)?.step === 1) {
    ways.push({ ...domain(x, along, along), apart: 0 });
  }
  return ways;
}

/** Candidates in which elements along a range are contiguous: a shared column, or a range of the sum. */
export function consecutiveWays(x: Operand, along: Range | null, range: Range): Way[] {
  if (x.strideOf(range) === 1) return inPlace(x, along);
  const step = x.axisOf(range)?.members.find((m) => m.range === range)?.step;
  return step === 1 ? [domain(x, along, range)] : [];
}

/** The fraction by which tiles of `streams` rows take longer where lines of these share cache sets; most where they evict each other at every step. */
function collisionPart(x: Operand, way: Way, streams: number, depth: number, costs: ProductCosts): number {
  const bytes = Math.abs(way.apart) * x.elementBytes;
  // Neighbouring rows share lines, not sets.
  if (way.kind !== 'inPlace' || depth < 256 || bytes < lineBytes || !collide(bytes, streams)) return 0;
  const { collisions, evictions } = costs;
  return evictions !== undefined && streams > evictions.lines(bytes) ? evictions.cost : collisions;
}

/** Layouts of a factor for the segments of a side, made as chosen; for `local` the value that groups copy. */
export function layoutsOf(
  assembly: Assembly,
  e: Exprs,
  x: Operand,
  way: Way,
  along: Range | null,
  segments: readonly Segment[],
): readonly (TileLayout | GroupCopy)[] {
  const inPlaceOf = (access: LinearAccess): TileLayout[] => segments.map(() => layoutInPlace(access, along));
  switch (way.kind) {
    case 'inPlace':
      return inPlaceOf(x.access!);
    case 'domain': {
      const room = Math.max(...segments.map(({ width, to }) => width - to));
      return inPlaceOf(stageDomain(assembly, e, x.value, way.outside, room));
    }
    case 'panels':
      if (along === null) return inPlaceOf(stageDomain(assembly, e, x.value, [...way.outside, ...way.inside]));
      return stagePanels(assembly, e, x.value, along, segments, way.outside, way.inside, x.axes);
    case 'local':
      return segments.map(() => ({ copied: x.value }));
    default:
      return way.kind satisfies never;
  }
}
