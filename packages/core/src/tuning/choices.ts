/**
 * The tiles known for an engine, and the contractions and programs it was asked for: what kernels are lowered by.
 */
import type { EngineCaps, IEngine } from '../engine/engine.ts';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { LoopKernel } from '@polygrad/compiler/ir/ir';
import type { ProductLibrary, TileChoices } from '@polygrad/compiler/contraction/template';
import { tilesVersion } from '@polygrad/compiler/contraction/simt/problem';
import { isChoice } from '@polygrad/compiler/contraction/choice';
import type { Way } from '@polygrad/compiler/codegen/lowering';
import { isTileName } from '@polygrad/compiler/programs/attention/threads/tiles';
import type { ProgramChoices } from '@polygrad/compiler/programs/choices';

/** A contraction that has been lowered, one for each class. */
export interface SeenNest {
  readonly kernel: LoopKernel;
  readonly e: Exprs;
}

/** What has been lowered: a contraction, or a program by its forms, the guess first. */
export type Seen = SeenNest | { readonly ways: readonly Way[] };

/** Classes kept at most. */
const mostClasses = 256;

export class Choices implements TileChoices, ProgramChoices {
  readonly #tiles = new Map<string, string>();
  readonly #seen = new Map<string, Seen>();
  /** Classes that are not to be measured. */
  readonly #left = new Set<string>();
  readonly library: ProductLibrary | null;
  /** Called with a class that was not measured yet. */
  onNew: ((key: string) => void) | null = null;

  constructor(library: ProductLibrary | null = null) {
    this.library = library;
  }

  find(key: string): string | undefined {
    return this.#tiles.get(key);
  }

  note(key: string, kernel: LoopKernel, e: Exprs): void {
    this.#see(key, { kernel, e });
  }

  ask(key: string, ways: readonly Way[]): void {
    this.#see(key, { ways });
  }

  #see(key: string, seen: Seen): void {
    if (this.#tiles.has(key) || this.#seen.has(key) || this.#left.has(key) || this.#seen.size >= mostClasses) return;
    this.#seen.set(key, seen);
    this.onNew?.(key);
  }

  /** Classes that were lowered without a measured tile. */
  wanted(): ReadonlyMap<string, Seen> {
    return this.#seen;
  }

  set(key: string, tile: string): void {
    this.#tiles.set(key, tile);
    this.#seen.delete(key);
  }

  /** A class that is not to be measured. */
  leave(key: string): void {
    this.#left.add(key);
    this.#seen.delete(key);
  }

  /** Forgets what was measured. */
  clear(): void {
    this.#tiles.clear();
    this.#seen.clear();
  }

  /** All tiles as text. */
  write(): string {
    return JSON.stringify({ version: tilesVersion, tiles: Object.fromEntries(this.#tiles) });
  }

  /** Takes in tiles from a text, except those of classes measured since; what is damaged or of another version is left out. */
  read(text: string): number {
    let found: unknown;
    try {
      found = JSON.parse(text);
    } catch {
      return 0;
    }
    const { version, tiles } = (typeof found === 'object' && found !== null ? found : {}) as {
      version?: unknown;
      tiles?: unknown;
    };
    if (version !== tilesVersion || typeof tiles !== 'object' || tiles === null) return 0;
    let count = 0;
    for (const [key, name] of Object.entries(tiles)) {
      if (typeof name !== 'string' || !(isChoice(name) || isTileName(name)) || this.#tiles.has(key)) continue;
      this.set(key, name);
      count++;
    }
    return count;
  }
}

const known = new WeakMap<IEngine, Choices>();

/** The tiles of an engine. */
export function choicesOf(engine: IEngine): Choices {
  let choices = known.get(engine);
  if (choices === undefined) known.set(engine, (choices = new Choices(engine.library ?? null)));
  return choices;
}

/** What a store keeps an engine's tiles under: the device, what it can do, and the version of the tiles. */
export function storeKey({ name, device, caps }: { name: string; device: string; caps: EngineCaps }): string {
  const limits = [caps.vectorBytes, caps.sharedBytes, caps.maxGroup, Number(caps.sharedIsMemory ?? false)].join('-');
  return `tiles-${tilesVersion} ${name} ${device} ${limits}`;
}
