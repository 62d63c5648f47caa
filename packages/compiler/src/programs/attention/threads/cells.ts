/** Parts of both kinds of `Team`: copies of rows to group memory, and reductions of a row across the threads that have parts of it. */
import { divisorOf } from '../../../ir/free-ranges.ts';
import { type DType, dtypeInfo } from '../../../shape/dtype.ts';
import type { KNode } from '../../../ir/ir.ts';
import type { ProgramWriter } from '../../program-set.ts';
import { isDistance, type Matrix, type Operands, placeOf } from '../operands.ts';
import type { Tile, TileRows } from './team.ts';

/** `Team.fill`, by vectors of so many elements; or by copies, where memory lies as the tile does. */
export function fillTile(w: ProgramWriter, o: Operands, to: Tile, source: TileRows, lanes: number): void {
  const { b, e } = w;
  const { from, width, padded } = source;
  const dtype = to.cells.dtype as DType;
  const unit = unitOfCopies(o, dtype, from, width);
  if (unit !== null && padded % unit === 0) {
    copyTile(w, o, to, source, unit);
    return;
  }
  eachPart(w, o, source, lanes, (row, start, at, isRow) => {
    const whole = isDistance(from.column, 1) && width % lanes === 0;
    const read = (column: KNode, n: number): KNode => {
      const gate = b.place(e.and(isRow, e.lt(column, width)));
      return e.cast(b.load(from.memory, placeOf(e, from, at, column), n, gate), dtype);
    };
    const value = whole ? read(start, lanes) : e.vec(Array.from({ length: lanes }, (_, i) => read(e.add(start, i), 1)));
    b.store(to.cells, e.add(e.mul(row, to.line), start), value);
  });
}

/**
 * Goes through rows of a tile in parts of so many elements, which the threads share. `write` gets the row of each in the tile, its first column, its row
 * in the matrix, and whether it is one that counts.
 */
function eachPart(
  { b, e, thread, threads }: ProgramWriter,
  o: Operands,
  { rows, first, count, padded }: TileRows,
  length: number,
  write: (row: KNode, column: KNode, at: KNode, isRow: KNode) => void,
): void {
  const parts = padded / length;
  const all = rows * parts;
  b.loop(Math.ceil(all / threads), (turn) => {
    const part = e.add(e.mul(turn, threads), thread);
    b.ifThen(all % threads === 0 ? e.bool(true) : e.lt(part, all), () => {
      const row = e.idiv(part, parts);
      const at = e.add(first, row);
      write(row, e.mul(e.irem(part, parts), length), at, e.lt(at, o.now(count)));
    });
  });
}

/** Elements of a copy of 16 bytes where rows of a matrix are made of such and the target copies beside other work; else null. */
function unitOfCopies(o: Operands, dtype: DType, { memory, start, row, column }: Matrix, width: number): number | null {
  const unit = 16 / dtypeInfo[dtype].bytes;
  if (!o.copies || memory.dtype !== dtype || memory.op !== 'PARAM' || memory.arg.access !== 'read') return null;
  const whole = width % unit === 0 && [start, row].every((n) => divisorOf(n) % unit === 0);
  return whole && isDistance(column, 1) ? unit : null;
}

/** Starts copying rows of a matrix; they are readable after a WAIT and a barrier. */
function copyTile(w: ProgramWriter, o: Operands, to: Tile, source: TileRows, unit: number): void {
  const { b, e } = w;
  const { from, width } = source;
  eachPart(w, o, source, unit, (row, column, at, isRow) => {
    const inside = e.and(isRow, e.lt(column, width));
    const src = [to.cells, e.add(e.mul(row, to.line), column), from.memory, placeOf(e, from, at, column)];
    if (inside.op !== 'CONST') src.push(inside);
    b.here('COPY', 'void', 1, src, { lanes: unit });
  });
  b.here('COMMIT', 'void', 1, [], null);
}

/** `Team.filled`. */
export function awaitTiles({ b }: ProgramWriter, o: Operands): void {
  if (o.copies) b.here('WAIT', 'void', 1, [], { pending: 0 });
  b.barrier();
}

/** The threads that have parts of a row. */
interface RowThreads {
  /** Group memory with a cell for each of them, in all rows. */
  readonly cells: KNode;
  /** How many they are, and the number of this one. */
  readonly across: number;
  readonly own: KNode;
  /** They are neighbours in a part of so many threads, which waits without the rest of the group; null: all of it wait. */
  readonly part: number | null;
}

/** `Team.acrossRow`: the threads of a row combine a value of each. */
export function acrossRow(
  { b, e }: ProgramWriter,
  { cells, across, own, part }: RowThreads,
  rows: readonly KNode[],
  values: readonly KNode[],
  both: (x: KNode, y: KNode) => KNode,
): KNode[] {
  const start = (i: number): KNode => e.mul(rows[i]!, across);
  values.forEach((value, i) => {
    b.store(cells, e.add(start(i), own), value);
  });
  b.barrier(part);
  return values.map((_, i) =>
    b.place(Array.from({ length: across }, (_x, x) => b.load(cells, e.add(start(i), x))).reduce((x, y) => both(x, y))),
  );
}
