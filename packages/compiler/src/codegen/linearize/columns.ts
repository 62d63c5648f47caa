/**
 * Reductions over rows with a result for every column, accumulated in group memory.
 *
 * Registers hold only a few columns: going down all rows for a few columns at a time would stride through memory. Here every
 * row is read once, in four streams that begin at the quarters of the rows. A cell of group memory accumulates each column's
 * result. In WebAssembly on an AMD EPYC the columns of 4096 x 4096 numbers are summed at 22 GB/s, with registers at 6.
 *
 * Streams of four neighbouring rows are as fast where a row fills a page, and half as fast for rows of 1 KiB. Argument
 * reductions use these nevertheless, because the first of equal elements wins.
 */
import { ownRanges, type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { sameNodes } from '../../ir/node.ts';
import { isArg } from '../../ir/operations.ts';
import {
  accumulate,
  accumulatorDtype,
  extendExtremum,
  type Extremum,
  goesByParts,
  identityOf,
  mayEnterTwice,
  noExtremum,
  positionIn,
  takesPlace,
  wholeExtremum,
} from './reduce.ts';
import type { OverColumns, SumOptions } from '../lowering.ts';
import { copiesOf, refuse, type Values } from './scope.ts';
import type { DType } from '../../shape/dtype.ts';

/** Streams of rows, each in another part of all rows. */
const streams = 4;

/** A reduction, and the cells of group memory that accumulate it for every column. */
interface Accumulated {
  readonly n: KNodeOf<'REDUCE'>;
  readonly dtype: DType;
  /** What each cell begins with. */
  readonly start: readonly KNode[];
  readonly memory: readonly KNode[];
  /** It is kept as the two parts of an extremum until all rows were read. */
  readonly parts: boolean;
  /** Position of an element among the rows, for argument reductions. */
  readonly position: KNode | null;
}

/**
 * Computes the reductions over some ranges for all columns and makes their results available. `wave`: reductions that may be computed,
 * over these or others.
 */
export function reduceColumns(
  wave: readonly KNodeOf<'REDUCE'>[],
  own: readonly Range[],
  column: Range,
  values: Values,
  { muladd, simt }: SumOptions,
  over: OverColumns,
): void {
  const { scope } = values;
  const nodes = wave.filter((n) => sameNodes(ownRanges(n), own));
  const repeatable = nodes.every(mayEnterTwice);
  const overColumns = (column: Range, roots: readonly KNode[], run: () => void): void =>
    over(column, roots, repeatable, run);
  const copied = scope.tiles.some((t) => t.count > 1 && nodes.some((n) => scope.free.has(n, t.range)));
  if (copied) refuse(column, 'has one cell for each result: copies of a loop around the reduction would share it');
  const all = nodes.map((n) => accumulatedOf(n, own, column, values, simt));
  const roots = all.flatMap(({ n, position }) => [n.src[0], ...(position === null ? [] : [position])]);
  const inOrder = all.some(({ position }) => position !== null);
  overColumns(column, [], () => scope.forEach(scope.tiles, () => storeStart(all, column, values)));
  const update = (): void => updateCells(all, own, column, values, { muladd, simt });
  overRows(own, values, inOrder, () => overColumns(column, roots, update));
  const split = all.filter((c) => c.parts);
  if (split.length > 0)
    overColumns(column, [], () => scope.forEach(scope.tiles, () => joinParts(split, column, values)));
  for (const { n, memory, position } of all)
    values.results.set(n, { kind: 'columns', column, memory: memory[position === null ? 0 : 1]! });
}

function accumulatedOf(
  n: KNodeOf<'REDUCE'>,
  own: readonly Range[],
  column: Range,
  { b }: Values,
  simt: boolean,
): Accumulated {
  const { e } = b;
  const dtype = accumulatorDtype(n.src[0].dtype as DType);
  const parts = !simt && goesByParts(n.arg.op, dtype, sizeOf(own), 2);
  const position = isArg(n.arg.op) ? positionIn(e, own) : null;
  const first = [identityOf(e, n.arg.op, dtype), ...(position === null ? [] : [e.i32(0)])];
  const start: readonly KNode[] = parts ? noExtremum(e, n.arg.op) : first;
  const memory = start.map((first) => b.shared('columns', first.dtype as DType, column.arg.extent));
  return { n, dtype, start, memory, parts, position };
}

function storeStart(all: readonly Accumulated[], column: Range, { b, scope }: Values): void {
  for (const { start, memory } of all) {
    for (const [i, m] of memory.entries()) b.store(m, scope.valueOf(column), b.e.splat(start[i]!, lanesOf(scope)));
  }
}

/** Adds the rows of a tile to its columns: each cell is read before the first row and written after the last one. */
function updateCells(
  all: readonly Accumulated[],
  own: readonly Range[],
  column: Range,
  values: Values,
  { muladd, simt }: SumOptions,
): void {
  const { b, scope } = values;
  const { e } = b;
  const next = ({ n, dtype, parts, position }: Accumulated, old: readonly KNode[]): readonly KNode[] => {
    const { op } = n.arg;
    if (!parts && position === null) return [accumulate(values, n, old[0]!, muladd)];
    const x = e.cast(values.lower(n.src[0]), dtype);
    if (position === null || !isArg(op)) return extendExtremum(e, op, old as Extremum, x);
    const take = takesPlace(e, op, old[0]!, x, simt);
    return [e.where(take, x, old[0]!), e.where(take, values.lower(position), old[1]!)];
  };
  const rows = scope.tiles.filter((t) => own.includes(t.range));
  const last = copiesOf(rows) - 1;
  let row = 0;
  let now: (readonly KNode[])[] = [];
  scope.forEach([...scope.tiles.filter((t) => !rows.includes(t)), ...rows], () => {
    const at = scope.valueOf(column);
    if (row === 0) now = all.map(({ memory }) => memory.map((m) => b.load(m, at, lanesOf(scope))));
    now = all.map((one, i) => next(one, now[i]!));
    if (row === last) {
      for (const [i, { memory }] of all.entries()) {
        for (const [k, m] of memory.entries()) b.store(m, at, e.splat(now[i]![k]!, lanesOf(scope)));
      }
    }
    row = row === last ? 0 : row + 1;
  });
}

/** Runs a statement for all rows: `streams` of the innermost loop's at a time, then those that are left over, one by one. */
function overRows([r, ...inner]: readonly Range[], values: Values, inOrder: boolean, run: () => void): void {
  if (r === undefined) {
    run();
    return;
  }
  const { b, scope } = values;
  const { e } = b;
  const limit = r.src[0];
  const extent = limit === undefined ? e.i32(r.arg.extent) : values.lower(limit);
  if (inner.length > 0) {
    b.loop(extent, (i) => scope.withLoop(r, i, () => overRows(inner, values, inOrder, run)));
    return;
  }
  const part = e.idiv(extent, streams);
  if (inOrder) b.loop(part, (i) => scope.withTile(r, { base: e.mul(i, streams), count: streams, lanes: 1 }, run));
  else b.loop(part, (i) => scope.withTile(r, { base: i, count: streams, lanes: 1, step: part }, run));
  const done = e.mul(part, streams);
  b.loop(e.sub(extent, done), (i) => scope.withLoop(r, e.add(done, i), run));
}

/** Writes the extremum that the two parts make. */
function joinParts(split: readonly Accumulated[], column: Range, { b, scope }: Values): void {
  const at = scope.valueOf(column);
  for (const { n, memory } of split) {
    const parts = memory.map((m) => b.load(m, at, lanesOf(scope)));
    b.store(memory[0]!, at, wholeExtremum(b.e, n.arg.op, parts as unknown as Extremum));
  }
}

function lanesOf(scope: Values['scope']): number {
  return scope.vector?.lanes ?? 1;
}
