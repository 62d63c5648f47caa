/** Threads of a group that have scores and results one by one, and read vectors of both factors. */
import { divisorOf } from '../../../ir/free-ranges.ts';
import type { ThreadTile } from '../../../codegen/costs/attention.ts';
import type { KNode } from '../../../ir/ir.ts';
import type { ProgramWriter } from '../../program-set.ts';
import { isDistance, type Matrix, type Operands, placeOf } from '../operands.ts';
import { acrossRow, awaitTiles, fillTile } from './cells.ts';
import type { Held, Team, Tile, TileRows } from './team.ts';
import { breadthOf, heightOf, lanes, lineOf, spread, up } from './tiles.ts';

/** The work of threads whose rows are `down` apart and columns `across` apart, so that neighbours read neighbouring lines of a tile. */
export class Group implements Team {
  readonly o: Operands;
  readonly w: ProgramWriter;
  readonly rows: readonly KNode[];
  readonly columns: readonly KNode[];
  readonly #tile: ThreadTile;
  readonly #tx: KNode;
  /** What threads of a line tell each other. */
  #line: KNode | null = null;

  constructor(w: ProgramWriter, o: Operands, tile: ThreadTile) {
    this.w = w;
    this.o = o;
    this.#tile = tile;
    const { across, down } = tile;
    this.#tx = w.e.irem(w.thread, across);
    const ty = w.e.idiv(w.thread, across);
    this.rows = this.#each(tile.rows, (i) => w.e.add(ty, down * i));
    this.columns = this.#each(tile.columns, (j) => w.e.add(this.#tx, across * j));
  }

  get threads(): number {
    return this.#tile.across * this.#tile.down;
  }

  get height(): number {
    return heightOf(this.#tile);
  }

  get breadth(): number {
    return breadthOf(this.#tile);
  }

  get isFirst(): KNode {
    return this.w.e.eq(this.#tx, 0);
  }

  #each<T>(count: number, make: (i: number) => T): T[] {
    return Array.from({ length: count }, (_, i) => make(i));
  }

  inner(n: number): number {
    return up(n, lanes);
  }

  outer(n: number): number {
    return spread(n, this.#tile);
  }

  tile(name: string, rows: number, width: number): Tile {
    const line = lineOf(width);
    return { cells: this.w.b.shared(name, this.o.wide, rows * line), line };
  }

  fill(to: Tile, source: TileRows): void {
    fillTile(this.w, this.o, to, source, lanes);
  }

  filled(): void {
    awaitTiles(this.w, this.o);
  }

  products(name: string, left: Tile, right: Tile, length: number): KNode[][] {
    const { b, e } = this.w;
    const { rows, columns } = this.#tile;
    const sums = b.reg(name, this.o.wide, 1, rows * columns);
    for (let i = 0; i < rows * columns; i++) b.store(sums, i, this.o.number(0));
    b.loop(up(length, lanes) / lanes, (step) => {
      const at = e.mul(step, lanes);
      const x = this.#each(rows, (i) => b.load(left.cells, e.add(e.mul(this.rows[i]!, left.line), at), lanes));
      const y = this.#each(columns, (j) => b.load(right.cells, e.add(e.mul(this.columns[j]!, right.line), at), lanes));
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          let sum = b.load(sums, i * columns + j);
          for (let l = 0; l < lanes; l++) sum = this.o.product(e.lane(x[i]!, l), e.lane(y[j]!, l), sum);
          b.store(sums, i * columns + j, sum);
        }
    });
    return this.#each(rows, (i) => this.#each(columns, (j) => b.load(sums, i * columns + j)));
  }

  /** Vectors `across` apart. */
  results(name: string, width: number): KNode {
    const { b, e } = this.w;
    const count = this.#tile.rows * this.#vectors(width);
    const registers = b.reg(name, this.o.wide, lanes, count);
    for (let i = 0; i < count; i++) b.store(registers, i, e.splat(this.o.number(0), lanes));
    return registers;
  }

  #vectors(width: number): number {
    return spread(width, this.#tile) / lanes / this.#tile.across;
  }

  accumulate(results: KNode, weights: Held, values: Tile, width: number): void {
    const { b, e } = this.w;
    const { cells, line } = weights.tile!;
    const { across, rows } = this.#tile;
    const vectors = this.#vectors(width);
    const unit = this.breadth % lanes === 0 ? lanes : 1;
    b.loop(this.breadth / unit, (step) => {
      const at = e.mul(step, unit);
      const x = this.#each(rows, (i) => b.load(cells, e.add(e.mul(this.rows[i]!, line), at), unit));
      for (let l = 0; l < unit; l++)
        for (let j = 0; j < vectors; j++) {
          const column = e.mul(e.add(this.#tx, across * j), lanes);
          const y = b.load(values.cells, e.add(e.mul(e.add(at, l), values.line), column), lanes);
          for (let i = 0; i < rows; i++) {
            const sum = b.load(results, i * vectors + j, lanes);
            b.store(results, i * vectors + j, this.o.product(e.splat(e.lane(x[i]!, l), lanes), y, sum));
          }
        }
    });
  }

  scale(
    results: KNode,
    width: number,
    by: { readonly factor: readonly KNode[] } | { readonly divisor: readonly KNode[] },
  ): void {
    const { b, e } = this.w;
    const vectors = this.#vectors(width);
    for (let i = 0; i < this.#tile.rows; i++)
      for (let j = 0; j < vectors; j++) {
        const at = i * vectors + j;
        const value = b.load(results, at, lanes);
        const scaled =
          'factor' in by ? e.mul(value, e.splat(by.factor[i]!, lanes)) : e.div(value, e.splat(by.divisor[i]!, lanes));
        b.store(results, at, scaled);
      }
  }

  write(results: KNode, to: Matrix, first: KNode, count: number, width: number): void {
    const { b, e } = this.w;
    const { across, rows } = this.#tile;
    const vectors = this.#vectors(width);
    const inVectors =
      width % lanes === 0 && [to.start, to.row].every((n) => divisorOf(n) % lanes === 0) && isDistance(to.column, 1);
    for (let i = 0; i < rows; i++) {
      const row = e.add(first, this.rows[i]!);
      const inside = this.o.isWhole(count, this.height) ? null : e.lt(row, this.o.now(count));
      for (let j = 0; j < vectors; j++) {
        const column = e.mul(e.add(this.#tx, across * j), lanes);
        const value = b.load(results, i * vectors + j, lanes);
        const at = placeOf(e, to, row, column);
        const stored = (place: KNode, one: KNode, limit: KNode | null): void => {
          const gates = [inside, limit].filter((gate) => gate !== null);
          b.store(this.o.out, place, one, gates.length === 0 ? undefined : gates.reduce((x, y) => e.and(x, y)));
        };
        const full = width % (lanes * across) === 0;
        if (inVectors) stored(at, value, full ? null : e.lt(column, width));
        else
          for (let l = 0; l < lanes; l++) {
            const own = e.add(column, l);
            stored(e.add(at, l), e.lane(value, l), full ? null : e.lt(own, width));
          }
      }
    }
  }

  keep(name: string, values: readonly (readonly KNode[])[]): Held {
    const { b, e } = this.w;
    const tile = this.tile(name, this.height, this.breadth);
    values.forEach((row, i) => {
      row.forEach((value, j) => {
        b.store(tile.cells, e.add(e.mul(this.rows[i]!, tile.line), this.columns[j]!), value);
      });
    });
    return { values, tile };
  }

  kept(): void {
    this.w.b.barrier(this.#tile.across);
  }

  acrossRow(values: readonly KNode[], both: (x: KNode, y: KNode) => KNode, all: boolean): KNode[] {
    const { across } = this.#tile;
    this.#line ??= this.w.b.shared('line', this.o.wide, this.height * across);
    const threads = { cells: this.#line, across, own: this.#tx, part: all ? null : across };
    return acrossRow(this.w, threads, this.rows, values, both);
  }
}
