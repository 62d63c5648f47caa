/**
 * Contractions by register tiles: rows of one factor times vectors of the other, over any loops around them.
 *
 * In: a contraction. Out: its dispatches: copies of factors, tiles, and the epilogue where it is separate. Products of matrices in
 * every transpose, batches of them, and convolutions of stride 1 all have this form. Estimated cost decides which range becomes
 * rows, which columns, and how the factors are read (choose.ts). For engines without SIMT, where a group is one thread.
 */
import { longestDot, type ProductCosts, productCosts } from '../codegen/costs/cpu.ts';
import { vectorLanes } from '../codegen/linearize/vector.ts';
import { readsWhatItWrites } from '../codegen/loops/transforms.ts';
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import { productOf, type Range, sizeOf, typicalOf } from '../ir/free-ranges.ts';
import { step } from '../ir/rewrite.ts';
import { dtypeInfo } from '../shape/dtype.ts';
import { isFixed, leastOf } from './access.ts';
import { Assembly } from './assembly.ts';
import {
  type Block,
  copiedTiles,
  type Cover,
  type CoverFacts,
  cover,
  type GroupPlan,
  planGroups,
  planSplit,
  planTogether,
  type Split,
  type SplitFacts,
} from './blocking.ts';
import { type Choice, choose, isBefore, type MoreChoices, paysFor } from './choose.ts';
import { type Contraction, worthwhile } from './contraction.ts';
import type { ContractionTemplate } from './template.ts';
import { layoutsOf } from './packing.ts';
import { layoutInPlace, type TileLayout } from './staging.ts';
import { type NestSpec, tileNests, turnsOf } from './tile-nests.ts';
import { rowSegment } from './tiles.ts';
import { type Workspace, workspaceFor } from './workspace.ts';

/**
 * Lowers a contraction by register tiles; null where no range can be read as vectors. `more`: what is decided otherwise, and what
 * else may be chosen.
 */
export function lowerTiled(c: Contraction, e: Exprs, caps: CodegenCaps, more?: MoreChoices): Lowered | null {
  const { bytes } = dtypeInfo[c.reduce.dtype];
  const choice = choose(c, bytes, caps, more);
  if (choice === null || !paysFor(c, copiedBefore(choice))) return null;
  const assembly = new Assembly(c.kernel, e, caps);
  const costs = productCosts(caps);
  const { columns, column, sized, rows, row, shape, lanes, outer, along, columnWay, rowWay } = choice;
  const height = row?.arg.extent ?? 1;
  const end = row?.src[0];
  const facts = coverFacts(c, choice, more);
  const tall = rowSegment(height, shape.rows, end);
  const { whole, beside, last } =
    sized?.cover(e, tall, column, sized.narrow(leastOf(column), lanes, bytes, caps), shape, bytes, facts) ??
    cover(height, column.arg.extent, shape, facts, end);
  const edges = [...beside, ...last];
  const blocks = [...whole, ...edges];
  const segments = whole.map((b) => b.columns);
  const columnLayouts = [
    ...layoutsOf(assembly, e, columns, columnWay, column, segments),
    ...edges.map(() => layoutInPlace(e, columns.access!, column)),
  ];
  const rowLayout = layoutsOf(assembly, e, rows, rowWay, row, [tall])[0] as TileLayout;

  const { lines } = shape;
  const extents = outer.map((r) => turnsOf(r, lines));
  const order = row === null ? [...outer, column] : [...outer, row, column];
  const strides = [rowLayout, ...columnLayouts].flatMap((l) => ('strides' in l ? [l.strides] : []));
  const parts =
    columnWay.kind === 'local' || beside.length > 0
      ? []
      : c.k.filter((r) => r !== along && columnWay.folds?.has(r) !== true);
  const split = planSplit(e, parts, strides, splitFacts(c, choice, blocks, extents, order));

  const part = split?.part ?? null;
  const separate =
    part !== null ||
    vectorLanes(c.kernel.stores, withVectors(caps, lanes * bytes)) !== lanes ||
    (along === null && more?.transposes(column) === true) ||
    // Tiles that are moved back store columns twice, which must not change what the kernel reads.
    (sized !== null && readsWhatItWrites(c.kernel.stores));
  const workspace = (): Workspace =>
    (sized === null ? more : undefined)?.workspace(c, e, assembly, column, part) ??
    workspaceFor(c, e, assembly, order, part);
  const memory = separate ? workspace() : null;
  const target = memory === null ? c.kernel.stores : [memory.store];
  const plans = groupsOf(c, choice, { whole, beside, last }, extents, split, costs);
  const within = new Set(more?.within(choice, { whole, beside, last }, plans.groups[0]!, split));
  const again = (more !== undefined || sized !== null) && !readsWhatItWrites(target);
  const specs = blocks.map(
    (block, i): NestSpec => ({
      ...block,
      stores: target,
      again: again && i < plans.together,
      reduce: c.reduce,
      pair: c.pair,
      outer,
      within,
      rows: { range: row, segment: block.rows, layout: rowLayout },
      columns: { range: column, segment: block.columns, layout: columnLayouts[i]! },
      lines,
      k: c.k,
      cutSum: choice.cut?.sum,
      split,
      groups: plans.groups[i]!,
    }),
  );
  const [first] = blocks as [Block];
  const args = [first.rows.width, first.columns.width, rowWay.kind, columnWay.kind];
  const nests = tileNests(e, specs, plans.together);
  assembly.add('', nests.stores, [step('tile', order, [], args), ...nests.done]);
  memory?.finish();
  return assembly.result();
}

/** What decides whether the sum is split. `extents`: the loops around the tiles; `order`: the ranges of the results. */
function splitFacts(
  c: Contraction,
  { columns, rows, shape }: Choice,
  blocks: readonly Block[],
  extents: readonly number[],
  order: readonly Range[],
): SplitFacts {
  const tiles = extents.reduce(
    (n, x) => n * x,
    blocks.reduce((n, b) => n + b.rows.count * b.columns.count, 0),
  );
  const [depth, results] = [sizeOf(c.k), sizeOf(order)];
  // Sizes in between, as parts of the greatest.
  const typical = (ranges: readonly Range[]): number => productOf(ranges, typicalOf) / sizeOf(ranges);
  const [deep, wide] = [typical(c.k), typical(order)];
  const [first] = blocks as [Block];
  const width = first.rows.width + first.columns.width * (shape.lines?.count ?? 1);
  return {
    tiles: Math.ceil(tiles * wide),
    results: results * wide,
    work: 2 * depth * deep * results * wide,
    tileBytes: depth * deep * width * dtypeInfo[c.reduce.dtype].bytes,
    bytes: (rows.bytes + columns.bytes) * Math.min(deep, wide),
  };
}

/** The groups of every block; the first `together` blocks have theirs together. `extents`: the loops around the tiles. */
function groupsOf(
  c: Contraction,
  { row, sized, shape, outer, columnWay }: Choice,
  { whole, beside, last }: Cover,
  extents: readonly number[],
  split: Split | null,
  { cacheBytes, edgeTiles }: ProductCosts,
): { readonly groups: readonly GroupPlan[]; readonly together: number } {
  const copied = columnWay.kind === 'local';
  // Groups are cut for a sum of typical length.
  const depth = productOf(c.k, typicalOf);
  const share = split === null ? depth : (depth / split.range.arg.extent) * split.chunk;
  const bytes = share * dtypeInfo[c.reduce.dtype].bytes;
  const around = split === null ? extents : [split.part.arg.extent, ...extents];
  const loops = { extents: around, cacheBytes, sized: !outer.every(isFixed) };
  const least = ({ rows }: Block): number | undefined =>
    row === null || isFixed(row) ? undefined : Math.ceil(leastOf(row) / rows.width);
  const own = [...whole, ...beside];
  const common = copied ? null : planTogether(loops, own, share, bytes, least(own[0]!), sized !== null);
  const groups = [...own, ...last].map((block, i): GroupPlan => {
    const { rows, columns } = block;
    if (common !== null && i < own.length) return { ...common, columns: columns.count };
    const plan = planGroups(loops, {
      rows: rows.count,
      columns: columns.count,
      work: 2 * rows.width * columns.width * (shape.lines?.count ?? 1) * share,
      columnBytes: columns.width * bytes,
      mostGroups: i === 0 || edgeTiles === undefined ? undefined : Math.ceil(rows.count / edgeTiles),
      leastRows: least(block),
    });
    return copied && i < whole.length ? { ...plan, rows: rows.count, columns: copiedTiles(columns.count) } : plan;
  });
  return { groups, together: common === null ? 0 : own.length };
}

/** Elements that dispatches before the tiles copy. */
function copiedBefore({ columns, columnWay, rows, rowWay }: Choice): number {
  return (isBefore(columnWay) ? columns.size : 0) + (isBefore(rowWay) ? rows.size : 0);
}

/** What `cover` must know of a choice. */
function coverFacts(c: Contraction, choice: Choice, more: MoreChoices | undefined): CoverFacts {
  const { column, shape, lanes, along, columnWay, rowWay } = choice;
  const { lines } = shape;
  const copied = columnWay.kind === 'local';
  // Where rows are vectors of columns too, no tile may reach past the end.
  const shared = c.batch.includes(column);
  return {
    padded: (lines !== undefined || (columnWay.kind === 'panels' && more === undefined)) && !shared,
    recut: rowWay.kind !== 'panels' && !copied && lines === undefined,
    inPlace: (copied || columnWay.kind === 'inPlace') && rowWay.kind === 'inPlace' && !shared && along === null,
    dots: c.k.length === 1 && isFixed(c.k[0]!) && rowWay.strides.get(c.k[0]!) === 1 && sizeOf(c.k) <= longestDot,
    sums: along !== null,
    lanes,
  };
}

/** The target as if its vectors had this many bytes. */
function withVectors({ fittingBytes: _, ...caps }: CodegenCaps, vectorBytes: number): CodegenCaps {
  return { ...caps, vectorBytes };
}

/** Lowers a kernel around a contraction for one thread with vectors; null where the plain loop nest is as good. */
export const vectorContraction: ContractionTemplate = (kernel, e, caps) => {
  const c = worthwhile(kernel, e, caps, paysFor);
  return c === null ? null : lowerTiled(c, e, caps);
};
