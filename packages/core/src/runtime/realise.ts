/**
 * Which engine computes what: dtypes that the current engine does not hold live on the CPU engine.
 *
 * Flushes that need one engine only end here, and so does what a lost device needs first: another engine, and copies of what was protected.
 * All else is the business of multi-engine.ts. It is loaded before a second engine is set, and with an engine that needs the CPU engine
 * beside it where that is there at once, so that reading at once stays possible; where nothing is there at once anyway, by the first
 * flush that needs it, which waits for it as it waits for data.
 */
import { OutOfMemoryError } from '../engine/errors.ts';
import { recover, recoveryPolicy } from '../engine/recovery.ts';
import { beforeOthers, getEngine } from '../engine/registry.ts';
import type { Node } from '../graph/node.ts';
import { stateOf } from './engine-state.ts';
import { type Patience, run } from './run.ts';
import { restoreLost } from './shadow.ts';

/**
 * How nodes are realised. 'global': by a flush of everything. 'partial': because somebody reads. 'resumed': what a flush left behind.
 * Only a reader is told of nodes that cannot be computed; the others leave them as they are, so that other work goes on.
 */
export type Advance = 'global' | 'partial' | 'resumed';

let apart: typeof import('./multi-engine.ts') | null = null;
const load = async (): Promise<void> => {
  apart = await import('./multi-engine.ts');
};
beforeOthers(load);

/**
 * Realises nodes on the engines that hold them, as far as that is possible now.
 *
 * @param patient memory that is not certain, and with `true`, where one engine suffices, kernels that are still being compiled are something to wait for, too
 * @returns null if all is done; otherwise what to wait for before trying again. Data that is missing is under way.
 */
export function advance(wanted: readonly Node[], kind: Advance, patient: Patience = false): Promise<void> | null {
  const current = stateOf(getEngine());
  const { engine, pool } = current;
  try {
    if (pool.lost === null) {
      const done = run(current, wanted, kind === 'global' ? current.global : current.partial, patient);
      if (done !== false) return done === true ? null : done;
    }
  } catch (error) {
    if (apart !== null) return apart.advanceAfter(error, wanted, current, kind, patient);
    const full = error instanceof OutOfMemoryError && recoveryPolicy().outOfMemory === 'cpu' && engine.name !== 'cpu';
    if (pool.lost === null && !full) throw error;
  }
  if (pool.lost !== null) return advanceLost(wanted, kind, patient);
  return apart === null ? quiet(load()) : apart.advanceApart(wanted, current, kind, false, patient);
}

/** True for the promise of the current engine to say whether it has the memory that was asked for. */
export function isWord(promise: Promise<void>): boolean {
  return promise === getEngine().confirming?.();
}

/** `advance` where the current engine is lost. */
export function advanceLost(wanted: readonly Node[], kind: Advance, patient: Patience): Promise<void> | null {
  const underway = recover();
  if (underway !== null) return underway;
  restoreLost();
  return advanceOpen(wanted, kind, patient);
}

/** The same for those that are not in memory by now. */
export function advanceOpen(wanted: readonly Node[], kind: Advance, patient: Patience): Promise<void> | null {
  const open = wanted.filter((node) => node.storage === null);
  return open.length === 0 ? null : advance(open, kind, patient);
}

/** Resolves when all transfers between engines that are under way now have arrived or failed. */
export function arrivals(): Promise<void> {
  return apart?.arrivals() ?? Promise.resolve();
}

/** A promise that may fail without anybody listening. */
export function quiet(promise: Promise<unknown>): Promise<void> {
  const result = promise.then(() => undefined);
  result.catch(() => undefined);
  return result;
}
