/**
 * Code that is loaded by whoever needs it first, and waited for as data of another engine is. After a failed load the next request tries again.
 */
import { UnsupportedError } from '@polygrad/core/engine';

export class LateCode<T> {
  readonly #what: string;
  readonly #remedy: string;
  readonly #import: () => Promise<T>;
  #there: T | null = null;
  #loading: Promise<void> | null = null;

  /** @param what names the code in errors; `remedy` is how to have it from the start */
  constructor(what: string, remedy: string, load: () => Promise<T>) {
    this.#what = what;
    this.#remedy = remedy;
    this.#import = load;
  }

  /**
   * The code.
   *
   * @throws UnsupportedError while it is on its way, with `until`
   */
  get(): T {
    if (this.#there !== null) return this.#there;
    const text = `${this.#what} is still being loaded; read with await, as await t.data() does, or ${this.#remedy}`;
    throw new UnsupportedError('cpu', text, this.load());
  }

  /** Resolves when the code is there. */
  load(): Promise<void> {
    if (this.#there !== null) return Promise.resolve();
    if (this.#loading === null) {
      this.#loading = this.#load();
      // The reader gets the error.
      this.#loading.catch(() => undefined);
    }
    return this.#loading;
  }

  async #load(): Promise<void> {
    try {
      this.#there = await this.#import();
    } catch (error) {
      const text = `${this.#what} cannot be loaded (${error}); read again when the page's server answers, or ${this.#remedy}`;
      throw new UnsupportedError('cpu', text);
    } finally {
      this.#loading = null;
    }
  }

  /** Has the code at once from here on; with null as if nothing had asked for it yet. */
  bring(code: T | null): void {
    this.#there = code;
  }
}
