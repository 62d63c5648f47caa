/**
 * Short rows that end at a size.
 *
 * A vector takes elements of one row, as the length of rows is not known; cuts.ts joins rows whose length is. Several rows at a time have loops and conditions
 * at the ends of rows once for all of them. Rows that are stored one right after the other need none of these: their vectors run beyond their ends, and what
 * they store there the next row stores again. Only the last rows of a group end exactly.
 */
import type { Exprs } from '../../ir/expr.ts';
import {
  countOf,
  endsAlone,
  FreeRanges,
  isMultiple,
  isSized,
  lengthOf,
  type Range,
  sizedStrideOf,
  typicalOf,
} from '../../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../../ir/ir.ts';
import { assumeBounds, type Linear, lowOf, nodesOf, sameNodes } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { combine, linearOf, selectTerms } from '../../ir/simplify/integers.ts';
import { rowsTogether } from '../costs/cpu.ts';
import { vectorLanes } from '../linearize/vector.ts';
import type { CodegenCaps } from '../lowering.ts';
import { cutRest, innermost, type LoopNest, split } from './transforms.ts';
import { workOf } from './work.ts';

/** Vectors of a row of a typical size, at most: what a row costs besides them is then a good part of it. */
const mostVectors = 4;

/** Fewest rows, and lanes of vectors, with which vectors run beyond the ends of rows; lanes where a row may have more than two vectors. */
const leastBeyond = 16;
const leastLanes = 4;
const leastRepeated = 8;

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
  const ranges = [...list.filter((r) => r !== row && r !== column), row, column];
  if (
    denseRows(
      nest.stores.map(({ store }) => ({ store, ranges })),
      nest.e,
      caps,
    ) !== null
  )
    return null;
  return caps.lowering.transposes?.(nest, caps) ? null : { row, column };
}

/** The nest with several short rows at a time; once its loops have their kinds, with vectors that run beyond the ends of rows. */
export function short(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const isShaped = nest.stores.some(({ ranges }) => ranges.some(({ arg }) => arg.kind === 'serial'));
  return isShaped ? runBeyond(nest, caps) : joinShort(nest, caps);
}

/** Several rows at a time, and the last ones by themselves. */
function joinShort(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const found = shortRows(nest, caps);
  if (found === null) return nest;
  const { row, column } = found;
  if (isMultiple(row, rowsTogether)) return split(nest, row, rowsTogether, row.arg.kind, 'unroll');
  const inner = innermost(nest, column);
  const parts = cutRest(inner, row, rowsTogether, true);
  const whole = parts.stores[0]!.ranges[inner.stores[0]!.ranges.indexOf(row)]!;
  return split(parts, whole, rowsTogether, row.arg.kind, 'unroll');
}

/** Rows that are stored one right after the other, and the vectors that store them. */
interface Dense {
  readonly row: Range;
  readonly columns: readonly Range[];
  readonly lanes: number;
  /** Rows that hold all that vectors reach beyond the end of the row before them. */
  readonly last: number;
}

/** The nest, whose loops have their kinds, with vectors that run beyond the ends of rows, where these are short and lie one right after the other. */
function runBeyond(nest: LoopNest, caps: CodegenCaps): LoopNest {
  const { e, stores } = nest;
  const found = denseRows(stores, e, caps);
  if (found === null) return nest;
  const { row, columns, lanes, last } = found;
  const end = row.src[0] ?? e.i32(row.arg.extent);
  const whole = e.max(e.sub(end, last), 0);
  // Both parts are of one nest: one thread stores the last rows after the others.
  const around = stores[0]!.ranges[0] === row ? [e.range(1, 'grid')] : [];
  const loops = [e.range(row.arg.extent, 'serial', whole), e.range(last, 'serial', e.sub(end, whole))];
  const made = loops.flatMap((loop, i) => {
    const at = i === 0 ? loop : e.add(whole, loop);
    if (i > 0) assumeBounds(at, 0, row.arg.extent - 1);
    const changes = new Map<Range, Replacement>([[row, { value: at, ranges: [loop] }]]);
    for (const column of columns) {
      const { kind, extent } = column.arg;
      const own = e.range(extent, kind, column.src[0]);
      changes.set(column, i === 0 ? beyond(e, column, lanes) : { value: own, ranges: [own] });
    }
    const rewriter = new Rewriter(e, changes);
    return stores.map((s) => {
      const { store, ranges } = rewriter.store(s);
      return { store, ranges: [...around, ...ranges] };
    });
  });
  return nest.wrote(made, 'beyond', [row], [lanes, last], loops);
}

/** A column as whole vectors. */
function beyond(e: Exprs, column: Range, lanes: number): Replacement {
  const { extent } = column.arg;
  if (extent === 1) return { value: e.i32(0), ranges: [] };
  const most = Math.ceil(extent / lanes);
  const count = e.idiv(e.add(lengthOf(e, column), lanes - 1), lanes);
  const lane = e.range(lanes, 'vector');
  if (most === 1) return { value: lane, ranges: [lane] };
  const isFixed = lowOf(count) === most;
  const vector = e.range(most, isFixed && most <= mostVectors ? 'unroll' : 'serial', isFixed ? undefined : count);
  return { value: e.add(e.mul(vector, lanes), lane), ranges: [vector, lane] };
}

/** Elements that whole vectors reach beyond the end of a column, at most. */
function reachOf(column: Range, lanes: number): number {
  const { least, most } = countOf(column);
  if (column.arg.extent === 1) return 0;
  return Math.ceil(most / lanes) === Math.ceil(least / lanes) ? Math.ceil(most / lanes) * lanes - least : lanes - 1;
}

/** Short rows that are stored in order, one right after the other, where nothing is read that is stored; what is read lies so far apart, too. */
function denseRows(stores: readonly LoopStore[], e: Exprs, caps: CodegenCaps): Dense | null {
  const around = stores[0]!.ranges.slice(0, -1);
  const row = around.at(-1);
  if (row === undefined || !(row.arg.kind === 'serial' || row.arg.kind === 'loop') || typicalOf(row) < leastBeyond)
    return null;
  const columns = [...new Set(stores.map(({ ranges }) => ranges.at(-1)!))];
  if (!stores.every(({ ranges }) => sameNodes(ranges.slice(0, -1), around))) return null;
  if (!columns.some(isSized) || !columns.every(endsAlone) || columns.some((r) => r.arg.kind === 'unroll')) return null;
  const { fittingBytes: _, ...widest } = caps;
  let lanes = vectorLanes(stores, widest);
  if (lanes < leastLanes || Math.max(...columns.map(typicalOf)) > mostVectors * lanes) return null;
  const most = Math.max(...columns.map(({ arg }) => arg.extent));
  while (lanes / 2 >= Math.max(most, leastLanes)) lanes /= 2;
  // Loops over narrow vectors take as long as those that end exactly.
  if (lanes < leastRepeated && most > 2 * lanes) return null;
  const apart = rowsApart(stores, row, e);
  if (apart === null) return null;
  const reach = Math.max(...columns.map((r) => reachOf(r, lanes)));
  const last = Math.ceil(reach / apart);
  return last === 0 || last * 4 > typicalOf(row) ? null : { row, columns, lanes, last };
}

/** How many elements apart rows are at least, in all memory that is read or stored along them; null where they do not suit. */
function rowsApart(stores: readonly LoopStore[], row: Range, e: Exprs): number | null {
  const free = new FreeRanges();
  let least = Infinity;
  const reaches = (index: KNode, column: Range): boolean => {
    if (!free.has(index, column)) return true;
    const { terms, coefs } = linearOf(index);
    const stride = sizedStrideOf(free, index, row);
    if (stride === null || terms.some((t, i) => (t === column ? coefs[i] !== 1 : free.has(t, column)))) return false;
    least = Math.min(
      least,
      stride.sizes.reduce((n, size) => n * lowOf(size), stride.number),
    );
    return terms.includes(column);
  };
  const ends = new Map<KNode, { readonly first: Linear; readonly end: Linear; readonly pitch: Linear }>();
  for (const { store, ranges } of stores) {
    const [memory, index, value, gate] = store.src;
    const column = ranges.at(-1)!;
    if (gate !== undefined || memory.op !== 'PARAM' || memory.arg.access !== 'write') return null;
    if (!reaches(index, column) || (column.arg.extent > 1 && !free.has(index, column))) return null;
    for (const n of nodesOf([value])) {
      if (n.op === 'REDUCE' || n.op === 'STAGE') return null;
      if (n.op !== 'LOAD') continue;
      const [from, at, given] = n.src;
      if (given !== undefined || from.op !== 'PARAM' || from.arg.access !== 'read' || !reaches(at, column)) return null;
    }
    // Parts of a row are stored in order, and leave nothing between them, nor before the next row.
    const form = linearOf(index);
    const first = selectTerms(form, (_, i) => form.terms[i] !== column, 1, form.offset);
    const end = combine(first, 1, linearOf(lengthOf(e, column)), 1);
    const stride = sizedStrideOf(free, index, row);
    if (stride === null || end === null) return null;
    const before = ends.get(memory);
    if (before !== undefined && !isSame(before.end, first)) return null;
    const pitch = linearOf(stride.sizes.reduce((n: KNode, size) => e.mul(n, size), e.i32(stride.number)));
    ends.set(memory, { first: before?.first ?? first, end, pitch });
  }
  for (const { first, end, pitch } of ends.values()) {
    const next = combine(first, 1, pitch, 1);
    if (next === null || !isSame(next, end)) return null;
  }
  return least > 0 && least < Infinity ? least : null;
}

function isSame(a: Linear, b: Linear): boolean {
  const rest = combine(a, 1, b, -1);
  return rest !== null && rest.terms.length === 0 && rest.offset === 0;
}
