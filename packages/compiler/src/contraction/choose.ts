/**
 * Roles of the ranges of a contraction: which become columns (vectors), which rows, and how both factors are read.
 *
 * Every candidate is rated by a rough estimate in nanoseconds: copies, tiles including their waste, stores.
 */
import {
  accessAround,
  accessScattered,
  accessStrides,
  accessVectors,
  copyDispatch,
  dotAligned,
  dotLane,
  dotMemory,
  dotOther,
  type Ends,
  farColumns,
  farMostRows,
  farOrder,
  farRows,
  heightCost,
  keptElements,
  leastKept,
  leastLong,
  leastLongCopied,
  leastShort,
  leastShortCopied,
  leastVector,
  mostCopiedTiles,
  oneVector,
  ownColumns,
  ownOrder,
  ownRows,
  ownShortColumns,
  ownShortSum,
  type ProductCosts,
  productCosts,
  sharedSlowdown,
  shortSum,
} from '../codegen/costs/cpu.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { productOf, type Range, sizeOf, typicalOf } from '../ir/free-ranges.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { isFixed, leastOf, Operand } from './access.ts';
import type { Assembly } from './assembly.ts';
import type { Cover, CoverFacts, GroupPlan, Split } from './blocking.ts';
import { type Contraction, productsOf } from './contraction.ts';
import { dotShape, type Segment, sharedShape, type TileShape, tileShape } from './tiles.ts';
import { columnWays, consecutiveWays, type Orders, type OwnCopies, rowWays, type Way } from './packing.ts';
import type { CutSum } from './tile-nests.ts';
import { conflictPart, missPart } from './cache-misses.ts';
import type { Workspace } from './workspace.ts';

/** Whether tiles of vectors pay where a dispatch before copies so many elements of a factor; 0: no copy. */
export function paysFor(c: Contraction, copied = 0): boolean {
  // A sum that the plain loop nest writes out, or one of a few steps up to a size.
  const short = productOf(c.k, typicalOf) <= shortSum;
  // Only a nest whose sum has a fixed length, and whose factor is the same all over, keeps it in registers.
  const kept = copied <= keptElements && c.batch.length === 0 && c.k.every(isFixed);
  let least = short ? leastShort : leastLong;
  if (copied > 0) least = short ? (kept ? leastKept : leastShortCopied) : leastLongCopied;
  return productsOf(c) >= least;
}

/** True for a copy that a dispatch of its own makes. */
export const isBefore = ({ kind }: Way): boolean => kind === 'domain' || kind === 'panels';

/** One choice of roles. */
export interface Choice {
  readonly columns: Operand;
  /** A range that only `columns` has, or one that both factors have: then rows are vectors along columns too. */
  readonly column: Range;
  /** Set where the column ends at a size. */
  readonly sized: SizedColumns | null;
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
  /** What is left out of the sum. */
  readonly cut: Cut | null;
  readonly cost: number;
}

/** Iterations that a choice leaves out of its sum (padding.ts). */
export interface Cut {
  readonly loops: ReadonlySet<Range>;
  /** Time of the products that are left, as a part of that of all. */
  readonly part: number;
  readonly sum: CutSum;
}

/** What choices may leave out of their sums. */
export interface Cuts {
  /** No cut leaves less than this part of the products. */
  readonly least: number;
  /** What a choice may leave out; null: nothing. */
  of(choice: Choice): readonly (Cut | null)[];
}

/** Roles of ranges and factors. */
export type Roles = Pick<Choice, 'columns' | 'column' | 'sized' | 'rows' | 'row' | 'outer'>;

/** What columns that end at a size need (sized-products.ts). Without it only loops of fixed length are columns. */
export interface SizedColumns {
  /** Slowdown of the products. */
  readonly slower: number;
  /** Lanes of the last vectors, where there are `least` columns for certain. */
  narrow(least: number, lanes: number, elementBytes: number, caps: CodegenCaps): number;
  /** Columns that tiles compute, as a part of `width`. */
  computed(shape: TileShape, width: number): number;
  /** Covers rows x the columns; where these fill no vector, vectors have `narrow` lanes. `bytes`: of an element. */
  cover(
    e: Exprs,
    rows: Segment,
    column: Range,
    narrow: number,
    shape: TileShape,
    bytes: number,
    facts: CoverFacts,
  ): Cover;
}

declare module '../codegen/lowering.ts' {
  interface RareLoops {
    readonly sizedColumns: SizedColumns;
  }
}

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

/** What is decided otherwise on processors with known facts, and what else may be chosen there (processor-choices.ts). */
export interface MoreChoices {
  readonly tiles: MoreTiles;
  readonly orders: Orders;
  readonly cuts: Cuts;
  /** The tile where the sum runs over vectors along `extent` iterations, and its steps, relative to a loop that vectors fill. `most`: rows at most; `ends`: of columns that end at a size. */
  along(
    extent: number,
    lanes: number,
    rows: number,
    columns: number,
    rowWay: Way,
    columnWay: Way,
    most: number,
    ends: Ends | undefined,
  ): readonly [shape: TileShape, steps: number];
  /** Time of the products of a choice with `height` rows and `width` columns, relative to their multiply-adds alone with the widest vectors. */
  slower(choice: Choice, height: number, width: number): number;
  /** Nanoseconds of the epilogue's memory accesses per result. */
  epilogue(column: Range): number;
  /** True if it pays to store sums in memory first and transpose them on the way out, because results are not contiguous along the columns. */
  transposes(column: Range): boolean;
  /** Makes a workspace with columns contiguous, from which results are transposed (transposed-results.ts). */
  readonly workspace: TransposedWorkspace;
  /** Loops around the tiles that consecutive groups run through with the same columns. */
  within(choice: Choice, cover: Cover, groups: GroupPlan, split: Split | null): readonly Range[];
}

type TransposedWorkspace = (
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  column: Range,
  part: Range | null,
) => Workspace;

/** The cheapest roles that the ranges can take, with the widest vectors, or with narrower ones that fit as well. */
export function choose(c: Contraction, elementBytes: number, caps: CodegenCaps, more?: MoreChoices): Choice | null {
  const { fittingBytes, sharedBytes, vectorBytes } = caps;
  const costs = productCosts(caps);
  const cost = costOf(c, costs, more);
  const all = rolesOf(c, caps);
  let best: Choice | null = null as Choice | null;
  // Groups copy columns only for tiles of four rows or more, which are two vectors wide.
  const fits = sizeOf(c.k) * mostCopiedTiles * 2 * vectorBytes <= sharedBytes / 2;
  for (let bytes = vectorBytes; bytes >= (fittingBytes === undefined ? vectorBytes : leastVector); bytes /= 2) {
    const lanes = Math.max(1, Math.floor(bytes / elementBytes));
    const fills = ({ arg: { extent } }: Range): boolean => costs.formula?.fills(extent, lanes) ?? extent >= 6 * lanes;
    for (const roles of all) {
      const { columns, column, rows, row, sized } = roles;
      const width = typicalOf(column);
      const ends: Ends | undefined = sized === null ? undefined : [leastOf(column), column.arg.extent];
      const height = row?.arg.extent ?? 1;
      const least = row === null ? 1 : leastOf(row);
      const weigh: Weigh = (shape, along, rowWay, columnWay, slower, rest) => {
        const whole: Choice = { ...roles, shape, lanes, along, columnWay, rowWay, cut: null, cost: 0 };
        // Most are more expensive than the best one even where the sum never waits for memory.
        if (best !== null && cost(whole, slower * (more?.cuts.least ?? 1), rest, false) >= best.cost) return;
        for (const cut of more?.cuts.of(whole) ?? [null]) {
          const choice = { ...whole, cut };
          choice.cost = cost(choice, slower, rest, true);
          if (best === null || choice.cost < best.cost) best = choice;
        }
      };
      if (sized === null) more?.tiles(c, roles, least, lanes, costs, weigh);
      if (c.batch.includes(column)) {
        if (width < lanes || lanes === 1) continue;
        const shape = sharedShape(height, width, lanes, costs.registers, least);
        const rest = resultsOf(c) * (more?.epilogue(column) ?? accessCost(c, column));
        for (const rowWay of consecutiveWays(rows, row, column)) {
          for (const columnWay of columnWays(columns, column, shape.vectors * lanes, null, more?.orders))
            weigh(shape, null, rowWay, columnWay, sharedCost(shape), rest);
        }
        continue;
      }
      for (const k of lanes === 1 ? [] : c.k.filter((r) => isFixed(r) && fills(r))) {
        const rest = resultsOf(c) * (dotMemory + lanes * dotLane + c.indices.length);
        for (const rowWay of consecutiveWays(rows, row, k, more?.orders)) {
          for (const columnWay of consecutiveWays(columns, column, k, more?.orders)) {
            const [shape, steps] = more?.along(k.arg.extent, lanes, least, width, rowWay, columnWay, height, ends) ?? [
              dotShape(least, width, costs, height, ends),
              1,
            ];
            const slower = Math.max(dotCost(columnWay, k, lanes), dotCost(rowWay, k, lanes));
            weigh(shape, k, rowWay, columnWay, slower * steps, rest);
          }
        }
      }
      if (width < lanes || (ends && ends[0] < sized!.narrow(ends[0], lanes, elementBytes, caps))) continue;
      const shape = tileShape(least, width, lanes, costs, height, ends);
      const rest = resultsOf(c) * (more?.epilogue(column) ?? accessCost(c, column));
      const local =
        fits && roles.isOnly && sized === null ? ownCopies(c, rows, columns, column, height, costs, caps) : null;
      for (const columnWay of columnWays(columns, column, shape.vectors * lanes, local, more?.orders)) {
        for (const rowWay of rowWays(rows, row, shape.rows, more?.orders))
          weigh(shape, null, rowWay, columnWay, 1, rest);
      }
    }
  }
  return best;
}

/** Fewest rows of tiles whose columns end at a size: a group has all of these, so only rows make several groups. */
const leastRowsBeside = 4;

/** The roles that the ranges can take, and whether there is one range for rows. */
function rolesOf(c: Contraction, caps: CodegenCaps): readonly (Roles & { readonly isOnly: boolean })[] {
  const operands = c.factors.map((f) => new Operand(f.value, c.k, c.free, caps)) as [Operand, Operand];
  return operands.flatMap((columns, side) => {
    const { own } = c.factors[1 - side]!;
    return [...c.factors[side]!.own, ...c.batch.filter(isFixed)].flatMap((column) =>
      (own.length === 0 ? [null] : own).flatMap((row) => {
        const suits = isFixed(column) || (row !== null && leastOf(row) >= leastRowsBeside);
        const sized = suits && !isFixed(column) ? caps.lowering.rare?.()?.sizedColumns : null;
        if (!suits || sized === undefined) return [];
        const outer = orderOf(c).filter((r) => r !== column && r !== row);
        return [{ columns, column, sized, rows: operands[1 - side]!, row, outer, isOnly: own.length === 1 }];
      }),
    );
  });
}

/**
 * Estimates of choices in nanoseconds: products that are `slower` than the tile says, and the `rest` of a choice. `waits`: with the time that tiles wait
 * for memory, without which it is the least that the choice may cost.
 */
function costOf(
  c: Contraction,
  costs: ProductCosts,
  more: MoreChoices | undefined,
): (choice: Choice, slower: number, rest: number, waits: boolean) => number {
  const order = orderOf(c);
  const sizedSum = !c.k.every(isFixed);
  const sized = sizedSum || !order.every(isFixed);
  const resultScale = productOf(order, leastOf) / sizeOf(order);
  return (choice, slower, rest, waits) => {
    const { columns, rows, shape, rowWay, columnWay, cut } = choice;
    const tilesAt = (extent: (r: Range) => number, walked: (r: Range) => number): number => {
      if (!waits) return slower;
      const conflicts = conflictPart(rows, rowWay, shape.rows, productOf(c.k, extent), costs);
      const misses = missPart(c.k, walked, [rows, rowWay], [columns, columnWay], shape.rows, costs, cut?.loops);
      return slower * (1 + conflicts + misses) * (cut?.part ?? 1);
    };
    // The memory that a sum walks over is estimated at a typical size: that of a short sum stays in caches.
    const tiles = tilesAt(extentOf, typicalOf);
    const copies = [rowWay.copy * costs.copies, columnWay.copy * costs.copies] as const;
    const before = copyDispatch * (Number(isBefore(rowWay)) + Number(isBefore(columnWay))) + rest;
    const most = computeCost(c, choice, costs, extentOf, more) * tiles + copies[0] + copies[1] + before;
    if (!sized) return most;
    // A plan for several sizes is weighed at the least and at the greatest. The product of both makes relative losses count alike.
    const nearer = sizedSum ? tilesAt(leastOf, leastOf) : tiles;
    const few = computeCost(c, choice, costs, leastOf, more) * nearer;
    const copied = [rows, columns].reduce((sum, x, i) => sum + copies[i]! * (leastSize(x) / x.size), few);
    return most * (copied + rest * resultScale + (before - rest));
  };
}

/**
 * Whether groups may copy the columns they need. Where few rows share a column, that saves the copy made beforehand; `order` is the
 * cost of visiting the results column by column. Where everything fits in near caches it saves more: a copy that one thread makes
 * for all must move from its cache to theirs, and back for the next copy. Then nothing is copied beforehand (`instead`).
 */
function ownCopies(
  c: Contraction,
  rows: Operand,
  columns: Operand,
  column: Range,
  height: number,
  { nearBytes }: ProductCosts,
  caps: CodegenCaps,
): OwnCopies | null {
  const results = resultsOf(c);
  const width = column.arg.extent;
  const near = rows.bytes + columns.bytes + results * columns.elementBytes <= nearBytes;
  // With fewer columns there are too few groups; short sums read them in place.
  const isShort = sizeOf(c.k) <= ownShortSum;
  const suits = width >= ownColumns || (width >= ownShortColumns && isShort);
  const instead = near && height >= ownRows && suits && !columns.hasWindows;
  if (!instead && (height < farRows || height > farMostRows || width < farColumns)) return null;
  const copies = caps.lowering.rare?.()?.groupCopies;
  const order = instead ? ownOrder * columns.size : farOrder * results * c.indices.length;
  return copies === undefined ? null : { copies, order, instead };
}

/** Reading both factors as vectors along the sum costs this much more than a broadcast tile; more where rows are not aligned, as in copies by phases. */
export function dotCost({ kind, strides, folds }: Way, along: Range, lanes: number): number {
  if (folds !== undefined) return dotOther;
  const pitches = kind === 'inPlace' ? [...strides].flatMap(([r, s]) => (r === along ? [] : [s])) : [along.arg.extent];
  return pitches.every((s) => s % lanes === 0) ? dotAligned : dotOther;
}

/** Tiles of elementwise products load a vector for every product. */
export function sharedCost({ rows }: Pick<TileShape, 'rows'>): number {
  return sharedSlowdown + sharedSlowdown / rows;
}

const extentOf = (r: Range): number => r.arg.extent;

/** Elements of a factor's domain at the least sizes. */
function leastSize({ axes }: Operand): number {
  return axes.reduce((n, { extent, end, members }) => n * (end === undefined ? extent : leastOf(members[0]!.range)), 1);
}

/** The ranges of the results, outermost first. */
function orderOf(c: Contraction): readonly Range[] {
  return c.kernel.stores[0]?.ranges ?? [];
}

/** How many results there are. */
export function resultsOf(c: Contraction): number {
  return sizeOf(orderOf(c));
}

/** Nanoseconds of the products, with those that tiles waste. */
function computeCost(
  c: Contraction,
  choice: Choice,
  { flopsPerNs }: ProductCosts,
  extent: (r: Range) => number,
  more: MoreChoices | undefined,
): number {
  const { shape, row, column, sized } = choice;
  const all = productOf(c.k, extent) * productOf(orderOf(c), extent);
  const height = row === null ? 1 : extent(row);
  const width = extent(column);
  const products = ((2 * all) / flopsPerNs) * (sized?.slower ?? 1);
  if (more !== undefined) return products * more.slower(choice, height, width);
  const padded = (extent: number, width: number): number => (Math.ceil(extent / width) * width) / extent;
  const wide = sized?.computed(shape, width) ?? padded(width, shape.lanes * Math.min(2, shape.vectors));
  const waste = padded(height, shape.rows) * wide;
  const narrow = shape.vectors === 1 && shape.rows > 1 && !c.batch.includes(column) ? oneVector : 1;
  return products * waste * narrow * heightCost[Math.min(4, shape.rows)]!;
}

/** Nanoseconds of the epilogue's memory accesses per result: vectors only along a range of unit stride. */
export function accessCost(c: Contraction, column: Range): number {
  let cost = 0;
  for (const index of c.indices) {
    const form = linearOf(index);
    const at = form.terms.indexOf(column);
    if (at >= 0) cost += form.coefs[at] === 1 ? accessVectors : accessStrides;
    else cost += c.free.has(index, column) ? accessScattered : accessAround;
  }
  return cost;
}
