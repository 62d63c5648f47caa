/**
 * CLBlast, a library of others for products of matrices: opened where it is installed, used where it was measured faster than the
 * engine's own kernels (tuning/ of core), and left alone from the moment it fails.
 */
import { type LibraryPrograms, libraryPrograms, type ProductLibrary } from '@polygrad/core/engine';
import type { MatrixProduct } from '@polygrad/core/kernel';
import { CommandBuffer, isNativeError } from '@polygrad/addon';
import type { Addon, Driver } from './addon.ts';
import { productCommand, productKind } from './product.ts';

/** The environment variable that names the library to open instead of the installed one. */
export const clblastVariable = 'POLYGRAD_CLBLAST_LIBRARY';

export class Clblast implements ProductLibrary {
  readonly name = 'clblast';
  readonly programs: LibraryPrograms = libraryPrograms;
  readonly #driver: Driver;
  readonly #open: () => string;
  readonly #doubles: boolean;
  readonly #lock: string;
  readonly #told: (() => void)[] = [];
  /** Why it is not used, '' where it is, null before it is opened. */
  #missing: string | null = null;

  /** `open` opens it and says why it could not; `doubles`: the device has float64; `lock`: a file to lock while it compiles, or ''. */
  constructor(driver: Driver, open: () => string, doubles: boolean, lock = '') {
    this.#driver = driver;
    this.#open = open;
    this.#doubles = doubles;
    this.#lock = lock;
  }

  /** Why it is not used, or null. */
  get missing(): string | null {
    this.#missing ??= this.#open();
    return this.#missing || null;
  }

  takes({ dtype }: MatrixProduct): boolean {
    return (dtype === 'float32' || (dtype === 'float64' && this.#doubles)) && this.missing === null;
  }

  async prepare(product: MatrixProduct): Promise<boolean> {
    if (!this.takes(product)) return false;
    const encoded = new CommandBuffer();
    encoded.start();
    encoded.other(productKind, productCommand(product, { a: 0, b: 0, c: 0 }, { a: 0, b: 0, c: 0 }));
    try {
      await this.#driver.prepareProduct(encoded.bytes, encoded.count, this.#lock);
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
}

/** How to open CLBlast beside the OpenCL library that was opened: it goes to the system's loader by itself. */
export function clblastOf(addon: Addon, libraryPath: string): () => string {
  if (libraryPath !== '') return () => `it would open another OpenCL library than ${libraryPath}`;
  return () => addon.openClblast(process.env[clblastVariable] ?? '');
}
