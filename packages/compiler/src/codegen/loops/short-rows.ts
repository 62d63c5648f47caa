/**
 * Short rows that end at a size: several at a time, so that loops and conditions at the ends of rows are there once for all of them.
 *
 * A vector takes elements of one row, as the length of rows is not known; cuts.ts joins rows whose length is.
 */
import { endsAlone, isMultiple, isSized, type Range, typicalOf } from '../../ir/free-ranges.ts';
import { mostVectors, rowsTogether } from '../costs/cpu.ts';
import { vectorLanes } from '../linearize/vector.ts';
import type { CodegenCaps } from '../lowering.ts';
import { cutRest, innermost, type LoopNest, split } from './transforms.ts';
import { workOf } from './work.ts';

interface Rows {
  readonly row: Range;
  readonly column: Range;
}

/** The loop over short rows, and that along them, if nothing is reduced along a row and the target has no better way to transpose them. */
function shortRows(nest: LoopNest, caps: CodegenCaps): Rows | null {
  const work = workOf(nest);
  const list = work.common() ?? [];
  const column = list.find((r) => isSized(r) && work.writes(r, 1));
  if (column === undefined || typicalOf(column) > mostVectors * vectorLanes(nest.stores, caps)) return null;
  const row = list.findLast((r) => r !== column);
  if (row === undefined || !endsAlone(row) || row.arg.kind === 'unroll' || typicalOf(row) < rowsTogether) return null;
  if (work.binders.some(({ free }) => free.includes(row) !== free.includes(column))) return null;
  return caps.lowering.transposes?.(nest, caps) ? null : { row, column };
}

/** Cuts off the last rows, so that the others are whole blocks. */
export function cutShort(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = shortRows(nest, caps);
  return found === null || isMultiple(found.row, rowsTogether)
    ? nest
    : cutRest(innermost(nest, found.column), found.row, rowsTogether, true);
}

/** The nest with several short rows at a time, if they are in whole blocks. */
export function joinShort(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = shortRows(nest, caps);
  if (found === null || !isMultiple(found.row, rowsTogether)) return nest;
  return split(nest, found.row, rowsTogether, found.row.arg.kind, 'unroll');
}
