/**
 * Cuts loops where conditions change (borders of padding, joints of concatenation), and joins rows shorter than a vector.
 *
 * If an index condition is known to hold from some iteration on, the loop is cut there. In each segment the condition is
 * a constant and disappears together with gates of loads. So the long inner segments run as plain vector code.
 */
import { endsAlone, greatestDivisor, isMultiple, type Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { combine, formHigh, formLow, linearOf, literalOf, selectTerms } from '../../ir/simplify/integers.ts';
import { nodesOf } from '../../ir/node.ts';
import { leastInner, leastSegment, mostNarrow, mostSegments, rowsTogether } from '../costs/cpu.ts';
import { vectorLanes } from '../linearize/vector.ts';
import type { CodegenCaps, Division, Narrow } from '../lowering.ts';
import { cut, innermost, type LoopNest, split } from './transforms.ts';
import { type NestWork, workOf } from './work.ts';

/** The nest with its unit-stride loop cut where conditions change; if they change often, only around a stretch that is most of it. */
export function cutSegments(nest: LoopNest): LoopNest {
  const { stores } = nest;
  const work = workOf(nest);
  const along = work.unitRange();
  if (along === undefined || along.arg.extent < leastSegment || along.src.length > 0) return nest;
  if (work.binders.some((b) => !b.free.includes(along) && stores[0]?.ranges.length === 1)) return nest;
  const { extent } = along.arg;
  let cuts = findCuts(stores, along, work);
  if (cuts.length === 0) return nest;
  const lengths = [...cuts, extent].map((x, i) => x - (cuts[i - 1] ?? 0));
  const longest = Math.max(...lengths);
  if (cuts.length >= mostSegments) {
    if (longest * 2 < extent) return nest;
    const at = lengths.indexOf(longest);
    cuts = cuts.slice(Math.max(0, at - 1), at + 1);
  }
  return longest < leastSegment ? nest : cut(innermost(nest, along), along, cuts);
}

/** Iterations at which a condition certainly changes, in order. */
export function findCuts(stores: readonly LoopStore[], along: Range, work: NestWork): number[] {
  const cuts = new Set<number>();
  const depends = (n: KNode): boolean => work.free.has(n, along);
  const roots = stores.map((s) => s.store).filter(depends);
  for (const n of nodesOf(roots, (n) => n.src.filter(depends))) {
    if (n.op !== 'LT' || n.src[0]?.dtype !== 'int32') continue;
    const d = combine(linearOf(n.src[0]), 1, linearOf(n.src[1] as KNode), -1);
    const at = d === null ? -1 : d.terms.indexOf(along);
    if (d === null || at < 0 || d.terms.some((t, i) => i !== at && work.free.has(t, along))) continue;
    // c * along + rest < 0, with the rest between low and high.
    const c = d.coefs[at]!;
    const rest = selectTerms(d, (_, i) => i !== at, 1, d.offset);
    for (const bound of [formLow(rest), formHigh(rest)]) {
      const cut = c > 0 ? Math.ceil(-bound / c) : Math.floor(bound / -c) + 1;
      if (cut > 0 && cut < along.arg.extent) cuts.add(cut);
    }
  }
  return [...cuts].sort((a, b) => a - b);
}

/**
 * Loops cut in two if they walk memory as two: a reshape merged them, and a tile, a repeat or a transpose needs them separately.
 *
 * A loop over r whose indices contain r modulo d gets an inner loop of d: r = a * d + b. With both open, b is an ordinary index and its
 * stretches of memory are vectors; r modulo d is a division for every element unless d is a multiple of a vector.
 */

/** The nest with every loop split that a divisor in its index divides evenly. */
export function splitRanges(nest: LoopNest): LoopNest {
  const found = division(nest, (r, by, offset) => offset === 0 && endsAlone(r) && isMultiple(r, by));
  return found === null ? nest : splitRanges(split(nest, found.range, found.by));
}

/** The loop with a divisor in its index that does not divide it evenly, if there is one (rows-and-rest.ts). */
export function unevenLoop(nest: LoopNest): Range | undefined {
  return division(nest, (r, by, offset) => offset !== 0 || !isMultiple(r, by))?.range;
}

export const division: Division = (nest, mayCut) => {
  let found: { range: Range; by: number } | null = null;
  for (const n of nodesOf(nest.stores.map((s) => s.store))) {
    if (n.op !== 'IREM' && n.op !== 'IDIV') continue;
    const by = literalOf(n.src[1] as KNode) as number | null;
    if (by === null || by < leastInner || (found !== null && by <= found.by)) continue;
    const { terms, coefs, offset } = linearOf(n.src[0] as KNode);
    const [range] = terms;
    if (terms.length !== 1 || range?.op !== 'RANGE' || coefs[0] !== 1) continue;
    if (mayCut(range, by, offset)) found = { range, by };
  }
  return found;
};

// Rows shorter than a vector, such as colours of pixels: several rows at a time as one stretch of memory.
//
// The innermost loop of such a row is shorter than a vector, so nothing would be vectorised. Four rows of three elements are three vectors; a value
// per column, such as a bias, then repeats every twelve elements and is made into vectors before the loop.

/** The loops of narrow rows that are contiguous in the memory all stores write. What is made of them is in narrow-rows.ts. */
export function narrowRows(nest: LoopNest, caps: CodegenCaps): Narrow | null {
  const work = workOf(nest);
  const list = work.common() ?? [];
  // Several rows are long enough for the widest vectors.
  const { fittingBytes: _, ...others } = caps;
  const lanes = vectorLanes(nest.stores, others);
  const column = list.find((r) => r.src.length === 0 && r.arg.extent < lanes && work.writes(r, 1));
  if (column === undefined || column.arg.extent < 2) return null;
  const width = column.arg.extent;
  const together = Math.max(rowsTogether, lanes / greatestDivisor(width, lanes));
  if ((together * width) % lanes !== 0 || together * width > mostNarrow * lanes) return null;
  const row = list.find((r) => endsAlone(r) && r.arg.extent >= together && work.writes(r, width));
  if (row === undefined) return null;
  return { row, column, lanes, together };
}
