/** Code of engines that is still to be loaded, and what stands in the place of a lowering until then: plans that were brought along need none. */
import type { Lowering } from '../engine/engine.ts';
import { UnsupportedError } from '../engine/errors.ts';
import { KernelCache } from '../planner/lowering/kernel-cache.ts';

/**
 * The lowering of an engine that may still have to load it. `get` gives it, or throws an UnsupportedError that says when to try again (`until`). Assign the
 * lowering to this one when it is there: not every part of it can be asked for.
 *
 * @example
 * import { laterLowering } from '@polygrad/core/engine/planned';
 * import { vectorLowering } from '@polygrad/core/engine/vectors';
 * const lowering = laterLowering(() => vectorLowering);
 * console.log(lowering.sizes, lowering.copies); //=> true undefined
 * Object.assign(lowering, vectorLowering);
 * console.log(typeof lowering.copies); //=> function
 */
export function laterLowering(get: () => Lowering): Lowering {
  return {
    sizes: true,
    planner: {
      makePlan: (...args) => get().planner.makePlan(...args),
      kernelsOf: (engine) => new KernelCache(engine),
    },
    legalize: (program, caps) => get().legalize?.(program, caps) ?? program,
    shape: (...args) => get().shape(...args),
    contraction: (...args) => get().contraction(...args),
  };
}

/**
 * Code that is loaded by whoever needs it first, and waited for as data of another engine is. After a failed load the next request tries again.
 *
 * @example
 * import { LateCode } from '@polygrad/core/engine/planned';
 * const answer = new LateCode<number>('mine', 'the answer', 'load() it before', async () => 42);
 * await answer.load();
 * console.log(answer.get()); //=> 42
 */
export class LateCode<T> {
  readonly #engine: string;
  readonly #what: string;
  readonly #remedy: string;
  readonly #import: () => Promise<T>;
  #there: T | null = null;
  #loading: Promise<void> | null = null;

  /** @param engine its name in errors, where `what` names the code; `remedy` is how to have it from the start */
  constructor(engine: string, what: string, remedy: string, load: () => Promise<T>) {
    this.#engine = engine;
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
    throw new UnsupportedError(this.#engine, text, this.load());
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
      throw new UnsupportedError(this.#engine, text);
    } finally {
      this.#loading = null;
    }
  }

  /** Has the code at once from here on; with null as if nothing had asked for it yet. */
  bring(code: T | null): void {
    this.#there = code;
  }
}
