/**
 * Contractions by register tiles: rows of one factor times vectors of the other, over any loops around them.
 *
 * Products of matrices in every transpose, batches of them, and convolutions of stride 1 are all of this form: which range
 * becomes rows, which columns, and how the factors are brought to them is chosen by cost (choose.ts). For engines without
 * SIMT, where a group is one thread.
 */
import type { EngineCaps } from '../engine/engine.ts';
import type { Exprs } from '../kernel/expr.ts';
import type { LoopStore } from '../kernel/ir.ts';
import { vectorLanes } from '../kernel/linearize-vector.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { Assembly } from './assembly.ts';
import { copiedTiles, planGroups, planSplit } from './blocking.ts';
import { choose } from './choose.ts';
import { type Contraction, sizeOf } from './contraction.ts';
import type { Lowered } from './contract.ts';
import { tileNest } from './nest.ts';
import { stageOperand } from './operand.ts';
import { viaMemory } from './partial.ts';
import type { GroupCopy, TileLayout } from './staging.ts';
import { columnSegments, rowSegments } from './tiles.ts';

/** Lowers a contraction by register tiles; null where no range can be read as vectors. */
export function lowerTiled(c: Contraction, e: Exprs, caps: EngineCaps): Lowered | null {
  const dtype = c.reduce.dtype as DType;
  const { bytes } = dtypeInfo[dtype];
  const lanes = Math.max(1, Math.floor(caps.vectorBytes / bytes));
  const choice = choose(c, lanes, caps);
  if (choice === null) return null;
  const assembly = new Assembly(c.kernel, e, caps);
  const { columns, column, rows, row, shape, outer, along } = choice;
  const columnSegs = columnSegments(column.arg.extent, shape, choice.columnPlan.way === 'panels');
  const rowSegs = rowSegments(row?.arg.extent ?? 1, shape.rows);
  const columnLayouts = stageOperand(assembly, e, columns, choice.columnPlan, column, columnSegs);
  const rowLayouts = stageOperand(assembly, e, rows, choice.rowPlan, row, rowSegs) as readonly TileLayout[];

  const extents = outer.map((r) => r.arg.extent);
  const depth = sizeOf(c.k);
  const tiles = (segments: typeof rowSegs): number => segments.reduce((n, s) => n + s.count, 0);
  const most = extents.reduce((n, x) => n * x, tiles(rowSegs) * tiles(columnSegs));
  const strides = [rowLayouts[0], columnLayouts[0]].flatMap((l) =>
    l !== undefined && 'strides' in l ? [l.strides] : [],
  );
  const work = 2 * sizeOf([...outer, column]) * (row?.arg.extent ?? 1) * depth;
  const parts = choice.columnPlan.way === 'local' ? [] : c.k.filter((r) => r !== along);
  const split = planSplit(e, parts, strides, most, work);

  const separate = split !== null || vectorLanes(c.kernel.stores, caps) !== lanes;
  const order = row === null ? [...outer, column] : [...outer, row, column];
  const memory = separate ? viaMemory(c, e, assembly, order, split?.part ?? null) : null;
  const share = split === null ? depth : (depth / split.range.arg.extent) * split.chunk;
  const nests: LoopStore[] = [];
  rowSegs.forEach((rowSeg, i) => {
    columnSegs.forEach((columnSeg, j) => {
      const around = split === null ? extents : [split.part.arg.extent, ...extents];
      const work = 2 * rowSeg.width * columnSeg.width * share;
      const groups = planGroups(around, rowSeg.count, columnSeg.count, work, columnSeg.width * share * bytes);
      const spec = {
        stores: memory === null ? c.kernel.stores : [memory.store],
        reduce: c.reduce,
        outer,
        rows: { range: row, segment: rowSeg, layout: rowLayouts[i] as TileLayout },
        columns: { range: column, segment: columnSeg, layout: columnLayouts[j] as TileLayout | GroupCopy },
        lanes: shape.lanes,
        sumLanes: along === null ? 1 : lanes,
        k: c.k,
        split,
        groups: choice.columnPlan.way === 'local' ? { ...groups, rows: rowSeg.count, columns: copiedTiles } : groups,
      };
      nests.push(...tileNest(e, spec));
    });
  });
  assembly.add('', nests, true);
  memory?.finish();
  return assembly.result();
}
