/**
 * Reductions whose results are adjacent in memory, such as sums of columns: a group of threads computes several neighbours.
 *
 * A group per result would use one element of every sector of memory that it reads. Here a group has a whole sector of results or
 * more. Its threads read neighbours, each some rows of one column. The partial results go to group memory and are combined in order.
 */
import type { Exprs } from '../../ir/expr.ts';
import {
  endOf,
  isMultiple,
  isSized,
  lengthOf,
  mostOf,
  type Range,
  sizeLimit,
  sizeOf,
  stretchesOf,
} from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopStore } from '../../ir/ir.ts';
import { assumeBounds, idOf, isPosition, nodesOf, sameNodes } from '../../ir/node.ts';
import { decodeRanges, type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { heldIterations, manyGroups, sectorBytes, wideColumns } from '../costs/gpu.ts';
import { identityOf } from '../linearize/reduce.ts';
import type { Beside, CodegenCaps } from '../lowering.ts';
import { type LoopNest, storesWhere } from './transforms.ts';
import type { Binder, NestWork } from './work.ts';

/** The results side by side, if there are; `spread` are the loops of the reductions' results. */
export function sideBySide(
  { stores }: LoopNest,
  work: NestWork,
  binders: readonly Binder[],
  spread: readonly Range[],
  caps: CodegenCaps,
): Beside | null {
  const column = spread[spread.length - 1];
  if (
    column === undefined ||
    caps.sharedIsMemory === true ||
    !spread.every((r) => sizeLimit(r) !== null || r.src.length === 0)
  )
    return null;
  let bytes = 0;
  for (const { node, own, free } of binders) {
    if (node.op !== 'REDUCE' || isPosition(node) || node.dtype === 'bool') return null;
    if (!free.every((r) => spread.includes(r)) || !own.every((r) => sizeLimit(r) !== null || r.src.length === 0))
      return null;
    // Other reductions must bind the same loops, or none of them.
    if (binders.some((b) => !sameNodes(b.own, own) && b.own.some((r) => own.includes(r)))) return null;
    for (const n of nodesOf([node.src[0]!])) {
      if (n.op === 'REDUCE' && !binders.some((b) => b.node === n)) return null;
      if (n.op !== 'LOAD' || !own.some((r) => work.free.has(n.src[1], r))) continue;
      const stride = work.strideOf(n.src[1], column);
      if (stride === 0) continue;
      if (stride !== 1 || own.some((r) => r.arg.extent > 1 && work.strideOf(n.src[1], r) === 1)) return null;
      bytes = Math.max(bytes, dtypeInfo[n.dtype].bytes);
    }
  }
  if (bytes === 0 || binders.length === 0) return null;
  if (stores.some(({ store }) => work.strideOf(store.src[1], column) === null)) return null;
  const least = sectorBytes / bytes;
  if (column.arg.extent < least) return null;
  const width = sizeOf(spread) >= manyGroups * wideColumns && column.arg.extent >= wideColumns ? wideColumns : least;
  return { column, width, shape: shapeBeside };
}

/** The nest for groups of `threads` threads, a power of two. */
function shapeBeside(
  nest: LoopNest,
  binders: readonly Binder[],
  spread: readonly Range[],
  { column, width }: Beside,
  threads: number,
): LoopNest {
  const { e, stores } = nest;
  const group = new ColumnGroup(e, spread, column, width, threads);
  // Inner ones first: sources have smaller ids.
  for (const { node, own } of [...binders].sort((x, y) => idOf(x.node) - idOf(y.node)))
    group.reduce(node as KNodeOf<'REDUCE'>, own);
  // Stores of the same loops stay in the same loops: one may read what another writes to the same place, and they share values.
  const innerOf = ({ ranges }: LoopStore): Range[] => ranges.filter((r) => !spread.includes(r));
  const written = new Map<LoopStore, LoopStore>();
  for (const one of stores) {
    if (written.has(one)) continue;
    const inner = innerOf(one);
    const together = stores.filter((s) => sameNodes(innerOf(s), inner));
    for (const [n, s] of group.store(together, inner).entries()) written.set(together[n]!, s);
  }
  const inOrder = stores.map((s) => written.get(s)!);
  return nest.wrote(inOrder, 'beside', [column], [width, threads]);
}

/** Where a thread works: its column in the group, and its number among the threads of that column. */
interface Place {
  readonly own: KNode;
  readonly row: KNode;
}

/** A group of threads that computes `width` neighbouring results: its loops, its reductions and its stores. */
class ColumnGroup {
  readonly #e: Exprs;
  readonly #column: Range;
  readonly #width: number;
  readonly #threads: number;
  /** Threads of a column. */
  readonly #rows: number;
  readonly #grid: Range[] = [];
  readonly #outside = new Map<Range, Replacement>();
  /** The first column. */
  readonly #first: KNode;
  /** Results of a column, by reduction. */
  readonly #results: { readonly node: KNode; of(own: KNode): KNode }[] = [];

  constructor(e: Exprs, spread: readonly Range[], column: Range, width: number, threads: number) {
    this.#e = e;
    this.#column = column;
    this.#width = width;
    this.#threads = threads;
    this.#rows = threads / width;
    for (const r of spread) if (r !== column) this.#outside.set(r, { value: this.#open(r, 1), ranges: [] });
    this.#first = e.mul(this.#open(column, width), width);
  }

  #open(r: Range, by: number): Range {
    const e = this.#e;
    const end = sizeLimit(r);
    const opened = e.range(Math.ceil(r.arg.extent / by), 'grid', end === null ? undefined : stretchesOf(e, end, by));
    this.#grid.push(opened);
    return opened;
  }

  #placeOf(local: Range): Place {
    const e = this.#e;
    return { own: e.irem(local, this.#width), row: e.idiv(local, this.#width) };
  }

  #rewriter(own: KNode, more: (changes: Map<Range, Replacement>) => void = () => {}): Rewriter {
    const e = this.#e;
    const column = this.#column;
    const at = e.add(this.#first, own);
    const inside = isMultiple(column, this.#width) ? at : e.min(at, e.sub(lengthOf(e, column), 1));
    assumeBounds(inside, 0, column.arg.extent - 1);
    const changes = new Map([...this.#outside, [column, { value: inside, ranges: [] }]]);
    more(changes);
    const rewriter = new Rewriter(e, changes);
    for (const { node, of } of this.#results) rewriter.set(node, of(own));
    return rewriter;
  }

  /** Computes a reduction for all columns: each thread a part of it, in group memory, from where it is combined in order. */
  reduce(node: KNodeOf<'REDUCE'>, own: readonly Range[]): void {
    const e = this.#e;
    const { op } = node.arg;
    const local = e.range(this.#threads, 'local');
    const parts = e.stage('shared', this.#partOf(node, own, this.#placeOf(local)), [local]);
    this.#results.push({
      node,
      of: (column) => {
        const part = e.range(this.#rows, 'reduce');
        return e.reduce(op, e.load(parts, e.add(e.mul(part, this.#width), column)), [part]);
      },
    });
  }

  /** A thread's part of a reduction. Some loads are in flight at a time; positions past the end are clamped, and their values ignored. */
  #partOf(node: KNodeOf<'REDUCE'>, own: readonly Range[], place: Place): KNode {
    const e = this.#e;
    const rows = this.#rows;
    const { op } = node.arg;
    const count = mostOf(own);
    const length = endOf(e, own) ?? e.i32(sizeOf(own));
    const some = Math.min(heldIterations.vectors, Math.ceil(count / rows));
    const isSome = own.some(isSized);
    const limit = isSome ? stretchesOf(e, length, some * rows) : undefined;
    const turn = e.range(Math.ceil(count / (some * rows)), 'reduce', limit);
    const step = e.range(some, 'unroll');
    const nominal = e.add(e.mul(e.add(e.mul(turn, some), step), rows), place.row);
    const exact = count % (some * rows) === 0 && !isSome;
    const at = exact ? nominal : e.min(nominal, e.sub(length, 1));
    assumeBounds(at, 0, Math.max(0, count - 1));
    const value = this.#rewriter(place.own, (changes) => decodeRanges(e, own, at, changes)).node(node.src[0]);
    const there = exact ? value : e.where(e.lt(nominal, length), value, identityOf(e, op, value.dtype as DType));
    return e.reduce(op, there, [turn, step]);
  }

  /** Stores with the same `inner` loops, which the threads of a column share. */
  store(stores: readonly LoopStore[], inner: readonly Range[]): readonly LoopStore[] {
    const e = this.#e;
    const column = this.#column;
    const width = this.#width;
    const local = e.range(this.#threads, 'local');
    const place = this.#placeOf(local);
    const gates = isMultiple(column, width) ? [] : [e.lt(e.add(this.#first, place.own), lengthOf(e, column))];
    // A store without inner loops is done by one of the column's threads.
    if (inner.length === 0) gates.push(e.lt(local, width));
    const { turn, at } = this.#sharedOf(inner, place.row);
    const rewriter = this.#rewriter(place.own, (changes) => {
      if (inner.length > 0) decodeRanges(e, inner, at, changes);
    });
    const ranges = [...this.#grid, local, ...(inner.length === 0 ? [] : [turn])];
    return storesWhere(e, stores, rewriter, all(e, gates), ranges);
  }

  /** Elements of some loops for a thread, as far apart as a column has threads. */
  #sharedOf(loops: readonly Range[], row: KNode): { turn: Range; at: KNode } {
    const e = this.#e;
    const rows = this.#rows;
    const count = mostOf(loops);
    const length = endOf(e, loops) ?? e.i32(sizeOf(loops));
    const exact = count % rows === 0 && !loops.some(isSized);
    const limit = exact ? undefined : e.idiv(e.sub(e.add(length, rows - 1), row), rows);
    const turn = e.range(Math.ceil(count / rows), 'serial', limit);
    const at = e.add(e.mul(turn, rows), row);
    assumeBounds(at, 0, Math.max(0, count - 1));
    return { turn, at };
  }
}

function all(e: Exprs, gates: readonly KNode[]): KNode | null {
  return gates.length === 0 ? null : gates.reduce((x, y) => e.and(x, y));
}
