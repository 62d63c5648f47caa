/**
 * The interface in which forward.ts and gradients.ts are written: operations of a group of threads on tiles and scores. Threads
 * compute by single numbers (group.ts) or by tiles of matrices (matrices.ts).
 *
 * A group has a block of rows of one head and goes through blocks of columns. Factors are tiles in group memory. A thread has some of the scores of a
 * block, those of its rows and columns, and some of the results.
 */
import type { KNode } from '../../../ir/ir.ts';
import type { Matrix } from '../operands.ts';

/** A tile in group memory: rows of a matrix, `line` elements apart. */
export interface Tile {
  readonly cells: KNode;
  readonly line: number;
}

/** Weights of a block as the threads hold them for a product. */
export interface Held {
  readonly values: readonly (readonly KNode[])[];
  /** In group memory; null where each thread holds its own. */
  readonly tile: Tile | null;
}

/** How a group is cut. */
export interface TeamShape {
  readonly threads: number;
  /** Rows of the block, and columns of those that it goes through. */
  readonly height: number;
  readonly breadth: number;
}

/** Rows of a matrix that fill a tile. */
export interface TileRows {
  readonly from: Matrix;
  /** Rows of the tile, and the row of the matrix that the first of them is. */
  readonly rows: number;
  readonly first: KNode;
  /** Rows of the matrix: the tile has zeros behind. */
  readonly count: number;
  /** Elements of a row of the matrix, and of the tile: zeros behind. */
  readonly width: number;
  readonly padded: number;
}

export interface Team extends TeamShape {
  /** Places in the block of the thread's rows and columns. */
  readonly rows: readonly KNode[];
  readonly columns: readonly KNode[];
  /** True for one thread of all that have parts of a row. */
  readonly isFirst: KNode;
  /** Elements of a line of a tile for so many that are summed over, and for so many that results have. */
  inner(n: number): number;
  outer(n: number): number;
  tile(name: string, rows: number, width: number): Tile;
  /** Copies rows of a matrix to a tile, beside other work where the target can, until `filled`. */
  fill(to: Tile, source: TileRows): void;
  /** All threads get there; tiles that were filled are there from then on. */
  filled(): void;
  /** Products of the thread's rows of one tile with its columns, which are rows of another, along `length` elements. */
  products(name: string, left: Tile, right: Tile, length: number): KNode[][];
  /** Registers for the thread's part of results of `width`, zeros at first. */
  results(name: string, width: number): KNode;
  /** Keeps what the thread has of a block of weights. They are there for others after `kept` or `filled`. */
  keep(name: string, values: readonly (readonly KNode[])[]): Held;
  /** Threads that have parts of the same rows get there: weights that they kept are there for all of them from then on. */
  kept(): void;
  /** Adds the weights times the rows of a tile. */
  accumulate(results: KNode, weights: Held, values: Tile, width: number): void;
  /** Every register of results by what `factor` or `divisor` is for its row. */
  scale(
    results: KNode,
    width: number,
    by: { readonly factor: readonly KNode[] } | { readonly divisor: readonly KNode[] },
  ): void;
  /** Writes results as the first elements of rows of a matrix; `first` is the row of the block's first. */
  write(results: KNode, to: Matrix, first: KNode, count: number, width: number): void;
  /** One number of each of the thread's rows from all threads that have parts of it, in their order. `all`: the whole group gets there. */
  acrossRow(values: readonly KNode[], both: (x: KNode, y: KNode) => KNode, all: boolean): KNode[];
}
