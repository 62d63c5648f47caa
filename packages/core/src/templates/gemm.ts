/**
 * Contractions by register tiles: rows of one factor times vectors of the other, over any loops around them.
 *
 * Products of matrices in every transpose, batches of them, and convolutions of stride 1 are all of this form: which range
 * becomes rows, which columns, and how the factors are brought to them (operand.ts) is chosen by cost. For engines without
 * SIMT, where a group is one thread.
 */
import type { EngineCaps } from '../engine/engine.ts';
import type { Exprs } from '../kernel/expr.ts';
import type { Range } from '../kernel/free-ranges.ts';
import type { KNode, LoopStore } from '../kernel/ir.ts';
import { vectorLanes } from '../kernel/linearize-vector.ts';
import { Rewriter } from '../kernel/rewrite.ts';
import { linearOf } from '../kernel/simplify-linear.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { Assembly } from './assembly.ts';
import { planGroups } from './blocking.ts';
import type { Contraction } from './contraction.ts';
import { sizeOf } from './contraction.ts';
import type { Lowered } from './contract.ts';
import { tileNest } from './nest.ts';
import { Operand, type OperandPlan, planColumns, planRows, stageOperand } from './operand.ts';
import { columnSegments, rowSegments, type TileShape, tileShape } from './tiles.ts';

/** One choice of roles. */
interface Choice {
  readonly columns: Operand;
  readonly column: Range;
  readonly rows: Operand;
  readonly row: Range | null;
  readonly shape: TileShape;
  readonly columnPlan: OperandPlan;
  readonly rowPlan: OperandPlan;
  readonly outer: readonly Range[];
  readonly cost: number;
}

/** Operations a nanosecond of a well-fed tile, as the unit of all costs here. */
const speed = 30;

export function lowerTiled(c: Contraction, e: Exprs, caps: EngineCaps): Lowered | null {
  const dtype = c.reduce.dtype as DType;
  const lanes = Math.max(1, Math.floor(caps.vectorBytes / dtypeInfo[dtype].bytes));
  const choice = choose(c, lanes);
  if (choice === null) return null;
  const assembly = new Assembly(c.kernel, e, caps);
  const { columns, column, rows, row, shape, outer } = choice;
  const columnSegs = columnSegments(column.arg.extent, shape, choice.columnPlan.way === 'panels');
  const rowSegs = rowSegments(row?.arg.extent ?? 1, shape.rows);
  const columnLayouts = stageOperand(assembly, e, columns, choice.columnPlan, column, columnSegs, true);
  const rowLayouts = stageOperand(assembly, e, rows, choice.rowPlan, row, rowSegs, false);

  const separate = vectorLanes(c.kernel.stores, caps) !== lanes;
  const epilogue = separate
    ? viaMemory(c, e, assembly, dtype, [...outer, ...(row === null ? [] : [row]), column])
    : null;
  const stores = epilogue === null ? c.kernel.stores : [epilogue.store];
  const depth = sizeOf(c.k);
  const nests: LoopStore[] = [];
  rowSegs.forEach((rowSeg, i) => {
    columnSegs.forEach((columnSeg, j) => {
      const work = 2 * rowSeg.width * columnSeg.width * depth;
      const bytes = columnSeg.width * depth * dtypeInfo[dtype].bytes;
      const groups = planGroups(
        outer.map((r) => r.arg.extent),
        rowSeg.count,
        columnSeg.count,
        work,
        bytes,
      );
      nests.push(
        ...tileNest(e, {
          stores,
          reduce: c.reduce,
          outer,
          rows: { range: row, segment: rowSeg, layout: rowLayouts[i] as (typeof rowLayouts)[number] },
          columns: { range: column, segment: columnSeg, layout: columnLayouts[j] as (typeof columnLayouts)[number] },
          lanes,
          k: c.k,
          groups,
        }),
      );
    });
  });
  assembly.add('', nests, true);
  epilogue?.finish();
  return assembly.result();
}

/** All roles the ranges can take, the cheapest of them. */
function choose(c: Contraction, lanes: number): Choice | null {
  let best: Choice | null = null;
  const operands = c.factors.map((f) => new Operand(f.value, c.k, c.free)) as [Operand, Operand];
  const order = c.kernel.stores[0]?.ranges ?? [];
  for (const side of [0, 1] as const) {
    const [columns, rows] = [operands[side], operands[1 - side] as Operand];
    const rowRanges = (c.factors[1 - side] as Contraction['factors'][number]).own;
    for (const column of c.factors[side].own) {
      if (column.arg.extent < lanes) continue;
      for (const row of rowRanges.length === 0 ? [null] : rowRanges) {
        const shape = tileShape(row?.arg.extent ?? 1, column.arg.extent, lanes);
        const columnPlan = planColumns(columns, column, sizeOf(rowRanges));
        if (columnPlan === null) continue;
        const rowPlan = planRows(rows, row, shape.rows, sizeOf(c.factors[side].own));
        const outer = order.filter((r) => r !== column && r !== row);
        const cost = columnPlan.cost + rowPlan.cost + computeCost(c, shape, row, column) + storeCost(c, column);
        if (best === null || cost < best.cost)
          best = { columns, column, rows, row, shape, columnPlan, rowPlan, outer, cost };
      }
    }
  }
  return best;
}

/** Slowdown of tiles with fewer than four rows. */
const heightCost = [0, 2, 1.4, 1.25, 1];

function computeCost(c: Contraction, shape: TileShape, row: Range | null, column: Range): number {
  const padded = (extent: number, width: number): number => (Math.ceil(extent / width) * width) / extent;
  const waste =
    padded(row?.arg.extent ?? 1, shape.rows) * padded(column.arg.extent, shape.lanes * Math.min(2, shape.vectors));
  const narrow = shape.vectors === 1 && shape.rows > 1 ? 1.3 : 1;
  const all = sizeOf(c.k) * sizeOf(c.kernel.stores[0]?.ranges ?? []);
  return ((2 * all) / speed) * waste * narrow * (heightCost[shape.rows] as number);
}

/** Vectors are stored as they are only along a range of unit stride. */
function storeCost(c: Contraction, column: Range): number {
  const size = sizeOf(c.kernel.stores[0]?.ranges ?? []);
  return c.kernel.stores.reduce((sum, { store }) => {
    const form = linearOf(store.src[1] as KNode);
    const at = form.terms.indexOf(column);
    return sum + size * (at >= 0 && form.coefs[at] === 1 ? 0.2 : 1);
  }, 0);
}

/** Results kept in memory between the tiles and an epilogue whose numbers have several sizes. */
function viaMemory(
  c: Contraction,
  e: Exprs,
  assembly: Assembly,
  dtype: DType,
  order: readonly Range[],
): { store: LoopStore; finish(): void } {
  const temp = assembly.temporary(dtype, sizeOf(order));
  let index: KNode = e.i32(0);
  for (const r of order) index = e.add(e.mul(index, e.i32(r.arg.extent)), r);
  return {
    store: { store: e.store(temp.write, index, c.reduce), ranges: order },
    finish: () => assembly.add('_epilogue', replaceSum(c, e, e.load(temp.read, index)), false),
  };
}

/** The kernel's stores with the sum replaced. */
export function replaceSum(c: Contraction, e: Exprs, value: KNode): LoopStore[] {
  const rewriter = new Rewriter(e, new Map());
  rewriter.set(c.reduce, value);
  return c.kernel.stores.map((s) => rewriter.store(s));
}
