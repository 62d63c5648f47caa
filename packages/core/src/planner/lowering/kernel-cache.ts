/**
 * Compiled kernels shared by plans: plans that differ a little, such as the first and second step of a training, have
 * most kernels in common, and lowering a kernel is most of what a new plan costs.
 *
 * Kernels are known by the integers of their loop nest. An entry lives as long as some plan holds it.
 */
import type { CompiledKernel, IEngine } from '../../engine/engine.ts';
import type { Lowered, LoweredDispatch } from '../../codegen/lowering.ts';
import { legalPrograms, lowerPlain } from '../../codegen/plain.ts';
import type { LoweredKernel } from './lower.ts';
import { nestKey } from './nest-key.ts';

/** A kernel lowered for an engine: its dispatches, and after `compile` what runs them. */
export interface KernelEntry {
  readonly key: string;
  /** Its programs, until they are compiled: they are large, and the engine keeps what it needs of them. */
  lowered: Lowered | null;
  /** What each dispatch binds. */
  readonly bindings: readonly LoweredDispatch['bindings'][];
  readonly temps: readonly number[];
  compiled: readonly CompiledKernel[];
  /** Plans that hold it. */
  uses: number;
}

export class KernelCache {
  readonly #engine: IEngine;
  readonly #known = new Map<string, KernelEntry>();

  constructor(engine: IEngine) {
    this.#engine = engine;
  }

  /** Kernels that are known. */
  get size(): number {
    return this.#known.size;
  }

  /** The entry of a loop nest; lowered but not compiled if it is new. */
  find({ loop, isContraction, e }: LoweredKernel): KernelEntry {
    return this.findOr(nestKey(loop, isContraction ? 'contraction' : 'loops'), () => {
      const { caps } = this.#engine;
      return (isContraction ? caps.lowering.contraction(loop, e, this.#engine) : null) ?? lowerPlain(loop, caps);
    });
  }

  /** The entry of a key, or a new one of the programs that `lower` makes. */
  findOr(key: string, lower: () => Lowered): KernelEntry {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const lowered = lower();
    const bindings = lowered.dispatches.map((dispatch) => dispatch.bindings);
    const entry: KernelEntry = { key, lowered, bindings, temps: lowered.temps, compiled: [], uses: 0 };
    this.#known.set(key, entry);
    return entry;
  }

  /** Compiles what is new, at once, and counts one use of each entry. */
  take(entries: readonly KernelEntry[]): void {
    const fresh = [...new Set(entries)].filter((entry) => entry.uses === 0);
    const { caps } = this.#engine;
    const programs = fresh.flatMap((entry) => legalPrograms(entry.lowered!, caps));
    const compiled = this.#engine.compile(programs);
    let at = 0;
    for (const entry of fresh) {
      entry.compiled = compiled.slice(at, (at += entry.bindings.length));
      entry.lowered = null;
    }
    for (const entry of entries) entry.uses++;
  }

  /** One plan less holds the entries; those that no plan holds are released by the engine. */
  drop(entries: readonly KernelEntry[]): void {
    for (const entry of entries) {
      if (--entry.uses > 0) continue;
      this.#known.delete(entry.key);
      this.#engine.release(entry.compiled);
    }
  }
}
