/**
 * Which reductions of columns are accumulated in memory (codegen/linearize/columns.ts): those over much more than a near cache holds, with more
 * columns than registers take.
 */
import { crowded, leastColumns, leastCrowded, leastRows, mostColumns, mostRowVectors } from '../costs/cpu.ts';
import { endsAlone, type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { CodegenCaps } from '../lowering.ts';
import type { NestWork } from './work.ts';

/**
 * The columns per group, where reductions of large matrices are accumulated in memory along the vector range; or null. `mayHaveColumns` of cpu.ts has
 * asked first.
 */
export function columnsOf(
  { binders, stores }: NestWork,
  range: Range,
  lanes: number,
  caps: CodegenCaps,
): number | null {
  if (!endsAlone(range) || stores.some((s) => !s.ranges.includes(range))) return null;
  // A column has one cell, and copies of an unrolled loop would share it.
  if (stores.some((s) => s.ranges.some((r) => r.arg.kind === 'unroll'))) return null;
  // One row after the other, a vector in memory would wait for its own store.
  if (range.src.length === 0 && Math.ceil(range.arg.extent / lanes) * binders.length <= mostRowVectors) return null;
  const least = range.arg.extent % crowded === 0 ? leastCrowded : leastRows;
  if (binders.some(({ own }) => sizeOf(own) < least)) return null;
  const fitting = Math.floor(caps.sharedBytes / 2 / (8 * binders.length));
  const chunk = Math.min(mostColumns, fitting - (fitting % 64));
  return chunk < leastColumns ? null : chunk;
}
