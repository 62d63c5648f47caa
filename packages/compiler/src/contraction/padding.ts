/**
 * Leaves products with padding out of a sum, where a factor's gate bounds a loop of the sum in terms of the loops around the tiles.
 *
 * A convolution of 3 x 3 over 4 x 4 positions multiplies 31 % of its weights with zeros, one over 8 x 8 positions 16 %. Products
 * with zero change no bit of a sum that began with zero, unless the other factor is infinite or NaN. Those would make NaN with a
 * zero, and here do not reach positions where only padding met them.
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { combine, isLiteral, linearOf } from '../ir/simplify/integers.ts';
import type { Contraction } from './contraction.ts';
import { type Depth, innermostLoop } from './depth.ts';
import type { CutSum } from './tile-nests.ts';

/** A bound of a loop of the sum: `offset + sum of coefficients * ranges`, the first of its turns or the first one beyond. */
interface Bound {
  readonly isFirst: boolean;
  readonly terms: readonly (readonly [range: Range, coefficient: number])[];
  readonly offset: number;
}

/** The bounds that gates of the factors put on loops of the sum. */
function gateBounds(c: Contraction): Map<Range, Bound[]> {
  const bounds = new Map<Range, Bound[]>();
  for (const { value } of c.factors) {
    if (value.op !== 'LOAD') continue;
    const [, , gate, other] = value.src;
    if (gate === undefined || other === undefined || !isLiteral(other, 0)) continue;
    for (const test of conjuncts(gate)) {
      const found = test.op === 'LT' ? boundOf(test, c.k) : null;
      if (found !== null) bounds.set(found.range, [...(bounds.get(found.range) ?? []), found.bound]);
    }
  }
  return bounds;
}

function conjuncts(gate: KNode): KNode[] {
  const all: KNode[] = [];
  const stack = [gate];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (n.op === 'AND') stack.push(...n.src);
    else all.push(n);
  }
  return all;
}

/** `less < more` as a bound of the one loop of the sum in it; null where it is none. */
function boundOf({ src }: KNode, k: readonly Range[]): { readonly range: Range; readonly bound: Bound } | null {
  const [less, more] = src as readonly [KNode, KNode];
  const form = combine(linearOf(more), 1, linearOf(less), -1);
  if (form === null || form.terms.some((t) => t.op !== 'RANGE')) return null;
  const terms = form.terms.map((t, i) => [t as Range, form.coefs[i]!] as const);
  const own = terms.filter(([r]) => k.includes(r));
  const [range, step] = own[0] ?? [undefined, 0];
  if (own.length !== 1 || range === undefined || Math.abs(step) !== 1) return null;
  // step * range + rest >= 1.
  const rest = terms.filter(([r]) => r !== range);
  const isFirst = step === 1;
  if (isFirst) return { range, bound: { isFirst, terms: rest.map(([r, x]) => [r, -x]), offset: 1 - form.offset } };
  return { range, bound: { isFirst, terms: rest, offset: form.offset } };
}

/** Steps of the sum's other loops from which on a loop is worth cutting where padding begins. */
const leastSteps = 32;

/** True if the other loops of the sum are long. Short ones become one loop over a table, to which a shortened loop cannot belong. */
function isWorthCutting(k: readonly Range[], bounds: ReadonlyMap<Range, readonly Bound[]>): boolean {
  const others = k.filter((r) => !bounds.has(r));
  return sizeOf(others) >= leastSteps && others.some((r) => r.arg.extent >= innermostLoop);
}

/** What is left of a loop: the first turn, and how many, maybe none. */
interface Turns {
  readonly from: KNode;
  readonly count: KNode;
}

/**
 * The iterations that bounds leave of a loop of the sum that begins at iteration `first`, in terms of the loops around the tiles.
 * Null where no bound depends on these alone.
 */
function turnsWithin(
  e: Exprs,
  bounds: readonly Bound[],
  outer: ReadonlyMap<Range, KNode>,
  first: KNode,
  { extent, limit, end }: Depth,
): Turns | null {
  const known = bounds.filter(({ terms }) => terms.length > 0 && terms.every(([r]) => outer.has(r)));
  if (known.length === 0 || end !== undefined) return null;
  let from: KNode = e.i32(0);
  let to = limit ?? e.i32(extent);
  for (const { isFirst, terms, offset } of known) {
    const at = terms.reduce<KNode>((sum, [r, x]) => e.add(sum, e.mul(outer.get(r)!, x)), e.i32(offset));
    const own = e.sub(at, first);
    if (isFirst) from = e.max(from, own);
    else to = e.min(to, own);
  }
  return { from, count: e.max(e.sub(to, from), 0) };
}

/** Loops of a sum with only these iterations. A loop of one step gets no range: where it is left out, another loop has no steps. */
function cutLoops(e: Exprs, loops: readonly Depth[], turns: readonly (Turns | null)[]): Depth[] {
  const cut = loops.map((d, i): Depth => {
    const left = turns[i];
    if (!left || d.extent === 1) return d;
    return { extent: d.extent, row: d.row, column: d.column, from: left.from, limit: left.count };
  });
  const single = turns.filter((left, i) => left !== null && loops[i]!.extent === 1) as Turns[];
  const isLoop = (d: Depth): boolean => d.extent > 1 && d.end === undefined;
  // Prefers a loop that is shortened already, so that the others can still be merged.
  const bound = cut.findIndex((d) => isLoop(d) && d.limit !== undefined);
  const at = bound < 0 ? cut.findIndex(isLoop) : bound;
  if (single.length === 0 || at < 0) return cut;
  const { limit = e.i32(cut[at]!.extent) } = cut[at]!;
  cut[at] = { ...cut[at]!, limit: single.reduce((n, { count }) => e.mul(n, count), limit) };
  return cut;
}

/** What leaves products with padding out of a contraction's sum; null where there are none, or all loops are short. */
export function withoutPadding(c: Contraction): CutSum | null {
  const bounds = gateBounds(c);
  if (bounds.size === 0 || !isWorthCutting(c.k, bounds)) return null;
  return (e, k, loops, outer, first) =>
    cutLoops(
      e,
      loops,
      k.map((r, i) => turnsWithin(e, bounds.get(r) ?? [], outer, first(r), loops[i]!)),
    );
}
