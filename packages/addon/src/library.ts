/**
 * A third-party library for products of matrices: opened if it is installed, used where it was measured faster than the engine's own
 * kernels (tuning/ of core), and left alone from the moment it fails.
 */
import { type LibraryPrograms, libraryPrograms, type ProductLibrary } from '@polygrad/core/engine';
import type { MatrixProduct } from '@polygrad/core/kernel';
import { CommandBuffer } from './command-buffer.ts';
import { isNativeError } from './native-error.ts';
import { productCommand, productKind } from './product.ts';

/** What a library is to an engine. */
export interface LibraryParts {
  /** Its name in measurements that are kept. */
  readonly name: string;
  /** How the names of its routines begin, which the addon's errors have in `call`. */
  readonly prefix: string;
  /** Opens it; an empty string, or why it could not. */
  open(): string;
  /** True for products it has routines for. */
  has(product: MatrixProduct): boolean;
  /** Resolves when it has made ready what a product like this command needs. */
  prepare(cells: Uint8Array, count: number): Promise<void>;
}

/**
 * The library of one engine.
 *
 * @example
 * const parts = { name: 'mine', prefix: 'mine', open: () => 'there is none', has: () => true, prepare: async () => {} };
 * const library = new AddonLibrary(parts);
 * library.missing; // 'there is none'
 */
export class AddonLibrary implements ProductLibrary {
  readonly name: string;
  readonly programs: LibraryPrograms = libraryPrograms;
  readonly #parts: LibraryParts;
  readonly #told: (() => void)[] = [];
  /** Why it is not used, '' if it is, null before it is opened. */
  #missing: string | null = null;

  constructor(parts: LibraryParts) {
    this.name = parts.name;
    this.#parts = parts;
  }

  /** Why it is not used, or null. */
  get missing(): string | null {
    this.#missing ??= this.#parts.open();
    return this.#missing || null;
  }

  takes(product: MatrixProduct): boolean {
    return this.#parts.has(product) && this.missing === null;
  }

  async prepare(product: MatrixProduct): Promise<boolean> {
    if (!this.takes(product)) return false;
    const encoded = new CommandBuffer();
    encoded.start();
    encoded.other(productKind, productCommand(product, { a: 0, b: 0, c: 0 }, { a: 0, b: 0, c: 0 }));
    try {
      await this.#parts.prepare(encoded.bytes, encoded.count);
      return true;
    } catch (error) {
      if (!isNativeError(error)) throw error;
      this.fail(error.message);
      return false;
    }
  }

  onFailure(told: () => void): void {
    this.#told.push(told);
  }

  /** It is not used from now on. */
  fail(reason: string): void {
    if (this.#missing) return;
    this.#missing = `it failed: ${reason}`;
    for (const tell of this.#told) tell();
  }

  /** True for an error of its routines; from then on kernels do its work. */
  failedBy(error: unknown): boolean {
    if (!isNativeError(error) || !error.call.startsWith(this.#parts.prefix)) return false;
    this.fail(error.message);
    return true;
  }
}
