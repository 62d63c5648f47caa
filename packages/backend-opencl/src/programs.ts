/**
 * From sources to kernels of the driver: several kernels in one program, each once, compiled ones from disk.
 *
 * Threads of the addon compile, and whoever needs a kernel first waits for its program: `whenBuilt` without holding up JavaScript,
 * `handleOf` on the spot. On disk every kernel is found by its own key, whichever others lie in the same program.
 */
import { availableParallelism } from 'node:os';
import { isNativeError } from '@polygrad/addon';
import type { Driver } from './addon.ts';
import { lockFileOf } from './build-locks.ts';
import { cacheKey, type ProgramCache } from './program-cache.ts';
import { combineSources } from './source.ts';

/** A kernel's text and what its name in it is. */
export interface KernelText {
  readonly source: string;
  readonly entry: string;
}

/** A program of the driver, and who uses it. */
interface Module {
  handle: number;
  readonly users: Set<Held>;
  /** What is being compiled; null once that is over. */
  building: readonly Part[] | null;
  /** What the compiler said about the only kernel. */
  refused: BuildError | null;
}

/** A kernel of a program. */
interface Part {
  readonly key: string;
  readonly source: string;
}

/** A kernel's place in a program, to be released with `release`. */
export interface Held {
  readonly key: string;
  /** Name of the kernel in the program. */
  readonly entry: string;
  module: Module;
}

/** The compiler refused a kernel. */
export class BuildError extends Error {
  override readonly name: string = 'BuildError';
  /** The text the compiler saw, and what it said. */
  readonly source: string;
  readonly log: string;

  constructor(source: string, log: string, options: ErrorOptions) {
    super('the compiler of the driver refuses the kernel', options);
    this.source = source;
    this.log = log;
  }
}

/** Kernels compiled together: a program costs something by itself, lives as long as one of them, and several threads want some. */
const together = { least: 4, most: 24 };
/** Threads that compile (native/builder.cc). */
const threads = Math.min(8, availableParallelism());

/** All programs of one engine. */
export class ProgramStore {
  readonly #driver: Driver;
  readonly #cache: ProgramCache | null;
  readonly #options: string;
  /** What decides the binary besides the source. */
  readonly #device: readonly string[];
  /** True where a program runs kernels compiled for it only after it went through its binary. */
  readonly #reload: boolean;
  /** Where files lie that are locked while programs are built, or null. */
  readonly #lockFolder: string | null;
  readonly #modules = new Map<string, Module>();
  readonly #building = new Set<Module>();
  compiled = 0;
  fromDisk = 0;

  constructor(
    driver: Driver,
    cache: ProgramCache | null,
    options: string,
    device: readonly string[],
    reload: boolean,
    lockFolder: string | null = null,
  ) {
    this.#driver = driver;
    this.#cache = cache;
    this.#options = options;
    this.#device = device;
    this.#reload = reload;
    this.#lockFolder = lockFolder;
  }

  /** Programs for these kernels, in their order; what is new begins to be compiled. */
  take(texts: readonly KernelText[]): Held[] {
    const wanted = texts.map(({ source, entry }) => {
      const key = cacheKey([...this.#device, this.#options, source]);
      return { key, entry: `k${key.slice(0, 20)}`, source: renamed(source, entry, `k${key.slice(0, 20)}`) };
    });
    const fresh = new Map<string, Part>();
    for (const part of wanted) if (!this.#modules.has(part.key)) fresh.set(part.key, part);
    this.#fromDisk(fresh);
    const rest = [...fresh.values()];
    const share = Math.min(together.most, Math.max(together.least, Math.ceil(rest.length / threads)));
    for (let at = 0; at < rest.length; at += share) this.#start(rest.slice(at, at + share));
    return wanted.map(({ key, entry }) => {
      const module = this.#modules.get(key)!;
      const held = { key, entry, module };
      module.users.add(held);
      return held;
    });
  }

  release(held: Held): void {
    const { module } = held;
    module.users.delete(held);
    if (module.users.size > 0) return;
    for (const [key, known] of this.#modules) if (known === module) this.#modules.delete(key);
    this.#building.delete(module);
    this.#driver.releaseProgram(module.handle);
  }

  /** The driver's number of a kernel's program; waits until it is compiled. Throws BuildError. */
  handleOf(held: Held): number {
    // Kernels that were refused together are compiled once more, alone.
    while (held.module.building !== null) this.#finish(held.module);
    const { refused, handle } = held.module;
    if (refused !== null) throw refused;
    return handle;
  }

  /** Resolves when no compiling is in progress, or not of these; errors go to the kernels' users. */
  async whenBuilt(wanted?: readonly Held[]): Promise<void> {
    const next = (): Module | undefined => {
      if (wanted === undefined) return this.#building.values().next().value;
      return wanted.find(({ module }) => this.#building.has(module))?.module;
    };
    for (let module = next(); module !== undefined; module = next()) {
      await this.#driver.built(module.handle);
      try {
        if (this.#building.has(module)) this.#finish(module);
      } catch (error) {
        if (isNativeError(error)) return;
        throw error;
      }
    }
  }

  /** Takes what the disk has out of `fresh`. */
  #fromDisk(fresh: Map<string, Part>): void {
    const cache = this.#cache;
    if (cache === null) return;
    const loaded = new Map<string, Module>();
    for (const key of [...fresh.keys()]) {
      const found = cache.read(key);
      if (found === null) continue;
      let module = loaded.get(found.id);
      if (module === undefined) {
        try {
          const handle = this.#driver.load(found.binary, this.#options, this.#lockOf(found.keys));
          module = { handle, users: new Set(), building: null, refused: null };
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

  #start(parts: readonly Part[]): Module {
    const module: Module = { handle: this.#build(parts), users: new Set(), building: parts, refused: null };
    for (const { key } of parts) this.#modules.set(key, module);
    this.#building.add(module);
    this.compiled += parts.length;
    return module;
  }

  /** The file to lock while the program of these kernels is built, '' for none. */
  #lockOf(keys: readonly string[]): string {
    return this.#lockFolder === null ? '' : lockFileOf(this.#lockFolder, keys);
  }

  #build(parts: readonly Part[]): number {
    const source = combineSources(parts.map((p) => p.source));
    return this.#driver.build(source, this.#options, this.#reload, this.#lockOf(parts.map(({ key }) => key)));
  }

  /** Waits for a module that is being compiled, and keeps it on disk. */
  #finish(module: Module): void {
    const parts = module.building!;
    try {
      this.#driver.finish(module.handle);
      module.building = null;
      this.#building.delete(module);
    } catch (error) {
      if (!isNativeError(error)) throw error;
      if (error.call !== 'clBuildProgram') {
        // Want of memory, say: the next attempt begins anew.
        this.#driver.releaseProgram(module.handle);
        module.handle = this.#build(parts);
        throw error;
      }
      module.building = null;
      this.#building.delete(module);
      const [only] = parts;
      if (parts.length > 1) this.#separate(module, parts);
      else module.refused = new BuildError(only!.source, error.log || error.message, { cause: error });
      return;
    }
    this.#keep(module.handle, parts);
  }

  /** One of several kernels is to blame: alone it says so. */
  #separate(module: Module, parts: readonly Part[]): void {
    this.compiled -= parts.length;
    for (const part of parts) {
      const users = [...module.users].filter(({ key }) => key === part.key);
      if (users.length === 0) {
        this.#modules.delete(part.key);
        continue;
      }
      const own = this.#start([part]);
      for (const held of users) {
        held.module = own;
        own.users.add(held);
      }
    }
    module.users.clear();
    this.#driver.releaseProgram(module.handle);
  }

  #keep(handle: number, parts: readonly Part[]): void {
    const cache = this.#cache;
    if (cache === null || cache.refused !== null) return;
    try {
      const keys = parts.map(({ key }) => key);
      cache.write(keys, this.#driver.binary(handle));
    } catch (error) {
      // Not every driver gives its programs away.
      if (!isNativeError(error)) throw error;
    }
  }
}

function renamed(source: string, from: string, to: string): string {
  return source.replace(new RegExp(`\\b${from}\\b`, 'g'), to);
}
