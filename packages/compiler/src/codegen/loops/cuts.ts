/**
 * Cuts loops where conditions change (borders of padding, joints of concatenation), and joins rows shorter than a vector.
 *
 * If an index condition is known to hold from some iteration on, the loop is cut there. In each segment the condition is
 * a constant and disappears together with gates of loads, so that the long inner segments run as plain vector code.
 */
import { endsAlone, isMultiple, type Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { combine, formHigh, formLow, linearOf, literalOf, selectTerms } from '../../ir/simplify/integers.ts';
import { nodesOf } from '../../ir/node.ts';
import { leastInner, leastSegment, mostSegments, rowsTogether } from '../costs/cpu.ts';
import { vectorLanes } from '../linearize/vector.ts';
import type { CodegenCaps } from '../lowering.ts';
import { cut, cutRest, innermost, type LoopNest, merge, split } from './transforms.ts';
import { type NestWork, workOf } from './work.ts';

/** The nest with its unit-stride loop cut where conditions change. */
export function cutSegments(nest: LoopNest): LoopNest {
  const { stores } = nest;
  const work = workOf(nest);
  const along = work.unitRange();
  if (along === undefined || along.arg.extent < leastSegment || along.src.length > 0) return nest;
  if (work.binders.some((b) => !b.free.includes(along) && stores[0]?.ranges.length === 1)) return nest;
  const cuts = findCuts(stores, along, work);
  if (cuts.length === 0 || cuts.length >= mostSegments) return nest;
  const lengths = [...cuts, along.arg.extent].map((x, i) => x - (cuts[i - 1] ?? 0));
  return Math.max(...lengths) < leastSegment ? nest : cut(innermost(nest, along), along, cuts);
}

/** Iterations at which a condition certainly changes, in order. */
function findCuts(stores: readonly LoopStore[], along: Range, work: NestWork): number[] {
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
  const found = evenDivision(nest.stores);
  return found === null ? nest : splitRanges(split(nest, found.range, found.by));
}

/** A loop and the largest divisor of its length that its index is divided by. */
function evenDivision(stores: readonly LoopStore[]): { readonly range: Range; readonly by: number } | null {
  let found: { range: Range; by: number } | null = null;
  for (const n of nodesOf(stores.map((s) => s.store))) {
    if ((n.op !== 'IREM' && n.op !== 'IDIV') || n.src[0]?.op !== 'RANGE') continue;
    const range = n.src[0];
    const by = literalOf(n.src[1] as KNode) as number | null;
    if (by === null || by < leastInner || !endsAlone(range) || !isMultiple(range, by)) continue;
    if (found === null || by > found.by) found = { range, by };
  }
  return found;
}

// Rows shorter than a vector, such as colours of pixels: several rows at a time as one stretch of memory.
//
// The innermost loop of such a row is shorter than a vector, so nothing would be vectorised. Four rows of three elements are three vectors; a value
// per column, such as a bias, then repeats every twelve elements and is made into vectors before the loop.

/** Cuts off the last rows, so that the others are whole blocks. */
export function cutNarrow(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = narrowRows(nest, caps);
  // Columns stay within rows: the order of loops decides which one is cut into groups.
  return found === null || isMultiple(found.row, rowsTogether)
    ? nest
    : cutRest(innermost(nest, found.column), found.row, rowsTogether, true);
}

/** The nest with rows and columns as one vector loop, if rows are narrow and in whole blocks. */
export function widenNarrow(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = narrowRows(nest, caps);
  if (found === null || !isMultiple(found.row, rowsTogether)) return nest;
  const { row, column, lanes } = found;
  const blocks = split(nest, row, rowsTogether);
  const inBlock = blocks.loopsOf(row)[1]!;
  const flat = merge(blocks, [inBlock, column]);
  return split(flat, flat.loopsOf(column)[0]!, lanes, 'unroll', 'loop');
}

interface Narrow {
  readonly row: Range;
  readonly column: Range;
  readonly lanes: number;
}

/** The loops of narrow rows that are contiguous in the memory all stores write, if no row or column has a reduction. */
function narrowRows(nest: LoopNest, caps: CodegenCaps): Narrow | null {
  const work = workOf(nest);
  const list = work.common() ?? [];
  const lanes = vectorLanes(nest.stores, caps);
  const column = list.find((r) => r.src.length === 0 && r.arg.extent < lanes && work.writes(r, 1));
  if (column === undefined || column.arg.extent < 2 || (rowsTogether * column.arg.extent) % lanes !== 0) return null;
  const width = column.arg.extent;
  const row = list.find((r) => endsAlone(r) && r.arg.extent >= rowsTogether && work.writes(r, width));
  if (row === undefined) return null;
  if (work.binders.some(({ free }) => free.includes(row) !== free.includes(column))) return null;
  return { row, column, lanes };
}
