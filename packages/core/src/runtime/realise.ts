/**
 * One attempt to compute nodes: on the current engine, on several engines, or on the CPU engine where the current one is full.
 *
 * Work that needs one engine only ends here, and so does what a lost device needs first: another engine, and copies of what was protected.
 * All else is the business of multi-engine.ts. It is loaded before a second engine is set, and with an engine that needs the CPU engine
 * beside it where that is there at once, so that reading at once stays possible; where nothing is there at once anyway, by the first
 * flush that needs it, which waits for it as it waits for data.
 */
import { OutOfMemoryError } from '../engine/errors.ts';
import { recover, recoveryPolicy } from '../engine/recovery.ts';
import { beforeOthers, cpuEngine, getEngine } from '../engine/registry.ts';
import type { Node } from '../graph/node.ts';
import type { Transaction } from '../graph/transactions.ts';
import { stateOf } from './engine-state.ts';
import { type Patience, run } from './run.ts';
import { restoreLost } from './shadow.ts';

/**
 * What an attempt is for: `everything` that is pending, by a flush, or a part. Only a reader is `told` of nodes that cannot be computed;
 * otherwise they are left as they are, so that other work goes on.
 */
export interface Attempt {
  readonly everything?: boolean;
  readonly told?: boolean;
  /** What it waits for rather than going on at once, beside data. */
  readonly patience: Patience;
  /** Assignments whose old values nothing may overwrite before all of it is submitted. */
  readonly transaction: Transaction;
}

let multiEngine: typeof import('./multi-engine.ts') | null = null;
const load = async (): Promise<void> => {
  multiEngine = await import('./multi-engine.ts');
};
beforeOthers(load);

/** Those that are not in memory by now. */
export function open(nodes: readonly Node[]): readonly Node[] {
  return nodes.filter((node) => node.storage === null);
}

/**
 * Realises nodes on the engines that hold them, as far as that is possible now.
 *
 * @returns null if all is done; otherwise what to wait for before trying again. Data that is missing is under way.
 */
export function realise(nodes: readonly Node[], attempt: Attempt): Promise<void> | null {
  let wanted = nodes;
  // One engine first, then several. What does not fit the current one goes to the CPU engine.
  let engines: 'one' | 'several' | 'cpu' = 'one';
  while (wanted.length > 0) {
    const current = stateOf(getEngine());
    const { engine, pool } = current;
    if (pool.lost !== null) {
      const underway = recover();
      if (underway !== null) return underway;
      restoreLost();
      wanted = open(wanted);
      engines = 'one';
      continue;
    }
    const several = multiEngine;
    if (engines !== 'one') {
      if (several === null) return quiet(load());
      // What came back from a copy need not be computed.
      const restored = restoreLost();
      wanted = open(wanted);
      if (restored) {
        engines = 'one';
        continue;
      }
    }
    try {
      const done =
        engines === 'one' || several === null
          ? run(current, wanted, attempt.everything ? current.global : current.partial, attempt.patience)
          : several.realiseApart(wanted, current, engines === 'cpu', attempt);
      if (done !== false) return done === true ? null : done;
      engines = 'several';
    } catch (error) {
      if (pool.lost !== null) continue;
      const full = error instanceof OutOfMemoryError && recoveryPolicy().outOfMemory === 'cpu' && engines !== 'cpu';
      if (!full || (multiEngine === null ? engine.name === 'cpu' : cpuEngine() === engine)) throw error;
      engines = 'cpu';
    }
  }
  return null;
}

/** True for the promise of the current engine to say whether it has the memory that was asked for. */
export function isWord(promise: Promise<void>): boolean {
  return promise === getEngine().confirming?.();
}

/** Resolves when all transfers between engines that are under way now have arrived or failed. */
export async function arrivals(): Promise<void> {
  await multiEngine?.landed();
}

/** A promise that may fail without anybody listening. */
export function quiet(promise: Promise<unknown>): Promise<void> {
  const result = promise.then(() => undefined);
  result.catch(() => undefined);
  return result;
}
