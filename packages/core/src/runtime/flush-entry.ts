/**
 * A flush in the queue: its state, the outcomes of an attempt to compute it, and its parts once it has failed as a whole.
 * queue.ts acts on entries.
 *
 * Each entry has a state, and each attempt an outcome; `next` gives the next state. Those that wait:
 *
 * - `memory`: the device has not yet said whether it has the memory. The flush is put off with its assignments, and later flushes wait behind
 *   it. So an out-of-memory error changes nothing, whether the device reports it at once or late. A program
 *   that never awaits never lets the device answer: when too many flushes wait, they run without the answer.
 * - `data`: values of another engine, another engine, or code are being loaded. Its assignments are final. Later flushes do not
 *   wait for it, but other entries that wait for data do.
 * - `split`: it failed as a whole and is computed in parts that share no unrealised node. Tensors assigned since the previous flush form
 *   one part, so that a training step is either done or not begun.
 */
import type { Node } from '../graph/node.ts';
import type { Transaction } from '../graph/transactions.ts';
import type { Patience } from './run.ts';

/** State of an entry. */
export type FlushState = 'recorded' | 'memory' | 'data' | 'split' | 'done' | 'failed';

/** Outcome of an attempt: everything is computed, memory is not certain, data is being loaded, or an error. */
export type Outcome = 'computed' | 'memory' | 'data' | 'error';

/**
 * The next state. Entries that are done or have failed leave the queue. A part that waits for data becomes a separate entry. README.md of this folder has
 * all of it as a table.
 */
export function next({ state }: Entry, outcome: Outcome): FlushState {
  if (outcome === 'computed') return 'done';
  const isWhole = state === 'recorded' || state === 'memory';
  if (outcome === 'error') return isWhole ? 'split' : 'failed';
  return outcome === 'memory' && !isWhole ? state : outcome;
}

/**
 * An attempt to compute nodes. `everything`: all that is pending, for a flush. `told`: a reader waits for the nodes, so one
 * that cannot be computed is an error; otherwise it stays pending, and other work goes on.
 */
export interface Attempt {
  readonly everything?: boolean;
  readonly told?: boolean;
  /** What it waits for besides data, rather than going on at once. */
  readonly patience: Patience;
  /** Assignments whose old values must not be overwritten before everything is submitted. */
  readonly transaction: Transaction;
}

/** An attempt and how it ended. */
export interface Tried extends Attempt {
  /** What the last attempt threw, or the promise it waits for. */
  result: unknown;
}

/** Why a flush failed; any value may have been thrown. */
export interface Failure {
  readonly error: unknown;
}

/** A flush that is not finished. */
export interface Entry extends Tried {
  state: FlushState;
  nodes: readonly Node[];
  everything: boolean;
  patience: Patience;
  transaction: Transaction;
  /** The promise that already has a listener. */
  arrival: Promise<void> | null;
  /** If it is split: the parts not tried yet, grouped by what is tried together; the next group is the last one. */
  parts?: (readonly (readonly Node[])[])[];
  /** Assigned nodes, which form one part; and whether that part failed. */
  together?: ReadonlySet<Node>;
  broken?: boolean;
  /** The failure: that of its oldest failed part. */
  failure?: Failure;
}

/** True if the entry leaves the queue. */
export const isOver = ({ state }: Entry): boolean => state === 'done' || state === 'failed';
/** True if it waits for data; otherwise it is one that the device must answer for. */
export const isWaiting = ({ state }: Entry): boolean => state === 'data';

/** Several parts have failed together: next they are tried in halves. */
export function split(entry: Entry, parts: readonly (readonly Node[])[]): void {
  if (parts.length > 1) {
    const half = parts.length >> 1;
    entry.parts?.push(parts.slice(half), parts.slice(0, half));
  } else {
    entry.failure ??= { error: entry.result };
    entry.broken ||= parts.flat().some((node) => entry.together?.has(node));
  }
}
