/**
 * Tiles that take whole lines of an image. Vectors reach past the end where the length of a line is no multiple of a vector. Only engines with
 * known processor facts load this; pages do not.
 *
 * The columns' factor is copied over its domain, with room behind the end. A tile takes several lines, so that elements of the rows'
 * factor are loaded once for all of them. Sums go to group memory; from there the existing elements are stored by fitting vectors.
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { isFixed } from './access.ts';
import type { MoreTiles } from './choose.ts';
import { stepOrders } from './orders.ts';
import { alongWindow, rowWays } from './packing.ts';
import { epilogueCost } from './processor-choices.ts';
import type { Lines, Repeated, TileShape } from './tiles.ts';

/** Nanoseconds for storing a sum in group memory and loading it again in the same order. */
const accessStaged = 0.1;

/** Weighs the tiles of whole lines that some roles allow. */
export const wholeLines: MoreTiles = (c, { columns, column, rows, row, outer }, height, lanes, costs, weigh) => {
  const { extent } = column.arg;
  const { formula } = costs;
  if (formula === undefined || 2 * extent <= lanes || c.batch.includes(column)) return;
  const copied = alongWindow(columns, column, stepOrders);
  if (copied === null) return;
  // Whole vectors along a loop that is in no window, as images, need no lines.
  if (extent % lanes === 0 && columns.isAlone(column)) return;
  const vectors = Math.ceil(extent / lanes);
  // Lines that vectors fill are stored as they are.
  const staged = extent % lanes === 0 ? 0 : accessStaged * sizeOf(c.kernel.stores[0]?.ranges ?? []);
  const rest = epilogueCost(c, column) + staged;
  const columnWay = { ...copied, apart: 0 };
  const own = outer.filter((r) => isFixed(r) && columns.axisOf(r) !== null && !c.batch.includes(r));
  // The nearest first, whose lines overlap.
  for (const range of [...own.reverse(), null]) {
    const all = range?.arg.extent ?? 1;
    const tile = formula.lines(height, vectors, all);
    if (tile === null) continue;
    const [tall, count] = tile;
    const shape: TileShape = { rows: tall, vectors, lanes, lines: new LinesOfTile(range, count) };
    for (const rowWay of rowWays(rows, row, tall, stepOrders)) weigh(shape, null, rowWay, columnWay, 1, rest);
  }
};

/** The iterations of a loop around the tiles that each of them takes. */
export class LinesOfTile implements Lines {
  readonly range: Range | null;
  readonly count: number;
  line: Range | null = null;
  /** The first line of a tile. */
  #first: KNode | null = null;

  constructor(range: Range | null, count: number) {
    this.range = range;
    this.count = count;
  }

  of(e: Exprs, r: Range, tile: KNode): KNode {
    if (r !== this.range || this.count === 1) return tile;
    const line = (this.line ??= e.range(this.count, 'unroll'));
    this.#first = e.mul(tile, this.count);
    return e.add(this.#first, line);
  }

  again(e: Exprs, outer: Map<Range, KNode>, row: Range): Repeated {
    if (this.line === null) return { at: row, ranges: [row] };
    const line = e.range(this.count, 'serial');
    outer.set(this.range!, e.add(this.#first!, line));
    return { at: e.add(e.mul(row, this.count), line), ranges: [row, line] };
  }

  around(outer: ReadonlyMap<Range, KNode>): ReadonlyMap<Range, KNode> {
    return this.line === null ? outer : new Map([...outer].filter(([r]) => r !== this.range));
  }
}
