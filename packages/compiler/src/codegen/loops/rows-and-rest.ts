/**
 * Loops as whole multiples and what is left, which pages load with the first nest that has use of them.
 *
 * Reductions over rows that end at a size: several rows at once, and the remainder in a separate reduction. Some loops a divisor in their
 * index does not divide evenly, as those over a matrix whose diagonal is written. The whole stretches become a nest, which `splitRanges`
 * splits, and so do the elements before and after these. cuts.ts is not imported: pages without such engines would load it with this.
 */
import type { Exprs } from '../../ir/expr.ts';
import { FreeRanges, lengthOf, type Range } from '../../ir/free-ranges.ts';
import type { KNode } from '../../ir/ir.ts';
import { assumeBounds, idOf } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { combined } from '../linearize/reduce.ts';
import { leastStretches } from '../costs/cpu.ts';
import type { Division } from '../lowering.ts';
import { cut, inChunks, type LoopNest } from './transforms.ts';
import { type NestWork, workOf } from './work.ts';

/** The nest with so many rows at once, by the loop over rows. */
export function rowsAndRest(nest: LoopNest, work: NestWork, rows: ReadonlyMap<Range, number>): LoopNest {
  const { e } = nest;
  const parts = new Map([...rows].map(([row, count]) => [row, wholeAndRest(e, row, count)]));
  const free = new FreeRanges();
  const rewriter = new Rewriter(e, new Map());
  // Inner ones come first.
  for (const { node, own } of [...work.binders].sort((a, b) => idOf(a.node) - idOf(b.node))) {
    const row = own.at(-1)!;
    const part = parts.get(row);
    if (part === undefined || node.op !== 'REDUCE') continue;
    const value = rewriter.node(node.src[0]);
    const { op } = node.arg;
    const [whole, rest] = part.map((change) => {
      const element = new Rewriter(e, new Map([[row, change]]), free).node(value);
      return e.reduce(op, element, [...own.slice(0, -1), ...change.ranges]);
    }) as [KNode, KNode];
    rewriter.set(node, combined(e, op as 'sum', whole, rest));
  }
  const base = nest.base.map((s) => rewriter.store(s));
  const made = [...parts.values()].flatMap((part) => part.flatMap(({ ranges }) => ranges));
  return nest.wrote(base, 'beside', rows.keys(), [...rows.values()], made, nest.changes);
}

/** Replacements for a loop over rows that takes `by` at once, and for the remainder. */
function wholeAndRest(e: Exprs, row: Range, by: number): readonly [Replacement, Replacement] {
  const { extent, kind } = row.arg;
  const end = lengthOf(e, row);
  const edge = e.mul(e.idiv(end, by), by);
  const whole = inChunks(e, extent - (extent % by), by, [kind, 'unroll'], { end: edge });
  const rest = e.range(by - 1, kind, e.irem(end, by));
  const value = e.add(edge, rest);
  assumeBounds(value, 0, extent - 1);
  return [whole, { value, ranges: [rest] }];
}

/** The nest with a loop cut that a divisor does not divide, if it has enough whole stretches. */
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
