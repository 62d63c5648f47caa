/**
 * Compiled kernels shared by plans. Similar plans, such as those of the first and second step of a training, have
 * most kernels in common. Most of the cost of a new plan is lowering.
 *
 * What lowers kernels comes with their keys (nests.ts), so that plans which bring their code need no compiler. An entry lives as long as a plan uses it.
 */
import type { Lowered, LoweredDispatch } from '@polygrad/compiler/codegen/lowering';
import { legalPrograms } from '@polygrad/compiler/ir/target';
import type { CompiledKernel, IEngine } from '../../engine/engine.ts';

/** A kernel lowered for an engine: its dispatches and, after `compile`, the compiled kernels. */
export interface KernelEntry {
  readonly key: string;
  /** Its programs, until they are compiled. They are large, and the engine keeps what it needs of them. */
  lowered: Lowered | null;
  /** What each dispatch binds. */
  readonly bindings: readonly LoweredDispatch['bindings'][];
  readonly temps: readonly number[];
  compiled: readonly CompiledKernel[];
  /** How many plans use it. */
  uses: number;
}

export class KernelCache {
  readonly #engine: IEngine;
  readonly #known = new Map<string, KernelEntry>();

  constructor(engine: IEngine) {
    this.#engine = engine;
  }

  /** Uses of all kernels together: plans hold more for each than a small kernel has code. */
  held = 0;

  /** Number of kernels in the cache. */
  get size(): number {
    return this.#known.size;
  }

  /** The entry of a key; a new one gets the programs that `lower` makes. */
  findOr(key: string, lower: () => Lowered): KernelEntry {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const lowered = lower();
    const bindings = lowered.dispatches.map((dispatch) => dispatch.bindings);
    const entry: KernelEntry = { key, lowered, bindings, temps: lowered.temps, compiled: [], uses: 0 };
    this.#known.set(key, entry);
    return entry;
  }

  /** Compiles all new entries at once, and counts one use of each. */
  take(entries: readonly KernelEntry[]): void {
    if (!entries.every(({ uses }) => uses > 0)) this.#compile(entries);
    for (const entry of entries) entry.uses++;
    this.held += entries.length;
  }

  #compile(entries: readonly KernelEntry[]): void {
    const fresh = [...new Set(entries)].filter((entry) => entry.uses === 0);
    const { caps } = this.#engine;
    const programs = fresh.flatMap((entry) => legalPrograms(entry.lowered!.dispatches, caps));
    let compiled: readonly CompiledKernel[];
    try {
      compiled = this.#engine.compile(programs);
    } catch (error) {
      // No plan uses them, so nothing would ever drop them.
      for (const { key } of fresh) this.#known.delete(key);
      throw error;
    }
    let at = 0;
    for (const entry of fresh) {
      entry.compiled = compiled.slice(at, (at += entry.bindings.length));
      entry.lowered = null;
    }
  }

  /** A plan is gone: entries that no other plan uses are released by the engine. */
  drop(entries: readonly KernelEntry[]): void {
    for (const entry of entries) {
      if (entry.uses > 0) this.held--;
      if (--entry.uses > 0) continue;
      this.#known.delete(entry.key);
      this.#engine.release(entry.compiled);
    }
  }
}
