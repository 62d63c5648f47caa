/**
 * Third-party libraries for products of matrices and convolutions: each is opened if it is installed, and used where it was measured faster than
 * the engine's own kernels (tuning/ of core). It is left alone from the moment it fails.
 */
import { type LibraryPrograms, libraryPrograms, type ProductLibrary } from '@polygrad/core/engine';
import type { Count, Product } from '@polygrad/core/kernel';
import { CommandBuffer } from './command-buffer.ts';
import { isNativeError } from './native-error.ts';
import { productCommand } from './product.ts';

/** What a library is to an engine. */
export interface LibraryParts {
  /** Its name in measurements that are kept. */
  readonly name: string;
  /** How the names of its routines begin, which the addon's errors have in `call`. */
  readonly prefix: string;
  /** Opens it; an empty string, or why it could not. */
  open(): string;
  /** True for products it has routines for. */
  has(product: Product<Count>): boolean;
  /** Resolves when it has made ready what a product like this command needs. */
  prepare(cells: Uint8Array, count: number): Promise<void>;
  /** True for codes of errors that refuse one product, which kernels then compute, and say nothing about others. Default: there are none. */
  refuses?(code: number): boolean;
}

/** What an engine with an addon computes products by: one library, or several. */
export interface ProductLibraries extends ProductLibrary {
  missing(): Readonly<Record<string, string | null>>;
  /** True for an error of a library's routines at this product; from then on kernels do its work, or compute this product. */
  failedBy(error: unknown, product: Product | null): boolean;
}

/** A library that refuses more products than this is not asked again. */
const mostRefused = 256;

/**
 * The library of one engine.
 *
 * @example
 * const parts = { name: 'mine', prefix: 'mine', open: () => 'there is none', has: () => true, prepare: async () => {} };
 * const library = new AddonLibrary(parts);
 * library.reason; // 'there is none'
 */
export class AddonLibrary implements ProductLibraries {
  readonly #name: string;
  readonly programs: LibraryPrograms = libraryPrograms;
  readonly #parts: LibraryParts;
  readonly #told: (() => void)[] = [];
  /** Products that it has refused, as text. */
  readonly #refused = new Set<string>();
  /** Why it is not used, '' if it is, null before it is opened. */
  #missing: string | null = null;

  constructor(parts: LibraryParts) {
    this.#name = parts.name;
    this.#parts = parts;
  }

  /** Why it is not used, or null. */
  get reason(): string | null {
    this.#missing ??= this.#parts.open();
    return this.#missing || null;
  }

  missing(): Readonly<Record<string, string | null>> {
    return { [this.#name]: this.reason };
  }

  nameOf(): string {
    return this.#name;
  }

  takes(product: Product<Count>): boolean {
    if (!this.#parts.has(product) || this.reason !== null) return false;
    return this.#refused.size === 0 || !this.#refused.has(JSON.stringify(product));
  }

  async prepare(product: Product): Promise<boolean> {
    if (!this.takes(product)) return false;
    const encoded = new CommandBuffer();
    encoded.start();
    const { kind, cells } = productCommand(product, { a: 0, b: 0, c: 0 }, { a: 0, b: 0, c: 0 });
    encoded.other(kind, cells);
    try {
      await this.#parts.prepare(encoded.bytes, encoded.count);
      return true;
    } catch (error) {
      if (!isNativeError(error)) throw error;
      if (this.#parts.refuses?.(error.code) !== true) this.fail(error.message);
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

  failedBy(error: unknown, product: Product | null): boolean {
    if (!isNativeError(error) || !error.call.startsWith(this.#parts.prefix)) return false;
    const isOne = product !== null && this.#parts.refuses?.(error.code) === true && this.#refused.size < mostRefused;
    if (isOne) this.#refused.add(JSON.stringify(product));
    else this.fail(error.message);
    return true;
  }
}

/**
 * Several libraries as one: the first that takes a product computes it.
 *
 * @example
 * const parts = { prefix: 'mine', open: () => '', prepare: async () => {} };
 * const first = new AddonLibrary({ ...parts, name: 'first', has: ({ kind }) => kind === 'matrices' });
 * const second = new AddonLibrary({ ...parts, name: 'second', has: ({ dtype }) => dtype === 'float32' });
 * new SeveralLibraries([first, second]).programs === first.programs; // true
 */
export class SeveralLibraries implements ProductLibraries {
  readonly programs: LibraryPrograms = libraryPrograms;
  readonly #all: readonly AddonLibrary[];

  constructor(all: readonly AddonLibrary[]) {
    this.#all = all;
  }

  #of(product: Product<Count>): AddonLibrary | undefined {
    return this.#all.find((library) => library.takes(product));
  }

  nameOf(product: Product<Count>): string {
    return this.#of(product)?.nameOf() ?? '';
  }

  takes(product: Product<Count>): boolean {
    return this.#of(product) !== undefined;
  }

  missing(): Readonly<Record<string, string | null>> {
    return Object.assign({}, ...this.#all.map((library) => library.missing()));
  }

  async prepare(product: Product): Promise<boolean> {
    return (await this.#of(product)?.prepare(product)) ?? false;
  }

  onFailure(told: () => void): void {
    for (const library of this.#all) library.onFailure(told);
  }

  failedBy(error: unknown, product: Product | null): boolean {
    return this.#all.some((library) => library.failedBy(error, product));
  }
}
