/**
 * Which reductions of columns are accumulated in memory (codegen/linearize/columns.ts): those over much more than a cache holds near.
 */
import { leastRows, leastCrowded, crowded, leastColumns, leastColumnElements, mostColumns } from '../costs/cpu.ts';
import type { CodegenCaps } from '../lowering.ts';
import type { NestWork } from './work.ts';
import { type Range, sizeOf } from '../../ir/free-ranges.ts';

/** The vector range whose reductions are to be accumulated in memory, and how many columns a group takes; or null. */
export function columnsOf(
  work: NestWork,
  along: ReadonlySet<Range>,
  caps: CodegenCaps,
): { readonly range: Range; readonly chunk: number } | null {
  const [range] = along;
  const { binders, stores } = work;
  if (range === undefined || along.size !== 1 || binders.length === 0 || range.arg.extent < leastColumns) return null;
  if (range.src.length > 0 || stores.some((s) => !s.ranges.includes(range))) return null;
  for (const { node, own, free } of binders) {
    const rows = sizeOf(own);
    if (node.op !== 'REDUCE' || !free.includes(range)) return null;
    if (
      rows < (range.arg.extent % crowded === 0 ? leastCrowded : leastRows) ||
      rows * range.arg.extent < leastColumnElements
    )
      return null;
  }
  const fitting = Math.floor(caps.sharedBytes / 2 / (8 * binders.length));
  const chunk = Math.min(mostColumns, fitting - (fitting % 64));
  return chunk < leastColumns ? null : { range, chunk };
}
