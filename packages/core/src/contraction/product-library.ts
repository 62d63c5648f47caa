/** What the library knows about programs of others that compute products of matrices on an engine's device (BLAS). */
import type { MatrixProduct } from '../ir/product.ts';
import type { LibraryPrograms } from './library.ts';

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
