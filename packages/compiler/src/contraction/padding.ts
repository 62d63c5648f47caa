/**
 * Leaves products with padding out of a sum. It does where a factor's gate bounds a loop of the sum in terms of the loops around the tiles.
 *
 * A convolution of 3 x 3 over 4 x 4 positions multiplies 31 % of its weights with zeros. Over 8 x 8 positions it is 16 %.
 * Products with zero change no bit of a sum that began with zero, unless the other factor is infinite or NaN. Those would make
 * NaN with a zero, and here do not reach positions where only padding met them.
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeOf } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { combine, isLiteral, linearOf } from '../ir/simplify/integers.ts';
import type { Cuts } from './choose.ts';
import type { Contraction } from './contraction.ts';
import { type Depth, depthOf, planDepth } from './depth.ts';
import type { CutSum } from './tile-nests.ts';

/** A bound of a loop of the sum: `(offset + sum of coefficients * ranges) / by`, rounded down but not below 0; the first of its turns or the first one beyond. */
interface Bound {
  readonly isFirst: boolean;
  readonly terms: readonly (readonly [range: Range, coefficient: number])[];
  readonly offset: number;
  readonly by: number;
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
  if (own.length !== 1 || range === undefined) return null;
  // step * range + rest >= 1.
  const rest = terms.filter(([r]) => r !== range);
  const by = Math.abs(step);
  const isFirst = step > 0;
  if (!isFirst) return { range, bound: { isFirst, by, terms: rest, offset: form.offset + by - 1 } };
  return { range, bound: { isFirst, by, terms: rest.map(([r, x]) => [r, -x]), offset: by - form.offset } };
}

/** What is left of a loop: the first turn, and how many, maybe none. */
interface Turns {
  readonly from: KNode;
  readonly count: KNode;
}

/**
 * The iterations that bounds leave of a loop of the sum that begins at iteration `first`, in terms of the loops around the tiles.
 */
function turnsWithin(
  e: Exprs,
  bounds: readonly Bound[],
  outer: ReadonlyMap<Range, KNode>,
  first: KNode,
  { extent, limit }: Depth,
): Turns {
  const known = bounds.filter(({ terms }) => terms.length > 0 && terms.every(([r]) => outer.has(r)));
  let from: KNode = e.i32(0);
  let to = limit ?? e.i32(extent);
  for (const { isFirst, terms, offset, by } of known) {
    const all = terms.reduce<KNode>((sum, [r, x]) => e.add(sum, e.mul(outer.get(r)!, x)), e.i32(offset));
    const at = by === 1 ? all : e.idiv(e.max(all, 0), by);
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
    return { ...d, from: left.from, limit: left.count };
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

/** Steps of a sum in which its innermost loop could be entered once more: loops that are cut are nested, where else they may be one over a table. */
const entry = 1.5;

/** Most turns of the loops around the tiles over which the products left are counted. */
const mostCounted = 4096;

/** The loops around the tiles that bounds name. */
function namedBy(bounds: readonly Bound[]): Range[] {
  return [...new Set(bounds.flatMap(({ terms }) => terms.map(([r]) => r)))];
}

/** The part of a loop's iterations that bounds leave, over all turns of the loops around the tiles that they name. */
function partLeft({ arg: { extent } }: Range, bounds: readonly Bound[]): number {
  const ranges = namedBy(bounds);
  const turns = sizeOf(ranges);
  if (turns > mostCounted) return 1;
  let left = 0;
  for (let turn = 0; turn < turns; turn++) {
    const values = new Map<Range, number>();
    let rest = turn;
    for (const r of ranges) {
      values.set(r, rest % r.arg.extent);
      rest = Math.floor(rest / r.arg.extent);
    }
    let [from, to] = [0, extent];
    for (const { isFirst, terms, offset, by } of bounds) {
      const at = Math.floor(terms.reduce((sum, [r, x]) => sum + x * values.get(r)!, offset) / by);
      if (isFirst) from = Math.max(from, at);
      else to = Math.min(to, at);
    }
    left += Math.max(0, to - from);
  }
  return left / (turns * extent);
}

/** For sums without padding. */
export const noCuts: Cuts = { least: 1, of: () => [null] };

/** What leaves products with padding out of a contraction's sum, if it has any. */
export function withoutPadding(c: Contraction): Cuts {
  const bounds = gateBounds(c);
  if (bounds.size === 0) return noCuts;
  const parts = new Map<string, number>();
  const partOf = (r: Range, known: readonly Bound[]): number => {
    const all = bounds.get(r)!;
    const key = [c.k.indexOf(r), ...known.map((b) => all.indexOf(b))].join();
    const part = parts.get(key) ?? partLeft(r, known);
    parts.set(key, part);
    return part;
  };
  let least = 1;
  for (const [r, all] of bounds) {
    const known = all.filter(({ terms }) => terms.length > 0);
    // Where all bounds together have too many turns to count, fewer of them may be counted.
    least *= sizeOf(namedBy(known)) > mostCounted ? 0 : partOf(r, known);
  }
  const of: Cuts['of'] = ({ outer, shape: { lines }, along, rowWay, columnWay }) => {
    // Lines that a tile takes together differ in their padding.
    const around = new Set(outer.filter((r) => lines === undefined || lines.count === 1 || r !== lines.range));
    const loops = new Set<Range>();
    let part = 1;
    for (const [r, all] of bounds) {
      // The vectors of a sum go through its last loop, and another one must stay for what a loop of one step leaves out.
      if (r === along || r.src.length > 0 || (along !== null && r.arg.extent === 1)) continue;
      const known = all.filter(({ terms }) => terms.length > 0 && terms.every(([x]) => around.has(x)));
      const left = known.length === 0 ? 1 : partOf(r, known);
      if (left === 1) continue;
      loops.add(r);
      part *= left;
    }
    if (loops.size === 0) return [null];
    const depths = (cut: ReadonlySet<Range>): Depth[] =>
      c.k.map((r) => ({ ...depthOf(r, rowWay, columnWay), ...(cut.has(r) && { limit: r }) }));
    const sum: CutSum = (e, k, all, outer, first) =>
      cutLoops(
        e,
        all,
        k.map((r, i) => (loops.has(r) ? turnsWithin(e, bounds.get(r) ?? [], outer, first(r), all[i]!) : null)),
      );
    // Loops that are nested anyway are shorter at no cost.
    if (along !== null || planDepth(depths(new Set())).kind === 'loops') return [{ loops, part, sum }];
    const inner = planDepth(depths(loops)).loops.at(-1)!;
    return [null, { loops, part: part * (1 + entry / inner.extent), sum }];
  };
  return { least, of };
}
