/**
 * What lowers contractions, in types: the function that a kind of target has for it, the measured choices it is given. Also the library of the
 * device (BLAS) that may compute products in place of kernels.
 */
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Count, LoopKernel, Product } from '../ir/ir.ts';
import type { LibraryPrograms } from './products/library.ts';

/** Measured choices, for engines with groups of threads or with a library for products (tuning/). */
export interface TileChoices {
  /** The engine's library, if it has one. */
  readonly library?: ProductLibrary | null;
  /** Name of the choice for a class of contractions (choice.ts); undefined if nothing was measured. */
  find(key: string): string | undefined;
  /** Called for every contraction that is lowered. */
  note(key: string, kernel: LoopKernel, e: Exprs): void;
}

/**
 * Lowers a kernel around a contraction, or returns null: then the loop nest is lowered as it is. `e` is the factory that made the
 * kernel's nodes.
 */
export type ContractionTemplate = (
  kernel: LoopKernel,
  e: Exprs,
  caps: CodegenCaps,
  choices?: TileChoices,
) => Lowered | null;

/** Names of the choices that are not tiles of threads. */
export const byTiles = 'tiles';
export const byLibrary = 'library';

/**
 * A third-party library that may compute products in place of kernels. It is used only where measurement on the device found it faster
 * (tuning/). An engine that has one runs `Program.product` by it where the library takes the product, and the program itself
 * where the library fails.
 */
export interface ProductLibrary {
  /** The name of what computes it, a single word; measurements are kept under it. */
  nameOf(product: Product<Count>): string;
  /** `libraryPrograms`. They come with the library, so that pages without one do not carry them. */
  readonly programs: LibraryPrograms;
  /** Whether it can compute this; false for everything once it has failed. */
  takes(product: Product<Count>): boolean;
  /** Resolves when the first such product can run without further preparation: true if the library can compute it. */
  prepare(product: Product): Promise<boolean>;
  /** Its name, or those of several libraries behind it, each with why it is not used, or null. Opens what was not opened yet. */
  missing?(): Readonly<Record<string, string | null>>;
  /** Calls `told` when the library fails: what was lowered for it should be lowered again. */
  onFailure(told: () => void): void;
}
