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
import { isArg } from '../../ir/node.ts';
import {
  accumulate,
  accumulatorDtype,
  extendExtremum,
  type Extremum,
  goesByParts,
  identityOf,
  noExtremum,
  positionIn,
  takesPlace,
  wholeExtremum,
} from './reduce.ts';
import { copiesOf, type Values } from './scope.ts';
import type { DType } from '../../shape/dtype.ts';

/** Streams of rows, each in another part of all rows. */
const streams = 4;

/** Runs a statement, with the expressions it needs, for all columns. */
export type OverColumns = (column: Range, roots: readonly KNode[], run: () => void) => void;

/** Computes reductions over the same ranges for all columns and makes their results available. */
export function reduceColumns(
  nodes: readonly KNodeOf<'REDUCE'>[],
  column: Range,
  values: Values,
  { muladd, simt }: { readonly muladd: boolean; readonly simt: boolean },
  overColumns: OverColumns,
): void {
  const { b, scope } = values;
  const { e } = b;
  const own = ownRanges(nodes[0] as KNode);
  const rows = sizeOf(own);
  const cells = nodes.map((n) => {
    const dtype = accumulatorDtype(n.src[0].dtype as DType);
    const parts = !simt && goesByParts(n.arg.op, dtype, rows, 2);
    const position = isArg(n.arg.op) ? positionIn(e, own) : null;
    const first = [identityOf(e, n.arg.op, dtype), ...(position === null ? [] : [e.i32(0)])];
    const start: readonly KNode[] = parts ? noExtremum(e, n.arg.op) : first;
    const memory = start.map((first) => b.shared('columns', first.dtype as DType, column.arg.extent));
    return { n, dtype, start, memory, parts, position };
  });
  const roots = cells.flatMap(({ n, position }) => [n.src[0], ...(position === null ? [] : [position])]);
  const inOrder = cells.some(({ position }) => position !== null);
  const lanesOf = (): number => scope.vector?.lanes ?? 1;
  overColumns(column, [], () => {
    scope.forEach(scope.tiles, () => {
      for (const { start, memory } of cells) {
        for (const [i, m] of memory.entries()) b.store(m, scope.valueOf(column), e.splat(start[i]!, lanesOf()));
      }
    });
  });

  const update = (): void => {
    const rows = scope.tiles.filter((t) => own.includes(t.range));
    const last = copiesOf(rows) - 1;
    const tiles = [...scope.tiles.filter((t) => !rows.includes(t)), ...rows];
    let row = 0;
    let before: (readonly KNode[])[] = [];
    scope.forEach(tiles, () => {
      const at = scope.valueOf(column);
      if (row === 0) before = cells.map(({ memory }) => memory.map((m) => b.load(m, at, lanesOf())));
      before = cells.map(({ n, dtype, parts, position }, i) => {
        const old = before[i]!;
        const { op } = n.arg;
        if (!parts && position === null) return [accumulate(values, n, old[0]!, muladd)];
        const x = e.cast(values.lower(n.src[0]), dtype);
        if (position === null || !isArg(op)) return extendExtremum(e, op, old as Extremum, x);
        const take = takesPlace(e, op, old[0]!, x, simt);
        return [e.where(take, x, old[0]!), e.where(take, values.lower(position), old[1]!)];
      });
      if (row === last) {
        for (const [i, { memory }] of cells.entries()) {
          const now = before[i]!;
          for (const [k, m] of memory.entries()) b.store(m, at, e.splat(now[k]!, lanesOf()));
        }
      }
      row = row === last ? 0 : row + 1;
    });
  };
  const open = (ranges: readonly Range[]): void => {
    const [r, ...inner] = ranges;
    if (r === undefined) {
      overColumns(column, roots, update);
      return;
    }
    const limit = r.src[0];
    const extent = limit === undefined ? e.i32(r.arg.extent) : values.lower(limit);
    if (inner.length > 0) {
      b.loop(extent, (i) => scope.withLoop(r, i, () => open(inner)));
      return;
    }
    const part = e.idiv(extent, streams);
    if (inOrder) b.loop(part, (i) => scope.withTile(r, e.mul(i, streams), streams, 1, () => open(inner)));
    else b.loop(part, (i) => scope.withTile(r, i, streams, 1, () => open(inner), part));
    const done = e.mul(part, streams);
    b.loop(e.sub(extent, done), (i) => scope.withLoop(r, e.add(done, i), () => open(inner)));
  };
  open(own);
  const split = cells.filter((c) => c.parts);
  if (split.length > 0) {
    overColumns(column, [], () => {
      scope.forEach(scope.tiles, () => {
        const at = scope.valueOf(column);
        for (const { n, memory } of split) {
          const parts = memory.map((m) => b.load(m, at, lanesOf()));
          b.store(memory[0] as KNode, at, wholeExtremum(e, n.arg.op, parts as unknown as Extremum));
        }
      });
    });
  }
  for (const { n, memory, position } of cells)
    values.results.set(n, { kind: 'columns', column, memory: memory[position === null ? 0 : 1] as KNode });
}
