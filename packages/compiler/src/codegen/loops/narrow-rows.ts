/** Rows shorter than a vector: several at a time as one stretch of memory, as cuts.ts describes. */
import { isMultiple, type Range } from '../../ir/free-ranges.ts';
import { nodesOf } from '../../ir/node.ts';
import { leastVector } from '../costs/cpu.ts';
import type { CodegenCaps, Narrow } from '../lowering.ts';
import { cutRest, innermost, type LoopNest, merge, split } from './transforms.ts';
import { workOf } from './work.ts';

/** Cuts off the last rows, so that the others are whole blocks. */
export function cutNarrow(nest: LoopNest, caps: CodegenCaps, found: Narrow): LoopNest {
  // Columns stay within rows: the order of loops decides which one is cut into groups.
  return isMultiple(found.row, found.together) || !suits(nest, caps, found)
    ? nest
    : cutRest(innermost(nest, found.column), found.row, found.together, true);
}

/** The nest with rows and columns as one vector loop, if rows are in whole blocks. */
export function widenNarrow(nest: LoopNest, caps: CodegenCaps, found: Narrow): LoopNest {
  const { row, column, lanes, together } = found;
  if (!isMultiple(row, together) || !suits(nest, caps, found)) return nest;
  const blocks = split(nest, row, together);
  const inBlock = blocks.loopsOf(row)[1]!;
  const flat = merge(blocks, [inBlock, column]);
  return split(flat, flat.loopsOf(column)[0]!, lanes, 'unroll', 'loop');
}

/** True if no row or column has a reduction, and vectors of several rows are better than narrow ones. */
function suits(nest: LoopNest, { fittingBytes }: CodegenCaps, { row, column }: Narrow): boolean {
  if (workOf(nest).binders.some(({ free }) => free.includes(row) !== free.includes(column))) return false;
  const fills = fittingBytes !== undefined && column.arg.extent * 4 >= leastVector;
  return !fills || readsRows(nest, row, column);
}

/** True if elements of a row are read side by side and rows at a fixed distance. Rows read anywhere are as well read one by one where they fill narrow vectors. */
function readsRows(nest: LoopNest, row: Range, column: Range): boolean {
  const work = workOf(nest);
  for (const n of nodesOf(nest.stores.map((s) => s.store))) {
    if (n.op !== 'LOAD') continue;
    const [along, across] = [work.strideOf(n.src[1], column), work.strideOf(n.src[1], row)];
    if (across === null || (along !== 0 && along !== 1)) return false;
  }
  return true;
}
