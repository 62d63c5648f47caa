/**
 * Stores of entries between processes: the interface, and one in memory. Folders: folder.ts. Databases of pages: database.ts.
 */

import type { Logger } from '../engine/engine.ts';
import type { MakePlan } from '../planner/plan.ts';
import { runs } from '../runtime/state.ts';

/** Limits on what is kept and read. */
export interface PlanLimits {
  /** Bytes of all entries. */
  readonly bytes: number;
  /** Entries. */
  readonly plans: number;
}

/** An entry with its name. */
export interface StoredEntry {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Entries that are read on request: a program then reads only its own, however many others there are. */
export interface PlansAtHand {
  /** The names with this prefix. */
  names(prefix: string): Promise<readonly string[]>;
  /** An entry, or null if it was deleted. */
  read(name: string): Uint8Array<ArrayBuffer> | null;
  sha256(bytes: Uint8Array): Uint8Array;
}

/**
 * Entries by name. Every method may reject: then there are no plans. The caller verifies what it reads.
 */
export interface PlanStore {
  /** Present if entries can be read synchronously. Then `load` is not called. */
  readonly atHand?: PlansAtHand;
  /** The entries whose names have this prefix, the newest first, as many as the limits allow. */
  load(prefix: string, limits: PlanLimits): Promise<readonly StoredEntry[]>;
  /** Keeps an entry; a concurrent `load` finds all of it or nothing. The oldest entries beyond the limits are deleted. */
  save(name: string, bytes: Uint8Array<ArrayBuffer>, limits: PlanLimits): Promise<void>;
  remove(name: string): Promise<void>;
}

/** The newest entries of a list that stay within limits; the list is newest first. */
export function within<T extends { readonly size: number }>(newestFirst: readonly T[], limits: PlanLimits): T[] {
  let bytes = 0;
  return newestFirst
    .slice(0, limits.plans)
    .filter(({ size }) => size <= limits.bytes && (bytes += size) <= limits.bytes);
}

/** Tells the first problem to a logger: `log`, null for none, else that of the runtime in use now. */
export function firstTold(log: Logger | null | undefined): (text: string) => void {
  const here = runs;
  let told = false;
  return (text) => {
    if (told) return;
    told = true;
    // After planning: the logger may compute.
    void Promise.resolve(`[polygrad] ${text}`).then((said) => (log === undefined ? here.logger : log)?.(said));
  };
}

/** A rule of options: a text. */
export const isText = [(x: unknown): boolean => typeof x === 'string' && x !== '', 'a text'] as const;

/**
 * Puts something before the making of plans, which is given to it. The result ends that, also where something else was put before it since: then
 * calls are passed on.
 */
export function beforeMaking(put: (next: MakePlan) => MakePlan): () => void {
  const here = runs;
  const next = here.makePlan;
  let current = put(next);
  const makePlan: MakePlan = (...args) => current(...args);
  here.makePlan = makePlan;
  return () => {
    current = next;
    if (here.makePlan === makePlan) here.makePlan = next;
  };
}
