/** What every transform of loops is made of: loops put in place of others, and the entry that says so. */
import type { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { Transform } from '../../ir/ir.ts';
import { decodeRanges, type Replacement } from '../../ir/rewrite.ts';

/** An entry of the list of what was done: to which loops, and which stand for them now. */
export function step(
  name: string,
  loops: Iterable<Range>,
  made: readonly Range[] = [],
  args: Transform['args'] = [],
): Transform {
  return { name, loops: Array.from(loops, idOf), made: made.map(idOf), args };
}

function idOf({ arg }: Range): number {
  return arg.id;
}

/** Puts one loop, or loops that count as one, in place of neighbouring loops: where the last of them is. */
export function flattened(
  e: Exprs,
  loops: readonly Range[],
  { value: flat, ranges }: Replacement,
  changes: Map<Range, Replacement>,
): Map<Range, Replacement> {
  decodeRanges(e, loops, flat, changes);
  const last = loops.at(-1)!;
  const { value } = changes.get(last)!;
  return changes.set(last, { value, ranges });
}
