/** Vectors whose elements lie in neighbouring places of several rows: rows are loaded whole, and a square of them is turned in registers. */
import { idOf, type KNode, type KNodeOf, type SquareColumn } from '@polygrad/core/kernel';
import type { Block, Reg } from '../code.ts';
import { type Context, join, type Lowered, makeParts, usedBytes } from './context.ts';
import { side } from './neighbours.ts';

/** Two elements of each of two vectors, as `vshufps` is told: even ones, odd ones, the first two, the last two. */
const [even, odd, first, last] = [0x88, 0xdd, 0x44, 0xee];

/** The squares that are in registers. */
export class Squares {
  readonly #ctx: Context;
  readonly #row: (load: KNodeOf<'LOAD'>, at: number, lanes: number) => Reg;
  /** By what their rows are, of each block. Their halves are two columns each. */
  readonly #made = new Map<Block, Map<string, readonly (readonly [Reg, Reg])[]>>();

  /** @param row loads so many elements, `at` behind that of a load */
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
        : join(this.#ctx, make(at, bytes / 2), make(at + bytes / 32, bytes / 2), bytes);
    return makeParts(this.#ctx, n.lanes, 4, (p) => make((p * used) / 16, used));
  }

  #column({ rows, column }: SquareColumn): Reg {
    const { b } = this.#ctx;
    const key = rows.map(({ run, at }) => `${idOf(run.first)}+${at}`).join(' ');
    let made = this.#made.get(b.current);
    if (made === undefined) this.#made.set(b.current, (made = new Map()));
    let halves = made.get(key);
    if (halves === undefined) {
      const [w, x, y, z] = rows.map(({ run, at }) => this.#row(run.first, at, side)) as [Reg, Reg, Reg, Reg];
      halves = [first, last].map((two) => [b.op('vshufps', 16, w, x, two), b.op('vshufps', 16, y, z, two)] as const);
      made.set(key, halves);
    }
    const [above, below] = halves[column >> 1]!;
    return b.op('vshufps', 16, above, below, column % 2 === 0 ? even : odd);
  }
}
