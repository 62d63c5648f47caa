/**
 * Roles of the ranges of a contraction: which become columns (vectors), which rows, and how both factors are read.
 *
 * Every possibility is weighed by a rough count of nanoseconds: copies, tiles with their waste, stores.
 */
import {
  crowdedLines,
  heightCost,
  lookUpPart,
  mostCopiedTiles,
  nearBytes,
  overfullLines,
  safeLines,
  speed,
  vectorRegisters,
  worst,
} from '../codegen/costs/cpu.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import { collide, linesThatStay } from './staging.ts';
import type { Contraction } from './contraction.ts';
import { type Depth, lookUps, planDepth } from './depth.ts';
import { Operand } from './access.ts';
import { type TileShape, dotShape, sharedShape, tileShape } from './tiles.ts';
import { type OwnCopies, type Way, columnWays, consecutiveWays, rowWays, streamsCollide } from './ways.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import { linearOf } from '../ir/simplify/integers.ts';

/** One choice of roles. */
export interface Choice {
  readonly columns: Operand;
  /** A range of `columns` alone, or one that both factors have: then rows are vectors of columns too. */
  readonly column: Range;
  readonly rows: Operand;
  readonly row: Range | null;
  readonly shape: TileShape;
  /** The range of the sum that runs over vectors, columns being no vectors then; null: columns are. */
  readonly along: Range | null;
  readonly columnWay: Way;
  readonly rowWay: Way;
  readonly outer: readonly Range[];
  readonly cost: number;
}

/** All roles the ranges can take, the cheapest of them. */
export function choose(c: Contraction, lanes: number, caps: CodegenCaps): Choice | null {
  const { sharedBytes, vectorBytes, vectorRegisters: registers = vectorRegisters } = caps;
  let best: Choice | null = null as Choice | null;
  const operands = c.factors.map((f) => new Operand(f.value, c.k, c.free)) as [Operand, Operand];
  const order = c.kernel.stores[0]?.ranges ?? [];
  for (const side of [0, 1] as const) {
    const [columns, rows] = [operands[side], operands[1 - side]!];
    const rowRanges = c.factors[1 - side]!.own;
    const depth = sizeOf(c.k);
    // Where groups copy columns there are four rows or more, so tiles of two vectors.
    const fits = depth * mostCopiedTiles * 2 * vectorBytes <= sharedBytes / 2;
    for (const column of [...c.factors[side].own, ...c.batch]) {
      const shared = c.batch.includes(column);
      for (const row of rowRanges.length === 0 ? [null] : rowRanges) {
        const outer = order.filter((r) => r !== column && r !== row);
        const roles = { columns, column, rows, row, outer };
        const height = row?.arg.extent ?? 1;
        const walk = (x: Operand, { strides, apart }: Way, streams: number): Walk => {
          return { strides, apart, streams, elementBytes: x.elementBytes };
        };
        const weigh = (
          shape: TileShape,
          along: Range | null,
          rowWay: Way,
          columnWay: Way,
          slower: number,
          rest: number,
        ): void => {
          const streams = streamsCollide(rows, rowWay, shape.rows, depth) ? 0.7 : 0;
          const misses = scatterPart(c.k, walk(rows, rowWay, shape.rows), walk(columns, columnWay, 1));
          const compute = computeCost(c, shape, row, column) * slower * (1 + streams + misses);
          const cost = compute + rowWay.copy + columnWay.copy + rest;
          if (best === null || cost < best.cost) best = { ...roles, shape, along, columnWay, rowWay, cost };
        };
        if (shared) {
          if (column.arg.extent < lanes || lanes === 1) continue;
          const shape = sharedShape(height, column.arg.extent, lanes, registers);
          const rest = epilogueCost(c, column);
          for (const rowWay of consecutiveWays(rows, row, column)) {
            for (const columnWay of columnWays(columns, column, shape.vectors * lanes, null))
              weigh(shape, null, rowWay, columnWay, sharedCost(shape), rest);
          }
          continue;
        }
        for (const k of lanes === 1 ? [] : c.k.filter((r) => r.arg.extent >= 6 * lanes)) {
          const shape = dotShape(height, column.arg.extent, registers);
          for (const rowWay of consecutiveWays(rows, row, k)) {
            for (const columnWay of consecutiveWays(columns, column, k)) {
              const slower = Math.max(dotCost(columnWay, k, lanes), dotCost(rowWay, k, lanes));
              weigh(shape, k, rowWay, columnWay, slower, resultsOf(c) * (2 + lanes / 2 + c.indices.length));
            }
          }
        }
        if (column.arg.extent < lanes) continue;
        const shape = tileShape(height, column.arg.extent, lanes, registers);
        const epilogue = epilogueCost(c, column);
        const local = fits && rowRanges.length === 1 ? ownCopies(c, rows, columns, column, height) : null;
        for (const columnWay of columnWays(columns, column, shape.vectors * lanes, local)) {
          for (const rowWay of rowWays(rows, row, shape.rows)) weigh(shape, null, rowWay, columnWay, 1, epilogue);
        }
      }
    }
  }
  return best;
}

/**
 * Whether groups may copy the columns they need. Where few rows share a column it saves the copy made before; `order`: what is lost by
 * going through the results column by column. Where all is near the processor it saves more: what one thread copies for all, others fetch from
 * its cache, and it takes it back the next time, which is dearer than the copy. Then nothing is copied before.
 */
function ownCopies(c: Contraction, rows: Operand, columns: Operand, column: Range, height: number): OwnCopies | null {
  const results = resultsOf(c);
  const near = rows.bytes + columns.bytes + results * columns.elementBytes <= nearBytes;
  // Fewer columns make too few groups; short sums read them in place.
  const suits = column.arg.extent >= 96 || (column.arg.extent >= 64 && sizeOf(c.k) <= 128);
  if (near && height >= 64 && suits && !columns.hasWindows) return { order: 1.15 * columns.size, instead: true };
  if (height < 8 || height > 128 || column.arg.extent < 512) return null;
  return { order: 0.4 * results * c.indices.length, instead: false };
}

/** Reading both factors as vectors along the sum costs this much more than a broadcast tile, more where rows are not aligned. */
function dotCost({ kind, strides }: Way, along: Range, lanes: number): number {
  const apart = kind === 'inPlace' ? [...strides].flatMap(([r, s]) => (r === along ? [] : [s])) : [along.arg.extent];
  return apart.every((s) => s % lanes === 0) ? 1.05 : 1.5;
}

/** Tiles of elementwise products load a vector for each of them. */
function sharedCost({ rows }: TileShape): number {
  return 1.2 + 1.2 / rows;
}

function resultsOf(c: Contraction): number {
  return sizeOf(c.kernel.stores[0]?.ranges ?? []);
}

function computeCost(c: Contraction, shape: TileShape, row: Range | null, column: Range): number {
  const padded = (extent: number, width: number): number => (Math.ceil(extent / width) * width) / extent;
  const waste =
    padded(row?.arg.extent ?? 1, shape.rows) * padded(column.arg.extent, shape.lanes * Math.min(2, shape.vectors));
  const narrow = shape.vectors === 1 && shape.rows > 1 && !c.batch.includes(column) ? 1.3 : 1;
  const all = sizeOf(c.k) * resultsOf(c);
  return ((2 * all) / speed) * waste * narrow * heightCost[Math.min(4, shape.rows)]!;
}

/** Nanoseconds of the epilogue's memory accesses: vectors only along a range of unit stride. */
function epilogueCost(c: Contraction, column: Range): number {
  let cost = 0;
  for (const index of c.indices) {
    const form = linearOf(index);
    const at = form.terms.indexOf(column);
    if (at >= 0) cost += form.coefs[at] === 1 ? 0.2 : 1.5;
    else cost += c.free.has(index, column) ? 2 : 0.05;
  }
  return cost * resultsOf(c);
}

/**
 * How much slower tiles get because their sum walks all over memory: an estimate of first-level cache misses.
 */

/** How one factor is walked. */
export interface Walk {
  readonly strides: ReadonlyMap<Range, number>;
  /** Streams side by side and their distance in elements. */
  readonly streams: number;
  readonly apart: number;
  readonly elementBytes: number;
}

const lineBytes = 64;

/** The part by which a tile's time grows. */
export function scatterPart(k: readonly Range[], rows: Walk, columns: Walk): number {
  const depths = planDepth(
    k.map((r): Depth => {
      return { extent: r.arg.extent, row: rows.strides.get(r) ?? 0, column: columns.strides.get(r) ?? 0 };
    }),
  );
  const walked = (which: 'row' | 'column', walk: Walk): number => missPart(depths.loops, which, walk);
  return lookUpPart * lookUps(depths) + walked('row', rows) + walked('column', columns);
}

function missPart(loops: readonly Depth[], which: 'row' | 'column', { streams, apart, elementBytes }: Walk): number {
  const side = Math.abs(apart) * elementBytes * streams <= lineBytes ? 1 : streams;
  let lines = side;
  let touches = side;
  let safe = safeLines;
  let products = 1;
  [...loops].reverse().forEach((d, i) => {
    const step = Math.abs(d[which]) * elementBytes;
    const own = step >= lineBytes ? d.extent : Math.max(1, (d.extent * step) / lineBytes);
    lines *= own;
    // Lines one after the other are fetched ahead, best where vectors that lie close use all of them.
    const ahead = step > 1.25 * lineBytes ? 1 : step >= lineBytes / 4 ? 16 : 4;
    touches *= i > 0 ? d.extent : Math.max(1, own / ahead);
    if (step >= lineBytes && d.extent > linesThatStay(step)) safe = Math.min(safe, overfullLines);
    if (step >= lineBytes && collide(step, 2)) safe = crowdedLines;
    products *= d.extent;
  });
  return worst * Math.min(1, touches / products) * Math.min(1, Math.max(0, lines - safe) / (16 * safe));
}
