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
import { viaMemory } from './partial.ts';
import type { GroupCopy, TileLayout } from './staging.ts';
import { columnSegments, rowSegment, type Segment, widenedRows, widens } from './tiles.ts';
import { layoutsOf } from './ways.ts';

/** Lowers a contraction by register tiles; null where no range can be read as vectors. */
export function lowerTiled(c: Contraction, e: Exprs, caps: EngineCaps): Lowered | null {
  const dtype = c.reduce.dtype as DType;
  const { bytes } = dtypeInfo[dtype];
  const lanes = Math.max(1, Math.floor(caps.vectorBytes / bytes));
  const choice = choose(c, lanes, caps);
  if (choice === null) return null;
  const assembly = new Assembly(c.kernel, e, caps);
  const { columns, column, rows, row, shape, outer, along } = choice;
  const copied = choice.columnWay.kind === 'local';
  const height = row?.arg.extent ?? 1;
  // Rows that are no panels may be cut anew for the last columns.
  const widened = choice.rowWay.kind !== 'panels' && !copied && widens(shape, height);
  // Where rows are vectors of columns too, no tile may reach past the end.
  const shared = c.batch.includes(column);
  const padded = choice.columnWay.kind === 'panels' && !shared;
  const columnSegs = columnSegments(column.arg.extent, shape, padded, widened);
  const wholeRows = rowSegment(height, shape.rows);
  const columnLayouts = layoutsOf(assembly, e, columns, choice.columnWay, column, columnSegs);
  const rowLayout = layoutsOf(assembly, e, rows, choice.rowWay, row, [wholeRows])[0] as TileLayout;

  const extents = outer.map((r) => r.arg.extent);
  const depth = sizeOf(c.k);
  const tiles = extents.reduce((n, x) => n * x, wholeRows.count * columnSegs.reduce((n, s) => n + s.count, 0));
  const layouts = [rowLayout, ...columnLayouts].flatMap((l) => ('strides' in l ? [l.strides] : []));
  const parts = copied ? [] : c.k.filter((r) => r !== along);
  const order = row === null ? [...outer, column] : [...outer, row, column];
  const results = sizeOf(order);
  const split = planSplit(e, parts, layouts, {
    tiles,
    results,
    work: 2 * depth * results,
    tileBytes: depth * (wholeRows.width + (columnSegs[0] as Segment).width) * bytes,
    bytes: rows.bytes + columns.bytes,
  });

  const separate = split !== null || vectorLanes(c.kernel.stores, caps) !== lanes;
  const memory = separate ? viaMemory(c, e, assembly, order, split?.part ?? null) : null;
  const share = split === null ? depth : (depth / split.range.arg.extent) * split.chunk;
  const around = split === null ? extents : [split.part.arg.extent, ...extents];
  const nests = columnSegs.flatMap((segment, i): LoopStore[] => {
    const isWidened = segment.width > shape.vectors * shape.lanes;
    const rowSeg = isWidened ? rowSegment(height, widenedRows) : wholeRows;
    const work = 2 * rowSeg.width * segment.width * share;
    const groups = planGroups(around, rowSeg.count, segment.count, work, segment.width * share * bytes);
    return tileNest(e, {
      stores: memory === null ? c.kernel.stores : [memory.store],
      reduce: c.reduce,
      outer,
      rows: { range: row, segment: rowSeg, layout: rowLayout },
      columns: { range: column, segment, layout: columnLayouts[i] as TileLayout | GroupCopy },
      lanes: shape.lanes,
      sumLanes: along === null ? 1 : lanes,
      k: c.k,
      split,
      groups: copied ? { ...groups, rows: rowSeg.count, columns: copiedTiles(segment.count) } : groups,
    });
  });
  assembly.add('', nests, true);
  memory?.finish();
  return assembly.result();
}
