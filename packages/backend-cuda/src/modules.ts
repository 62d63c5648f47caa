/** From PTX to modules of the driver: each text is compiled once, on threads of the addon, and kept as long as a kernel needs it. */
import { isNativeError, type NativeError } from '@polygrad/addon';
import type { Driver } from './addon.ts';
import { refusals } from './errors.ts';

/** A module of the driver, and how many kernels use it. */
export interface Held {
  readonly text: string;
  handle: number;
  users: number;
  /** True while it is being compiled, as far as is known. */
  building: boolean;
  /** The compiler's message, if it refuses the text. */
  refused: NativeError | null;
}

export class Modules {
  readonly #driver: Driver;
  readonly #held = new Map<string, Held>();
  readonly #building = new Set<Held>();
  /** Texts compiled, and texts that were there already. */
  compiled = 0;
  reused = 0;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** The module of a text; a new one begins to be compiled. To be released with `release`. */
  take(text: string): Held {
    let held = this.#held.get(text);
    if (held === undefined) {
      held = { text, handle: this.#driver.build(text), users: 0, building: true, refused: null };
      this.#held.set(text, held);
      this.#building.add(held);
      this.compiled++;
    } else this.reused++;
    held.users++;
    return held;
  }

  release(held: Held): void {
    held.users--;
    if (held.users > 0) return;
    this.#held.delete(held.text);
    this.#building.delete(held);
    this.#driver.releaseModule(held.handle);
  }

  /** The driver's number of a module; waits until it is compiled. Throws what the compiler says. */
  handleOf(held: Held): number {
    if (held.building) this.#finish(held);
    if (held.refused !== null) throw held.refused;
    return held.handle;
  }

  /** Resolves when nothing is being compiled any more, or not these. */
  async whenBuilt(wanted?: readonly Held[]): Promise<void> {
    for (const held of wanted ?? [...this.#building]) {
      if (!this.#building.has(held)) continue;
      try {
        await this.#driver.built(held.handle);
        if (this.#building.has(held)) this.#finish(held);
      } catch (error) {
        // The kernel's user gets the error.
        if (!isNativeError(error)) throw error;
      }
    }
  }

  #finish(held: Held): void {
    try {
      this.#driver.finish(held.handle);
    } catch (error) {
      if (!isNativeError(error)) throw error;
      if (!refusals.has(error.code)) {
        // Want of memory, say: the next attempt begins anew.
        this.#driver.releaseModule(held.handle);
        held.handle = this.#driver.build(held.text);
        throw error;
      }
      held.refused = error;
    }
    held.building = false;
    this.#building.delete(held);
  }
}
