/** What the lowering of contractions is given, and what may be measured of it. */
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { LibraryPrograms } from './library.ts';
import type { Exprs } from '../ir/expr.ts';
import type { LoopKernel, MatrixProduct } from '../ir/ir.ts';

/** What was measured, for engines with groups of threads or a library for products (tuning/). */
export interface TileChoices {
  /** The engine's library, if it has one. */
  readonly library?: ProductLibrary | null;
  /** Name of what was chosen for a class of contractions (choice.ts); undefined if nothing was measured. */
  find(key: string): string | undefined;
  /** Told of every contraction that is lowered. */
  note(key: string, kernel: LoopKernel, e: Exprs): void;
}

/**
 * Lowers a kernel around a contraction, or returns null: then the loop nest is lowered as it stands. `e` is the factory that made the
 * kernel's nodes.
 */
export type ContractionTemplate = (
  kernel: LoopKernel,
  e: Exprs,
  caps: CodegenCaps,
  choices?: TileChoices,
) => Lowered | null;

/** A way to lower a contraction, by name. */
export type Way = readonly [name: string, lower: () => Lowered];

/** Names of the choices for a contraction that are no tile of threads. */
export const byTiles = 'tiles';
export const byLibrary = 'library';

/** What the library knows about programs of others that compute products of matrices on an engine's device (BLAS). */

/**
 * A program of others that may compute products in place of kernels. Nothing runs there that was not measured faster on the
 * device (tuning/). An engine that has one runs `Program.product` by it wherever it finds one it takes, and the program itself
 * where that fails.
 */
export interface ProductLibrary {
  /** One word; measurements are kept under it. */
  readonly name: string;
  /** `libraryPrograms`: they come with the library, so that pages without one carry none. */
  readonly programs: LibraryPrograms;
  /** Whether it can compute this; false for everything once it has failed. */
  takes(product: MatrixProduct): boolean;
  /** Resolves when nothing is left to be done before the first such product, true if it can be computed. */
  prepare(product: MatrixProduct): Promise<boolean>;
  /** Calls `told` when it fails: what was lowered for it should be lowered anew. */
  onFailure(told: () => void): void;
}
