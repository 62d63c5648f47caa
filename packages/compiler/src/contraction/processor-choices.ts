/**
 * What a choice of roles costs on processors with known facts, and what else is decided there (`MoreChoices`). Only such engines load this; pages
 * do not.
 */
import {
  accessStrides,
  accessTransposed,
  accessTransposedFew,
  type DotStreams,
  fewResults,
  productCosts,
} from '../codegen/costs/cpu.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import { productOf, type Range, sizeOf, typicalOf } from '../ir/free-ranges.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { isFixed, type Operand } from './access.ts';
import type { Cover, GroupPlan, Split } from './blocking.ts';
import { accessCost, type Choice, type MoreChoices, resultsOf } from './choose.ts';
import type { Contraction } from './contraction.ts';
import type { Way } from './packing.ts';
import { collide } from './staging.ts';

const oneLine = { count: 1, range: null };

/** The costs of a contraction on the processor of a target, by its formula of tiles. */
export function processorChoices(
  c: Contraction,
  caps: CodegenCaps,
): Pick<MoreChoices, 'along' | 'slower' | 'epilogue' | 'transposes' | 'within'> {
  const { cacheBytes, formula } = productCosts(caps);
  if (formula === undefined) throw new Error('[contraction] costs of the target have no formula of tiles');
  const { bytes } = dtypeInfo[c.reduce.dtype as DType];
  return {
    along(extent, lanes, rows, columns, rowWay, columnWay, most, ends) {
      const streams = dotStreams(rowWay, columnWay, lanes, bytes);
      const [tile, steps] = formula.along(extent, lanes, rows, columns, streams, most, ends);
      return [{ rows: tile[0], vectors: tile[1], lanes: 1 }, steps];
    },
    slower({ shape, column, rowWay, columnWay, along, lanes }, height, width) {
      // Results that lie apart are stored one by one: in three nests that is code which takes longer to plan than it saves.
      if (!isFixed(column) && accessCost(c, column) >= accessStrides) return Number.POSITIVE_INFINITY;
      const vectors = Math.ceil(width / shape.lanes);
      const dots = along === null ? undefined : dotStreams(rowWay, columnWay, lanes, bytes);
      const { count, range } = shape.lines ?? oneLine;
      const all = range?.arg.extent ?? 1;
      // Each line has rows of its own where these are vectors too, else vectors.
      const slower = c.batch.includes(column)
        ? formula.slower(height * all, vectors, [shape.rows * count, shape.vectors])
        : formula.slower(height, vectors * all, [shape.rows, shape.vectors * count], dots, !isFixed(column));
      const padding = (vectors * shape.lanes) / width;
      return (Math.max(4, bytes) / 4) * slower * padding * (caps.vectorBytes / (lanes * bytes));
    },
    epilogue: (column) =>
      Math.min(accessCost(c, column), isFixed(column) ? transposedCost(c) : Number.POSITIVE_INFINITY),
    transposes: (column) => isFixed(column) && transposedCost(c) < accessCost(c, column),
    within: (choice, cover, groups, split) => loopsWithin(choice, cover, groups, split, cacheBytes),
  };
}

/** Nanoseconds of the epilogue, with sums through memory where that is faster. */
export function epilogueCost(c: Contraction, column: Range): number {
  return resultsOf(c) * Math.min(accessCost(c, column), transposedCost(c));
}

/** How a tile reads its factors where the sum runs over vectors. */
export function dotStreams(rows: Way, columns: Way, lanes: number, bytes: number): DotStreams {
  const stream = ({ apart }: Way): DotStreams['row'] => {
    return { apart: Math.abs(apart) / lanes, crowded: Math.abs(apart) >= lanes && collide(apart * bytes, 2) };
  };
  return { row: stream(rows), column: stream(columns) };
}

/** Nanoseconds of memory accesses per result where sums go through memory, and a second dispatch reads them in the order of the results. */
function transposedCost(c: Contraction): number {
  const index = c.kernel.stores[0]?.store.src[1];
  const form = index && linearOf(index);
  const unit = form?.terms.find((r, i) => form.coefs[i] === 1 && r.op === 'RANGE');
  if (unit === undefined) return Number.POSITIVE_INFINITY;
  const results = productOf(c.kernel.stores[0]!.ranges, typicalOf);
  return (results < fewResults ? accessTransposedFew : accessTransposed) + accessCost(c, unit as Range);
}

/**
 * Loops around the tiles that consecutive groups run through with the same columns: those that the columns' factor does not have, where its
 * columns would not stay in the second-level cache from one iteration to the next. Other columns then read the rows' factor again, so it must
 * be the smaller traffic.
 */
function loopsWithin(
  { columns, columnWay, rows, outer }: Choice,
  { whole }: Cover,
  groups: GroupPlan,
  split: Split | null,
  cacheBytes: number,
): readonly Range[] {
  const within = outer.filter((r) => isFixed(r) && columns.axisOf(r) === null);
  const parts = split === null ? 1 : split.part.arg.extent;
  // Bytes of a factor for one iteration of all other loops.
  const bytesOf = (x: Operand): number =>
    x.bytes / parts / sizeOf(outer.filter((r) => !within.includes(r) && x.axisOf(r) !== null));
  const taken = groups.outer.slice(split === null ? 0 : 1);
  const turns = outer.reduce((n, r, i) => (within.includes(r) ? n * Math.ceil(r.arg.extent / taken[i]!) : n), 1);
  const chunks = Math.ceil(whole[0]!.columns.count / groups.columns);
  const [wide, tall] = [bytesOf(columns), bytesOf(rows)];
  const pays = wide > cacheBytes && turns * wide + tall > wide + chunks * tall;
  return columnWay.kind !== 'local' && chunks > 1 && pays ? within : [];
}
