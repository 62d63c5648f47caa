/**
 * Rows shorter than a vector, such as colours of pixels: several rows at a time as one stretch of memory.
 *
 * The innermost loop of such a row holds no vector, and so nothing would be one. Four rows of three elements are three vectors; what
 * belongs to a column, a bias, then repeats every twelve elements and is made into vectors before the loop.
 */
import { rowsTogether } from '../costs/cpu.ts';
import type { CodegenCaps } from '../lowering.ts';
import type { Range } from '../../ir/free-ranges.ts';
import { workOf } from './work.ts';
import { vectorLanes } from '../linearize/vector.ts';
import { cut, innermost, merge, split } from '../transforms/loops.ts';
import type { LoopNest } from '../transforms/nest.ts';

/** Peels off the last rows, so that the others are whole blocks. */
export function cutNarrow(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = narrowRows(nest, caps);
  const rest = found === null ? 0 : found.row.arg.extent % rowsTogether;
  // Columns stay within rows: order decides which loop is cut into groups.
  return found === null || rest === 0
    ? nest
    : cut(innermost(nest, found.column), found.row, [found.row.arg.extent - rest], true);
}

/** The nest with rows and columns as one loop of vectors, where rows are narrow and whole blocks. */
export function widenNarrow(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = narrowRows(nest, caps);
  if (found === null || found.row.arg.extent % rowsTogether !== 0) return nest;
  const { row, column, lanes } = found;
  const blocks = split(nest, row, rowsTogether);
  const inBlock = blocks.loopsOf(row)[1]!;
  const flat = merge(blocks, [inBlock, column]);
  return split(flat, flat.loopsOf(column)[0]!, lanes, 'unroll', 'loop');
}

interface Narrow {
  readonly row: Range;
  readonly column: Range;
  readonly lanes: number;
}

/** The loops of narrow rows that follow each other in the memory that all stores write, if nothing is reduced for a row or a column alone. */
function narrowRows(nest: LoopNest, caps: CodegenCaps): Narrow | null {
  const work = workOf(nest);
  const list = work.common() ?? [];
  const lanes = vectorLanes(nest.stores, caps);
  const column = list.find((r) => r.src.length === 0 && r.arg.extent < lanes && work.writes(r, 1));
  if (column === undefined || column.arg.extent < 2 || (rowsTogether * column.arg.extent) % lanes !== 0) return null;
  const width = column.arg.extent;
  const row = list.find((r) => r.src.length === 0 && r.arg.extent >= rowsTogether && work.writes(r, width));
  if (row === undefined) return null;
  if (work.binders.some(({ free }) => free.includes(row) !== free.includes(column))) return null;
  return { row, column, lanes };
}
