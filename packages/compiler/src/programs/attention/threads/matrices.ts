/**
 * Threads of a group that multiply tiles of matrices, 32 of them together (MATRIX of the kernel IR): factors of 16 bits as they are, and float32 where
 * the target has TF32 tiles. Scores, their statistics and results are float32.
 *
 * Each set of 32 has rows of its own, and all columns. Weights go from the scores' layout to that of a factor without leaving their threads
 * (FlashAttention-2): of 16 bits they lie alike. Of float32 a product takes its steps in another order, the same for both factors.
 */
import type { KNode } from '../../../ir/ir.ts';
import { divisorOf } from '../../../ir/free-ranges.ts';
import { fragmentLanes, type MatrixForm, matrixThreads, stepsOf } from '../../../ir/matrix.ts';
import { dtypeInfo } from '../../../shape/dtype.ts';
import type { MatrixTileShape } from '../../../codegen/costs/attention.ts';
import type { ProgramWriter } from '../../program-set.ts';
import { isDistance, type Matrix, type Operands, placeOf } from '../operands.ts';
import { acrossRow, awaitTiles, fillTile } from './cells.ts';
import type { Held, Team, Tile, TileRows } from './team.ts';
import { heightOfSets, lineOfFactor, paddedFactor, resultTiles } from './tiles.ts';

/** Threads that have parts of a row. */
const across = 4;

export class MatrixGroup implements Team {
  readonly #o: Operands;
  readonly #w: ProgramWriter;
  readonly #form: MatrixForm;
  readonly #shape: MatrixTileShape;
  readonly rows: readonly KNode[];
  readonly columns: readonly KNode[];
  /** Which of those that have parts of a row the thread is, and the first row of its set. */
  readonly #part: KNode;
  readonly #first: KNode;
  /** Which row or column of eight the thread has of a tile. */
  readonly #line: KNode;
  #cells: KNode | null = null;

  constructor(w: ProgramWriter, o: Operands, form: MatrixForm, shape: MatrixTileShape) {
    const { e } = w;
    this.#o = o;
    this.#w = w;
    this.#form = form;
    this.#shape = shape;
    const lane = e.irem(w.thread, matrixThreads);
    this.#part = e.irem(lane, across);
    this.#line = e.idiv(lane, across);
    this.#first = e.mul(e.idiv(w.thread, matrixThreads), 16 * shape.down);
    this.rows = Array.from({ length: 2 * shape.down }, (_, i) => e.add(e.add(this.#first, this.#line), 8 * i));
    this.columns = Array.from({ length: shape.breadth / 4 }, (_, j) =>
      e.add(e.mul(this.#part, 2), 8 * (j >> 1) + (j & 1)),
    );
  }

  get threads(): number {
    return this.#shape.sets * matrixThreads;
  }

  get height(): number {
    return heightOfSets(this.#shape);
  }

  get breadth(): number {
    return this.#shape.breadth;
  }

  get isFirst(): KNode {
    return this.#w.e.eq(this.#part, 0);
  }

  inner(n: number): number {
    return paddedFactor(n);
  }

  outer(n: number): number {
    return paddedFactor(n);
  }

  tile(name: string, rows: number, width: number): Tile {
    const line = lineOfFactor(width, this.#form.dtype);
    return { cells: this.#w.b.shared(name, this.#form.dtype, rows * line), line };
  }

  fill(to: Tile, source: TileRows): void {
    const isNarrow = source.from.memory.dtype === this.#form.dtype && dtypeInfo[this.#form.dtype].bytes === 2;
    fillTile(this.#w, this.#o, to, source, isNarrow && source.width % 8 === 0 ? 8 : 4);
  }

  filled(): void {
    awaitTiles(this.#w, this.#o);
  }

  #factor(part: 'a' | 'b', from: Tile, at: KNode, isTurned: boolean): KNode {
    const { dtype, tile } = this.#form;
    const [near, far] = isTurned ? [1, from.line] : [from.line, 1];
    const arg = { tile, part, across: near, along: far } as const;
    return this.#w.b.here('FRAGMENT', dtype, fragmentLanes(part, tile), [from.cells, at], arg);
  }

  #multiply(sums: KNode, number: number, x: KNode, y: KNode): void {
    const { b } = this.#w;
    b.store(sums, number, b.here('MATRIX', 'float32', 4, [x, y, b.load(sums, number)], { tile: this.#form.tile }));
  }

  #sums(name: string, count: number): KNode {
    const { b, e } = this.#w;
    const sums = b.reg(name, 'float32', 4, count);
    for (let i = 0; i < count; i++) b.store(sums, i, e.constant('float32', 0, 4));
    return sums;
  }

  products(name: string, left: Tile, right: Tile, length: number): KNode[][] {
    const { b, e } = this.#w;
    const { down, breadth } = this.#shape;
    const tiles = breadth / 8;
    const sums = this.#sums(name, down * tiles);
    for (let step = 0; step < length; step += stepsOf(this.#form.tile)) {
      const x = Array.from({ length: down }, (_, i) =>
        this.#factor('a', left, e.add(e.mul(e.add(this.#first, 16 * i), left.line), step), false),
      );
      for (let j = 0; j < tiles; j++) {
        const y = this.#factor('b', right, e.i32(8 * j * right.line + step), false);
        for (let i = 0; i < down; i++) this.#multiply(sums, i * tiles + j, x[i]!, y);
      }
    }
    const all = Array.from({ length: down * tiles }, (_, i) => b.load(sums, i));
    return this.rows.map((_, r) =>
      this.columns.map((_c, c) => e.lane(all[(r >> 1) * tiles + (c >> 1)]!, 2 * (r & 1) + (c & 1))),
    );
  }

  results(name: string, width: number): KNode {
    return this.#sums(name, this.#shape.down * resultTiles(width));
  }

  keep(_name: string, values: readonly (readonly KNode[])[]): Held {
    const { b } = this.#w;
    const { dtype } = this.#form;
    return { values: values.map((line) => line.map((x): KNode => b.place(this.#w.e.cast(x, dtype)))), tile: null };
  }

  /** They stay where they are. */
  kept(): void {}

  accumulate(results: KNode, { values }: Held, rows: Tile, width: number): void {
    const { b, e } = this.#w;
    const { down, breadth } = this.#shape;
    const { dtype, tile } = this.#form;
    const steps = stepsOf(tile);
    const tiles = resultTiles(width);
    const isNarrow = dtypeInfo[dtype].bytes === 2;
    for (let step = 0; step < breadth; step += steps) {
      const x = Array.from({ length: down }, (_, i) =>
        e.vec(
          Array.from({ length: fragmentLanes('a', tile) }, (_l, l) => {
            const word = isNarrow ? l >> 1 : l;
            const row = values[2 * i + (word & 1)]!;
            // Steps of a tile of 16 are columns of two tiles; of float32 the later four are the odd columns.
            return isNarrow ? row[step / 4 + 2 * (word >> 1) + (l & 1)]! : row[step / 4 + (word >> 1)]!;
          }),
        ),
      );
      for (let j = 0; j < tiles; j++) {
        const one = (word: number): KNode => {
          const row = e.add(e.mul(this.#part, 2), step + word);
          return b.load(rows.cells, e.add(e.mul(row, rows.line), e.add(this.#line, 8 * j)));
        };
        const y = isNarrow
          ? this.#factor('b', rows, e.i32(step * rows.line + 8 * j), true)
          : e.vec(Array.from({ length: fragmentLanes('b', tile) }, (_, l) => one(l)));
        for (let i = 0; i < down; i++) this.#multiply(results, i * tiles + j, x[i]!, y);
      }
    }
  }

  scale(
    results: KNode,
    width: number,
    by: { readonly factor: readonly KNode[] } | { readonly divisor: readonly KNode[] },
  ): void {
    const { b, e } = this.#w;
    const tiles = resultTiles(width);
    const list = 'factor' in by ? by.factor : by.divisor;
    for (let i = 0; i < this.#shape.down; i++) {
      const [x, y] = [list[2 * i]!, list[2 * i + 1]!];
      const four = e.vec([x, x, y, y]);
      for (let j = 0; j < tiles; j++) {
        const value = b.load(results, i * tiles + j);
        b.store(results, i * tiles + j, 'factor' in by ? e.mul(value, four) : e.div(value, four));
      }
    }
  }

  write(results: KNode, to: Matrix, first: KNode, count: number, width: number): void {
    const { b, e } = this.#w;
    const tiles = resultTiles(width);
    const pairs =
      width % 2 === 0 && [to.start, to.row].every((n) => divisorOf(n) % 2 === 0) && isDistance(to.column, 1);
    for (const [r, own] of this.rows.entries()) {
      const row = e.add(first, own);
      const inside = this.#o.isWhole(count, this.height) ? null : e.lt(row, this.#o.now(count));
      for (let j = 0; j < tiles; j++) {
        const value = b.load(results, (r >> 1) * tiles + j);
        const two = [0, 1].map((i) => e.lane(value, 2 * (r & 1) + i));
        for (const [i, x] of pairs ? [[0, e.vec(two)] as const] : [...two.entries()]) {
          const column = e.add(e.mul(this.#part, 2), 8 * j + i);
          const gates = [inside, 8 * (j + 1) <= width ? null : e.lt(column, width)].filter((gate) => gate !== null);
          const gate = gates.length === 0 ? undefined : gates.reduce((p, q) => e.and(p, q));
          b.store(this.#o.out, placeOf(e, to, row, column), x, gate);
        }
      }
    }
  }

  acrossRow(values: readonly KNode[], both: (x: KNode, y: KNode) => KNode, all: boolean): KNode[] {
    this.#cells ??= this.#w.b.shared('line', 'float32', this.height * across);
    const threads = { cells: this.#cells, across, own: this.#part, part: all ? null : matrixThreads };
    return acrossRow(this.#w, threads, this.rows, values, both);
  }
}
