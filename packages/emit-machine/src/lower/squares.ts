/** Vectors whose elements are neighbours in several rows: whole rows are loaded, and squares of them are transposed in registers. */
import { idOf, type KNode, type KNodeOf, type SquareColumn } from '@polygrad/core/kernel';
import type { Block, Reg, Lowered } from '../form/code.ts';
import { makeParts, usedBytes } from '../form/vector-parts.ts';
import type { Context, PairsOf } from '../form/machine.ts';
import { side } from './neighbours.ts';

/** The squares that are in registers. */
export class Squares {
  readonly #ctx: Context;
  readonly #row: (load: KNodeOf<'LOAD'>, at: number, lanes: number) => Reg;
  /** By the key of their rows, for each block. Each half is two columns. */
  readonly #made = new Map<Block, Map<string, readonly (readonly [Reg, Reg])[]>>();

  /** @param row loads elements, `at` elements behind those of a load */
  constructor(ctx: Context, row: (load: KNodeOf<'LOAD'>, at: number, lanes: number) => Reg) {
    this.#ctx = ctx;
    this.#row = row;
  }

  /** A vector made of columns. Where these are the same column of several squares, a register holds those squares side by side. */
  vector(n: KNode, columns: readonly SquareColumn[]): Lowered {
    const used = usedBytes(this.#ctx, n.lanes, 4);
    const wide = used / 16;
    return makeParts(this.#ctx, n.lanes, 4, (p) => {
      const own = columns.slice(p * wide, (p + 1) * wide);
      if (own.every(({ column }) => column === own[0]!.column)) return this.#column(own, used);
      return this.#joined(own, used, (one) => this.#column([one], 16));
    });
  }

  /** What is made of each item, side by side in a vector of so many bytes. */
  #joined<T>(items: readonly T[], bytes: number, make: (item: T) => Reg): Reg {
    if (items.length === 1) return make(items[0]!);
    const half = items.length / 2;
    return this.#ctx.machine.lanes.join(
      this.#ctx,
      this.#joined(items.slice(0, half), bytes / 2, make),
      this.#joined(items.slice(half), bytes / 2, make),
      bytes,
    );
  }

  /** The same column of squares side by side. */
  #column(squares: readonly SquareColumn[], bytes: number): Reg {
    const { b, machine } = this.#ctx;
    const pairs = (which: PairsOf, x: Reg, y: Reg): Reg => machine.lanes.pairs(this.#ctx, which, x, y, bytes);
    const key = squares
      .flatMap(({ rows }) => rows.map(({ run, at }) => `${idOf(run.first)}+${(run.from ?? 0) + at}`))
      .join(' ');
    let made = this.#made.get(b.current);
    if (made === undefined) this.#made.set(b.current, (made = new Map()));
    let halves = made.get(key);
    if (halves === undefined) {
      const row = (i: number): Reg =>
        this.#joined(squares, bytes, ({ rows }) =>
          this.#row(rows[i]!.run.first, (rows[i]!.run.from ?? 0) + rows[i]!.at, side),
        );
      const [w, x, y, z] = [row(0), row(1), row(2), row(3)];
      halves = (['first', 'last'] as const).map((two) => [pairs(two, w, x), pairs(two, y, z)]);
      made.set(key, halves);
    }
    const { column } = squares[0]!;
    const [above, below] = halves[column >> 1]!;
    return pairs(column % 2 === 0 ? 'even' : 'odd', above, below);
  }
}
