/**
 * From sources to kernels of the driver: many kernels in one program, each program once, compiled ones from disk.
 *
 * A compiler run costs about as much for one kernel as for twenty, so what is not known is compiled together. On disk every
 * kernel is found by its own key, whichever others lie in the same program.
 */
import type { Driver } from './addon.ts';
import { isNativeError } from './errors.ts';
import { cacheKey, type ProgramCache } from './program-cache.ts';
import { combineSources } from './source.ts';

/** A kernel's text and what its name in it is. */
export interface KernelSource {
  readonly source: string;
  readonly entry: string;
}

/** A program of the driver and how many kernels use it. */
interface Module {
  readonly handle: number;
  users: number;
}

/** A kernel's program, to be given back with `release`. */
export interface Held {
  readonly key: string;
  readonly module: Module;
  /** Name of the kernel in the program. */
  readonly entry: string;
}

/** The compiler refused one kernel. */
export class BuildError extends Error {
  override readonly name: string = 'BuildError';
  /** Which of the sources. */
  readonly index: number;
  /** The text the compiler saw, and what it said. */
  readonly source: string;
  readonly log: string;

  constructor(index: number, source: string, log: string, options: ErrorOptions) {
    super('the compiler of the driver refuses the kernel', options);
    this.index = index;
    this.source = source;
    this.log = log;
  }
}

/** Most kernels compiled together: a program lives as long as one of them. */
const mostTogether = 24;

/** All programs of one engine. */
export class ProgramStore {
  readonly #driver: Driver;
  readonly #cache: ProgramCache | null;
  readonly #options: string;
  /** What decides the binary besides the source. */
  readonly #device: readonly string[];
  /** True where a program runs kernels compiled for it only after it went through its binary. */
  readonly #reload: boolean;
  readonly #modules = new Map<string, Module>();
  compiled = 0;
  fromDisk = 0;

  constructor(driver: Driver, cache: ProgramCache | null, options: string, device: readonly string[], reload: boolean) {
    this.#driver = driver;
    this.#cache = cache;
    this.#options = options;
    this.#device = device;
    this.#reload = reload;
  }

  /** Programs for these kernels, in their order; throws BuildError. */
  take(sources: readonly KernelSource[]): Held[] {
    const wanted = sources.map(({ source, entry }) => {
      const key = cacheKey([...this.#device, this.#options, source]);
      return { key, entry: `k${key.slice(0, 20)}`, source: renamed(source, entry, `k${key.slice(0, 20)}`) };
    });
    const fresh = new Map<string, number>();
    wanted.forEach(({ key }, i) => {
      if (!this.#modules.has(key) && !fresh.has(key)) fresh.set(key, i);
    });
    this.#fromDisk(fresh);
    const rest = [...fresh.values()];
    for (let at = 0; at < rest.length; at += mostTogether)
      this.#build(rest.slice(at, at + mostTogether).map((index) => ({ index, ...wanted[index]! })));
    return wanted.map(({ key, entry }) => {
      const module = this.#modules.get(key)!;
      module.users++;
      return { key, module, entry };
    });
  }

  release({ module }: Held): void {
    if (--module.users > 0) return;
    for (const [key, known] of this.#modules) if (known === module) this.#modules.delete(key);
    this.#driver.releaseProgram(module.handle);
  }

  /** Takes what the disk has out of `fresh`. */
  #fromDisk(fresh: Map<string, number>): void {
    const cache = this.#cache;
    if (cache === null) return;
    const loaded = new Map<string, Module>();
    for (const key of [...fresh.keys()]) {
      const found = cache.read(key);
      if (found === null) continue;
      let module = loaded.get(found.id);
      if (module === undefined) {
        try {
          module = { handle: this.#driver.load(found.binary, this.#options), users: 0 };
        } catch (error) {
          if (!isNativeError(error)) throw error;
          cache.remove(key);
          continue;
        }
        loaded.set(found.id, module);
      }
      this.#modules.set(key, module);
      fresh.delete(key);
      this.fromDisk++;
    }
  }

  #build(kernels: readonly { index: number; key: string; source: string }[]): void {
    let handle: number;
    const source = combineSources(kernels.map((k) => k.source));
    try {
      handle = this.#driver.build(source, this.#options);
    } catch (error) {
      if (!isNativeError(error) || error.call !== 'clBuildProgram') throw error;
      const [first] = kernels;
      if (kernels.length === 1 && first !== undefined)
        throw new BuildError(first.index, source, error.log || error.message, { cause: error });
      // One of them is to blame: alone it says so.
      for (const kernel of kernels) this.#build([kernel]);
      return;
    }
    this.compiled += kernels.length;
    const keys = kernels.map((k) => k.key);
    const module = { handle: this.#keep(handle, keys), users: 0 };
    for (const key of keys) this.#modules.set(key, module);
  }

  /** Writes a new program to disk; gives the program to use from now on. */
  #keep(handle: number, keys: readonly string[]): number {
    if (this.#cache === null || this.#cache.refused !== null) return handle;
    try {
      const binary = this.#driver.binary(handle);
      this.#cache.write(keys, binary);
      if (!this.#reload || binary.length === 0) return handle;
      const again = this.#driver.load(binary, this.#options);
      this.#driver.releaseProgram(handle);
      return again;
    } catch (error) {
      if (!isNativeError(error)) throw error;
      return handle;
    }
  }
}

function renamed(source: string, from: string, to: string): string {
  return source.replace(new RegExp(`\\b${from}\\b`, 'g'), to);
}
