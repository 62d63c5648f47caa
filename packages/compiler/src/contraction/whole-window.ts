/**
 * Tiles that take all elements of a window, such as the gradients of a kernel of one channel. Only engines with known processor facts load this; pages
 * do not.
 *
 * Only one factor has loops of its own there: one is the rows or columns of a tile, the other its lines. The other factor is read once for all of
 * them. Any other tile would be a few sums, each of which waits for the one before.
 */
import { dotLane, dotMemory } from '../codegen/costs/cpu.ts';
import type { Range } from '../ir/free-ranges.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { isFixed } from './access.ts';
import { dotCost, type MoreTiles, resultsOf, sharedCost } from './choose.ts';
import type { Contraction } from './contraction.ts';
import { stepOrders } from './orders.ts';
import { columnWays, consecutiveWays } from './packing.ts';
import { dotStreams, epilogueCost } from './processor-choices.ts';
import { sharedShape, type TileShape } from './tiles.ts';
import { LinesOfTile } from './whole-lines.ts';

/** Weighs the tiles of a whole window that some roles allow. */
export const wholeWindow: MoreTiles = (c, roles, height, lanes, costs, weigh) => {
  const { columns, column, rows, row } = roles;
  const { formula, registers } = costs;
  const width = column.arg.extent;
  if (formula === undefined || lanes === 1 || c.factors.every(({ own }) => own.length > 0)) return;
  if (c.batch.includes(column)) {
    if (row === null || width < lanes) return;
    const plain = sharedShape(row.arg.extent, width, lanes, registers, height);
    const range = plain.rows === row.arg.extent ? otherLoop(c, row) : null;
    const results = plain.rows * (range?.arg.extent ?? 1);
    const vectors = range === null ? 0 : Math.min(plain.vectors, Math.floor((registers - 2) / (results + 1)));
    if (range === null || vectors === 0) return;
    const shape: TileShape = { ...plain, vectors, lines: new LinesOfTile(range, range.arg.extent) };
    // Each step takes lines of its own, so that panels are as good in any order.
    for (const rowWay of consecutiveWays(rows, row, column))
      for (const columnWay of columnWays(columns, column, vectors * lanes, null))
        weigh(shape, null, rowWay, columnWay, sharedCost({ rows: results }), epilogueCost(c, column));
    return;
  }
  const range = otherLoop(c, column);
  if (range === null || row !== null) return;
  const rest = resultsOf(c) * (dotMemory + lanes * dotLane + c.indices.length);
  const shape = { rows: 1, vectors: width, lanes: 1, lines: new LinesOfTile(range, range.arg.extent) };
  const { bytes } = dtypeInfo[c.reduce.dtype as DType];
  for (const k of c.k.filter((r) => isFixed(r) && formula.fills(r.arg.extent, lanes))) {
    for (const rowWay of consecutiveWays(rows, row, k, stepOrders)) {
      for (const columnWay of consecutiveWays(columns, column, k, stepOrders)) {
        const streams = dotStreams(rowWay, columnWay, lanes, bytes);
        const [tile, steps, parts] = formula.along(k.arg.extent, lanes, 1, width, streams);
        if (tile[1] < width || width * range.arg.extent * parts + 2 > registers) continue;
        const slower = Math.max(dotCost(columnWay, k, lanes), dotCost(rowWay, k, lanes));
        weigh(shape, k, rowWay, columnWay, slower * steps, rest);
      }
    }
  }
};

/** The loop of a window besides `tiled`, where it has two. */
function otherLoop(c: Contraction, tiled: Range): Range | null {
  const own = c.factors.flatMap((f) => f.own);
  const others = own.filter((r) => r !== tiled);
  return own.length === 2 && others.length === 1 && isFixed(others[0]!) ? others[0]! : null;
}
