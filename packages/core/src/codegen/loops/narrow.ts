/**
 * Rows shorter than a vector, such as colours of pixels: several rows at a time as one stretch of memory.
 *
 * The innermost loop of such a row holds no vector, and so nothing would be one. Four rows of three elements are three vectors; what
 * belongs to a column, a bias, then repeats every twelve elements and is made into vectors before the loop.
 */
import type { CodegenCaps } from '../lowering.ts';
import { apart, cutAt } from './segments.ts';
import { NestWork } from './work.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { LoopStore } from '../../ir/ir.ts';
import { vectorLanes } from '../linearize/vector.ts';
import { assumeBounds } from '../../ir/node.ts';
import { Rewriter } from '../../ir/rewrite.ts';

/** Rows taken at a time. */
const together = 4;

/** Cuts off the last rows, as a nest of their own, so that the others are whole blocks. */
export function cutNarrow(stores: readonly LoopStore[], e: Exprs, caps: CodegenCaps): readonly LoopStore[] {
  const found = narrowRows(stores, caps);
  const rest = found === null ? 0 : found.row.arg.extent % together;
  if (found === null || rest === 0) return stores;
  const { row, column } = found;
  // Columns stay within rows: order decides which loop is cut into groups.
  const cut = cutAt(stores, row, [row.arg.extent - rest], e).map(({ store, ranges }) => ({
    store,
    ranges: [...ranges.filter((r) => r !== column), column],
  }));
  return [...cut.slice(0, stores.length), ...apart(cut.slice(stores.length), e)];
}

/** The stores with rows and columns as one loop of vectors, where rows are narrow and whole blocks. */
export function widenNarrow(stores: readonly LoopStore[], e: Exprs, caps: CodegenCaps): readonly LoopStore[] {
  const found = narrowRows(stores, caps);
  if (found === null || found.row.arg.extent % together !== 0) return stores;
  const { row, column, lanes } = found;
  const width = column.arg.extent;
  const block = e.range(row.arg.extent / together);
  const [vector, lane] = [e.range((together * width) / lanes, 'unroll'), e.range(lanes)];
  const at = e.add(e.mul(vector, lanes), lane);
  const value = e.add(e.mul(block, together), e.idiv(at, width));
  assumeBounds(value, 0, row.arg.extent - 1);
  const rewriter = new Rewriter(
    e,
    new Map([
      [row, { value, ranges: [block] }],
      [column, { value: e.irem(at, width), ranges: [vector, lane] }],
    ]),
  );
  return stores.map((s) => rewriter.store(s));
}

interface Narrow {
  readonly row: Range;
  readonly column: Range;
  readonly lanes: number;
}

/** The loops of narrow rows that follow each other in the memory that all stores write, if nothing is reduced for a row or a column alone. */
function narrowRows(stores: readonly LoopStore[], caps: CodegenCaps): Narrow | null {
  const work = new NestWork(stores);
  const list = work.common() ?? [];
  const lanes = vectorLanes(stores, caps);
  const column = list.find((r) => r.src.length === 0 && r.arg.extent < lanes && work.writes(r, 1));
  if (column === undefined || column.arg.extent < 2 || (together * column.arg.extent) % lanes !== 0) return null;
  const width = column.arg.extent;
  const row = list.find((r) => r.src.length === 0 && r.arg.extent >= together && work.writes(r, width));
  if (row === undefined) return null;
  if (work.binders.some(({ free }) => free.includes(row) !== free.includes(column))) return null;
  return { row, column, lanes };
}
