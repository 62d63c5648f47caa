/** Vectors whose elements are neighbours in several rows: whole rows are loaded, and squares of them are transposed in registers. */
import { idOf, type KNode, type KNodeOf, type SquareColumn } from '@polygrad/core/kernel';
import type { Block, Reg, Lowered } from '../form/code.ts';
import { makeParts, usedBytes } from '../form/vector-parts.ts';
import type { Context } from '../form/machine.ts';
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

  /** A vector made of columns. */
  vector(n: KNode, columns: readonly SquareColumn[]): Lowered {
    const used = usedBytes(this.#ctx, n.lanes, 4);
    const make = (at: number, bytes: number): Reg =>
      bytes === 16
        ? this.#column(columns[at]!)
        : this.#ctx.machine.lanes.join(this.#ctx, make(at, bytes / 2), make(at + bytes / 32, bytes / 2), bytes);
    return makeParts(this.#ctx, n.lanes, 4, (p) => make((p * used) / 16, used));
  }

  #column({ rows, column }: SquareColumn): Reg {
    const { b, machine } = this.#ctx;
    const { pairs } = machine.lanes;
    const key = rows.map(({ run, at }) => `${idOf(run.first)}+${at}`).join(' ');
    let made = this.#made.get(b.current);
    if (made === undefined) this.#made.set(b.current, (made = new Map()));
    let halves = made.get(key);
    if (halves === undefined) {
      const [w, x, y, z] = rows.map(({ run, at }) => this.#row(run.first, at, side)) as [Reg, Reg, Reg, Reg];
      halves = (['first', 'last'] as const).map((two) => [pairs(this.#ctx, two, w, x), pairs(this.#ctx, two, y, z)]);
      made.set(key, halves);
    }
    const [above, below] = halves[column >> 1]!;
    return pairs(this.#ctx, column % 2 === 0 ? 'even' : 'odd', above, below);
  }
}
