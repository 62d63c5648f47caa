/** What teams share: copies of rows to group memory, and numbers of a row from all threads that have parts of it. */
import type { DType } from '../../../shape/dtype.ts';
import type { KNode } from '../../../ir/ir.ts';
import type { ProgramWriter } from '../../program-set.ts';
import { isDistance, type Matrix, type Operands, placeOf } from '../operands.ts';
import type { Tile } from './team.ts';

/** `Team.fill`, by vectors of so many elements. */
export function fillTile(
  w: ProgramWriter,
  o: Operands,
  to: Tile,
  from: Matrix,
  rows: number,
  first: KNode,
  count: number,
  width: number,
  padded: number,
  lanes: number,
): void {
  const { b, e, thread, threads } = w;
  const dtype = to.cells.dtype as DType;
  const vectors = padded / lanes;
  const all = rows * vectors;
  b.loop(Math.ceil(all / threads), (turn) => {
    const at = e.add(e.mul(turn, threads), thread);
    b.ifThen(all % threads === 0 ? e.bool(true) : e.lt(at, all), () => {
      const [row, start] = [e.idiv(at, vectors), e.mul(e.irem(at, vectors), lanes)];
      const source = e.add(first, row);
      const inside = e.lt(source, o.now(count));
      const whole = isDistance(from.column, 1) && width % lanes === 0;
      const read = (column: KNode, n: number): KNode => {
        const gate = b.place(e.and(inside, e.lt(column, width)));
        return e.cast(b.load(from.memory, placeOf(e, from, source, column), n, gate), dtype);
      };
      const value = whole
        ? read(start, lanes)
        : e.vec(Array.from({ length: lanes }, (_, i) => read(e.add(start, i), 1)));
      b.store(to.cells, e.add(e.mul(row, to.line), start), value);
    });
  });
}

/** `Team.acrossRow`: `across` threads have parts of a row, of which this one is number `own`. `cells` has room for all rows. */
export function acrossRow(
  { b, e }: ProgramWriter,
  cells: KNode,
  rows: readonly KNode[],
  across: number,
  own: KNode,
  values: readonly KNode[],
  both: (x: KNode, y: KNode) => KNode,
): KNode[] {
  const start = (i: number): KNode => e.mul(rows[i]!, across);
  values.forEach((value, i) => {
    b.store(cells, e.add(start(i), own), value);
  });
  b.barrier();
  return values.map((_, i) =>
    b.place(Array.from({ length: across }, (_x, x) => b.load(cells, e.add(start(i), x))).reduce((x, y) => both(x, y))),
  );
}
