/**
 * Loops that a divisor in their index does not divide evenly, as those over a matrix whose diagonal is written: the whole stretches become a nest,
 * which `splitRanges` splits, and so do the elements before and after these. It does not import cuts.ts, which pages without such engines would load with it.
 */
import { leastStretches } from '../costs/cpu.ts';
import type { Division } from '../lowering.ts';
import { cut, type LoopNest } from './transforms.ts';
import { workOf } from './work.ts';

/** The nest with such a loop cut, if it has enough whole stretches. */
export function cutStretches(nest: LoopNest, division: Division): LoopNest {
  let edges: readonly number[] = [];
  const found = division(nest, (r, by, offset) => {
    const { extent } = r.arg;
    // The first multiple of the divisor, and the last.
    const from = offset > 0 ? by - 1 - ((offset - 1) % by) : -offset;
    const to = extent - ((extent - from) % by);
    const at = [from, to].filter((x) => x > 0 && x < extent);
    if (from >= by || to - from < leastStretches * by || at.length === 0) return false;
    if (r.src.length > 0 || workOf(nest).common()?.includes(r) !== true) return false;
    edges = at;
    return true;
  });
  return found === null ? nest : cut(nest, found.range, edges, true);
}
