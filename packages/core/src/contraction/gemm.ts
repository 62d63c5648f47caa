/**
 * Contractions by register tiles: rows of one factor times vectors of the other, over any loops around them.
 *
 * Products of matrices in every transpose, batches of them, and convolutions of stride 1 are all of this form: which range
 * becomes rows, which columns, and how the factors are brought to them is chosen by cost (choose.ts). For engines without
 * SIMT, where a group is one thread.
 */
import { step } from '../ir/rewrite.ts';
import { longestDot } from '../codegen/costs/cpu.ts';
import { vectorLanes } from '../codegen/linearize/vector.ts';
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import { Assembly, viaMemory } from './assembly.ts';
import { type Block, copiedTiles, cover, planGroups, planSplit, planTogether } from './blocking.ts';
import { choose } from './choose.ts';
import type { ContractionTemplate } from './contract.ts';
import { type Contraction, worthwhile } from './contraction.ts';
import { type NestSpec, tileNests } from './nest.ts';
import { type TileLayout, layoutInPlace } from './staging.ts';
import { rowSegment } from './tiles.ts';
import { layoutsOf } from './ways.ts';
import type { Exprs } from '../ir/expr.ts';
import { sizeOf } from '../ir/free-ranges.ts';
import { dtypeInfo } from '../shape/dtype.ts';

/** Lowers a contraction by register tiles; null where no range can be read as vectors. */
export function lowerTiled(c: Contraction, e: Exprs, caps: CodegenCaps): Lowered | null {
  const dtype = c.reduce.dtype;
  const { bytes } = dtypeInfo[dtype];
  const lanes = Math.max(1, Math.floor(caps.vectorBytes / bytes));
  const choice = choose(c, lanes, caps);
  if (choice === null) return null;
  const assembly = new Assembly(c.kernel, e, caps);
  const { columns, column, rows, row, shape, outer, along } = choice;
  const copied = choice.columnWay.kind === 'local';
  const height = row?.arg.extent ?? 1;
  // Where rows are vectors of columns too, no tile may reach past the end.
  const shared = c.batch.includes(column);
  const { columnWay, rowWay } = choice;
  const depth = sizeOf(c.k);
  const { whole, beside, last } = cover(height, column.arg.extent, shape, {
    padded: columnWay.kind === 'panels' && !shared,
    recut: rowWay.kind !== 'panels' && !copied,
    inPlace: (copied || columnWay.kind === 'inPlace') && rowWay.kind === 'inPlace' && !shared && along === null,
    dots: c.k.length === 1 && rowWay.strides.get(c.k[0]!) === 1 && depth <= longestDot,
    sums: along !== null,
    lanes,
  });
  const edges = [...beside, ...last];
  const blocks = [...whole, ...edges];
  const [first] = blocks as [Block];
  const segments = whole.map((b) => b.columns);
  const columnLayouts = [
    ...layoutsOf(assembly, e, columns, columnWay, column, segments),
    ...edges.map(() => layoutInPlace(columns.access!, column)),
  ];
  const rowLayout = layoutsOf(assembly, e, rows, rowWay, row, [rowSegment(height, shape.rows)])[0] as TileLayout;

  const extents = outer.map((r) => r.arg.extent);
  const tiles = extents.reduce(
    (n, x) => n * x,
    blocks.reduce((n, b) => n + b.rows.count * b.columns.count, 0),
  );
  const layouts = [rowLayout, ...columnLayouts].flatMap((l) => ('strides' in l ? [l.strides] : []));
  const parts = copied || beside.length > 0 ? [] : c.k.filter((r) => r !== along);
  const order = row === null ? [...outer, column] : [...outer, row, column];
  const results = sizeOf(order);
  const split = planSplit(e, parts, layouts, {
    tiles,
    results,
    work: 2 * depth * results,
    tileBytes: depth * (first.rows.width + first.columns.width) * bytes,
    bytes: rows.bytes + columns.bytes,
  });

  const separate = split !== null || vectorLanes(c.kernel.stores, caps) !== lanes;
  const memory = separate ? viaMemory(c, e, assembly, order, split?.part ?? null) : null;
  const share = split === null ? depth : (depth / split.range.arg.extent) * split.chunk;
  const around = split === null ? extents : [split.part.arg.extent, ...extents];
  const own = whole.length + beside.length;
  const together = copied ? null : planTogether(around, blocks.slice(0, own), share, bytes);
  const specs = blocks.map((block, i): NestSpec => {
    const { rows: r, columns: s } = block;
    const work = 2 * r.width * s.width * share;
    const alone = planGroups(around, r.count, s.count, work, s.width * share * bytes);
    const groups = together === null || i >= own ? alone : { ...together, columns: s.count };
    return {
      stores: memory === null ? c.kernel.stores : [memory.store],
      reduce: c.reduce,
      outer,
      rows: { range: row, segment: r, layout: rowLayout },
      columns: { range: column, segment: s, layout: columnLayouts[i]! },
      lanes: block.lanes,
      sumLanes: block.sumLanes,
      k: c.k,
      split,
      groups: copied && i < whole.length ? { ...groups, rows: r.count, columns: copiedTiles(s.count) } : groups,
    };
  });
  const args = [first.rows.width, first.columns.width, rowWay.kind, columnWay.kind];
  assembly.add('', tileNests(e, specs, together === null ? 0 : own), step('tile', order, [], args));
  memory?.finish();
  return assembly.result();
}

/** How engines whose groups are one thread lower contractions. */

/** Lowers a kernel around a contraction for one thread with vectors; null where the plain loop nest is as good. */
export const vectorContraction: ContractionTemplate = (kernel, e, caps) => {
  const c = worthwhile(kernel, e, caps);
  return c === null ? null : lowerTiled(c, e, caps);
};
