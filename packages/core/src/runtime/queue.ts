/**
 * How nodes get computed: one attempt (`realise`), and the queue of flushes that wait for something.
 *
 * An attempt usually needs one engine; work on several is in multi-engine.ts. Where that is not loaded yet, the first flush
 * that needs it waits for it as it waits for data. Recovery from a lost device starts here too: with another engine, and with
 * copies of protected tensors.
 *
 * A flush is tried as soon as it begins. If something is missing it stays in the queue as an entry with a state (flush-entry.ts).
 */
import { hintCollector } from '../engine/pool.ts';
import { DeviceError, DeviceLostError, OutOfMemoryError } from '../engine/errors.ts';
import { beforeOthers, cpuEngine, engines, getEngine, noticed, takeUntold } from '../engine/registry.ts';
import type { Node } from '../graph/node.ts';
import { setAside } from '../graph/recorder.ts';
import { graph } from '../graph/state.ts';
import { type Transaction, type TransactionLog, transactions } from '../graph/transactions.ts';
import { copies } from './copies.ts';
import {
  type Attempt,
  type Entry,
  type Failure,
  type FlushState,
  isOver,
  isWaiting,
  next,
  type Outcome,
  split,
  type Tried,
} from './flush-entry.ts';
import { inTime, loadDevices, quiet, recover } from './late.ts';
import { stateOf, type Patience, run } from './run.ts';
import { runs } from './state.ts';
import { buildsOn, componentsOf, needed, open } from './placement.ts';

/** The code for several engines, once it is loaded. */
let multiEngine: typeof import('./multi-engine.ts') | null = null;

/** Loads the code for several engines. */
export const load = async (): Promise<void> => {
  multiEngine ??= await import('./multi-engine.ts');
};

// That code comes before a second engine. An engine may need the CPU engine beside it. Then it comes with that one where values
// can be read synchronously, so that they still can; otherwise at first use.
beforeOthers((alone) => Promise.all([loadDevices(), alone || load()]));

/** Most flushes that may wait for memory. */
const most = 8;

/** A flush that failed while it waited for data. Its assignments are final, so later flushes build on its nodes. */
interface FailedFlush {
  readonly nodes: readonly Node[];
  /** How often a device refused it since. */
  refused: number;
}

/** After a device has refused a failed flush this often, later flushes compute only the nodes of it that they need. */
const mostRefused = 8;

/** Counts one more unit of work in flight, so that throttle() waits in loops that submit nothing. */
function countWork(): void {
  stateOf(getEngine()).inFlight++;
}

/** True for the promise of an engine in use to say whether it has the requested memory. */
function isAnswerOnMemory(promise: Promise<void>): boolean {
  if (promise === getEngine().confirming?.()) return true;
  return runs.placer?.others().some(({ engine }) => promise === engine.confirming?.()) === true;
}

/** Waits for an attempt's promise; for the device's answer about memory no longer than the time limit of answers. */
export async function untilAnswered(arrival: Promise<void> | null | undefined): Promise<void> {
  if (!arrival || !isAnswerOnMemory(arrival)) return arrival ?? undefined;
  const state = stateOf(getEngine());
  try {
    await inTime(state, arrival, 'a request for memory');
  } catch (error) {
    throw noticed(state.engine, error);
  }
}

export class FlushQueue {
  readonly #log: TransactionLog;
  /** Entries that wait for data first, then the others; each in the order of their flushes. */
  readonly #entries: Entry[] = [];
  /** For each node of a failed flush, all nodes that were flushed with it. */
  readonly #failedTogether = new WeakMap<Node, readonly Node[]>();
  /** Failed flushes that later ones may build on, oldest first. */
  #failed: FailedFlush[] = [];
  /** The failure of the first flush that was put off and failed later. */
  #lateFailure: Failure | null = null;
  /** The first attempt of a flush: the same object for all flushes of a transaction. */
  #firstTry: Tried | null = null;

  constructor(log: TransactionLog) {
    this.#log = log;
  }

  /** The states of the entries, in order. */
  get states(): readonly FlushState[] {
    return this.#entries.map(({ state }) => state);
  }

  /** True while a flush waits for the device's answer about memory. */
  get isPutOff(): boolean {
    return this.#entries.length > 0 && this.#first(false) !== undefined;
  }

  #first(waiting: boolean): Entry | undefined {
    return this.#entries.find((entry) => isWaiting(entry) === waiting);
  }

  #remove(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1);
  }

  /** Computes what is possible now, oldest first. */
  advance(patience?: Patience): void {
    const entries = this.#entries;
    if (entries.length === 0) return;
    this.#advance(true, 'memory');
    const full = entries.length - entries.filter(isWaiting).length >= most;
    this.#advance(false, patience ?? (full ? 'none' : 'memory'));
  }

  #advance(waiting: boolean, patience: Patience): void {
    for (let entry = this.#first(waiting); entry !== undefined; entry = this.#first(waiting)) {
      this.#try(entry, patience);
      if (isOver(entry)) this.#remove(entry);
      else if (isWaiting(entry) === waiting) return;
      // Failures of entries that waited for data are reported to the readers of their nodes.
      this.#lateFailure ??= entry.failure ?? null;
    }
  }

  #new(state: FlushState, nodes: readonly Node[], result: unknown): Entry {
    const { current: transaction } = this.#log;
    return { state, nodes, everything: state !== 'data', patience: 'memory', transaction, result, arrival: null };
  }

  /**
   * Computes what a flush wants, as far as possible now. Returns how it failed, or null.
   *
   * Assignments since the last flush are committed, rolled back, or put off with it.
   */
  add(nodes: readonly Node[]): Failure | null {
    let entry: Entry;
    if (this.isPutOff) entry = this.#new('recorded', nodes, null);
    else {
      const log = this.#log;
      const { current: transaction } = log;
      let first = this.#firstTry;
      if (first === null || first.transaction !== transaction)
        this.#firstTry = first = { everything: true, patience: 'memory', transaction, result: null };
      transaction.letGo();
      const wanted = needed(nodes);
      const outcome = this.#attempt(first, wanted);
      // Nearly always, and then there is no entry.
      if (outcome === 'computed') {
        log.commit(transaction);
        return null;
      }
      entry = this.#new('recorded', wanted, first.result);
      first.result = null;
      this.#conclude(entry, outcome);
    }
    if (isOver(entry)) return entry.failure ?? null;
    this.#entries.push(entry);
    if (!isWaiting(entry)) {
      this.#log.putOff();
      countWork();
    }
    return null;
  }

  /** Attempts an entry and sets its next state. */
  #try(entry: Entry, patience: Patience): void {
    const waits = isWaiting(entry);
    entry.patience = patience;
    // The assignments of an entry that waits for data are final. Later ones belong to the next flush.
    if (waits) entry.transaction = this.#log.current;
    let outcome: Outcome = 'error';
    if (entry.parts === undefined) {
      if (!waits) entry.transaction.letGo();
      entry.nodes = needed(entry.nodes);
      outcome = this.#attempt(entry, entry.nodes);
    }
    this.#conclude(entry, outcome);
  }

  /** Sets the state of an entry after an attempt to compute all of it. */
  #conclude(entry: Entry, tried: Outcome): void {
    const log = this.#log;
    const flushes = !isWaiting(entry);
    const { transaction } = entry;
    if (flushes && tried === 'error' && entry.parts === undefined) {
      transaction.hold();
      if (entry.result instanceof OutOfMemoryError) hintCollector();
      entry.state = next(entry, tried);
      const together = transaction.nodes();
      entry.together = together;
      entry.parts = [];
      split(entry, componentsOf(entry.nodes, together));
    }
    const outcome = entry.parts === undefined ? tried : this.#tryParts(entry, entry.parts);
    const state = next(entry, outcome);
    if (flushes) {
      if (state === 'memory' || state === 'split') transaction.hold();
      else {
        // After a loss, values are restored from copies (shadow.ts) or gone.
        const error = entry.failure?.error;
        if (entry.broken && !(error instanceof DeviceLostError)) this.#rollBack(transaction, error);
        log.commit(transaction);
        if (state === 'data') {
          entry.everything = false;
          countWork();
        }
      }
    }
    entry.state = state;
    if (outcome === 'memory' || outcome === 'data') this.#listen(entry);
    else entry.arrival = null;
    if (state === 'failed') this.#leave(entry, !flushes);
  }

  /**
   * Realises the failed flushes that nodes build on, each by itself: one plan together with later work might sum in another order.
   *
   * @returns null if that is done; otherwise what to wait for
   * @throws the error of a device that refuses one of them. Whatever else fails is left to what builds on it, which may need less.
   */
  #settle(nodes: readonly Node[], asked: Attempt): Promise<void> | null {
    this.#failed = this.#failed.filter((flush) => needed(flush.nodes).length > 0);
    for (const flush of this.#failed) {
      const left = needed(flush.nodes);
      if (!buildsOn(nodes, new Set(left))) continue;
      try {
        const arrival = realise(left, asked);
        if (arrival !== null) return arrival;
      } catch (error) {
        if (error instanceof DeviceLostError) throw error;
        if (error instanceof DeviceError && ++flush.refused < mostRefused) throw error;
        this.#failed = this.#failed.filter((other) => other !== flush);
      }
    }
    return null;
  }

  /** Attempts to realise nodes of an entry, or of a flush that has none yet. */
  #attempt(entry: Tried, nodes: readonly Node[]): Outcome {
    try {
      const arrival =
        this.#failed.length === 0
          ? realise(nodes, entry)
          : (this.#settle(nodes, entry) ?? realise(needed(nodes), entry));
      entry.result = arrival;
      return arrival === null ? 'computed' : isAnswerOnMemory(arrival) ? 'memory' : 'data';
    } catch (error) {
      entry.result = error;
      return 'error';
    }
  }

  /** Notes that an entry has failed: its nodes are recipes from now on. `isFinal`: its assignments are final. */
  #leave({ nodes }: Entry, isFinal: boolean): void {
    if (nodes.length > 1) for (const node of nodes) this.#failedTogether.set(node, nodes);
    if (isFinal) this.#failed.push({ nodes, refused: 0 });
  }

  /**
   * `realise` for a reader of a node. Nodes that failed in the same flush are computed with it, in the kernels that the flush
   * would have had: alone, the node might be summed in another order.
   */
  realiseFor(node: Node, patience: Patience): Promise<void> | null {
    const asked = { told: true, patience, transaction: this.#log.current };
    const together = this.#failedTogether.get(node);
    const left = together === undefined ? null : needed(together);
    if (left?.includes(node)) {
      try {
        return realise(left, asked);
      } catch (error) {
        if (error instanceof DeviceLostError) throw error;
        // One of the others may have caused the failure.
        this.#failedTogether.delete(node);
      }
    }
    return realise([node], asked);
  }

  #listen(entry: Entry): void {
    const arrival = entry.result as Promise<void>;
    if (entry.arrival === arrival) return;
    entry.arrival = arrival;
    const arrived = (failed: boolean): void => {
      if (entry.arrival !== arrival) return;
      entry.arrival = null;
      const waiting = isWaiting(entry);
      if (failed && waiting) {
        entry.state = next(entry, 'error');
        this.#leave(entry, true);
        this.#remove(entry);
      }
      this.#advance(waiting, 'memory');
    };
    arrival.then(
      () => arrived(false),
      () => arrived(true),
    );
  }

  /** Computes the parts of a flush one by one, or many at once where that succeeds. */
  #tryParts(entry: Entry, left: (readonly (readonly Node[])[])[]): Outcome {
    for (let parts = left.pop(); parts !== undefined; parts = left.pop()) {
      const nodes = needed(parts.flat());
      const outcome = this.#attempt(entry, nodes);
      if (outcome === 'memory') {
        left.push(parts);
        return outcome;
      }
      if (outcome === 'error') split(entry, parts);
      if (outcome === 'data') {
        // It waits as a separate entry.
        const part = this.#new(outcome, nodes, entry.result);
        const at = this.#entries.findIndex((other) => !isWaiting(other));
        this.#entries.splice(at < 0 ? this.#entries.length : at, 0, part);
        this.#listen(part);
        countWork();
      }
    }
    return entry.failure === undefined ? 'computed' : 'error';
  }

  /** Rolls assigned tensors back, and says so in the error. */
  #rollBack(transaction: Transaction, error: unknown): void {
    transaction.hold();
    const found = this.#log.rollBack(transaction);
    // Their old values may have been lost meanwhile.
    if (engines.losses > 0) copies.lookAgain();
    if (!found || !(error instanceof Error)) return;
    const told = '; tensors assigned since the last flush have the values they had before';
    if (!error.message.endsWith(told)) error.message += told;
  }

  /**
   * Called when a node cannot be computed for a reader: pending work that shares nodes with it must not fail again in the next flush. Assigned
   * tensors among that work are computed now, or rolled back. Returns the error.
   */
  giveUp(node: Node, error: unknown): unknown {
    if (error instanceof DeviceLostError) return error;
    const transaction = this.#log.current;
    const roots = new Set([node]);
    for (const { disposed, node: pending } of graph.pending)
      if (!disposed && pending.storage === null) roots.add(pending);
    const together = transaction.nodes();
    const part = new Set(componentsOf([...roots], together).find((nodes) => nodes.includes(node)));
    const changed = open([...part].filter((n) => together.has(n)));
    setAside((handle) => part.has(handle.node) && !transaction.entries.has(handle));
    if (changed.length === 0) return error;
    try {
      // If the device must answer first, the next flush computes them.
      if (realise(changed, { told: true, patience: 'memory', transaction }) === null) this.#log.commit(transaction);
    } catch {
      this.#rollBack(transaction, error);
      setAside(({ node: pending }) => part.has(pending) || pending.storage !== null);
    }
    return error;
  }

  /**
   * Throws once if protected tensors went back to older values. Assignments since then, computed from these, go back too: whoever handles
   * the error finds the tensors as they were copied.
   */
  tell(): void {
    const untold = takeUntold();
    if (untold === null) return;
    const { current } = this.#log;
    current.hold();
    this.#log.rollBack(current);
    throw untold;
  }

  /** The failure of the first flush that was put off; each is returned once. */
  takeLate(): Failure | null {
    const failure = this.#lateFailure;
    this.#lateFailure = null;
    return failure;
  }

  /** Resolves when no flush is put off any more. */
  async settlePutOff(): Promise<void> {
    while (this.isPutOff) {
      this.#advance(false, 'memory');
      const { pool } = stateOf(getEngine());
      try {
        await untilAnswered(this.#first(false)?.arrival);
      } catch (error) {
        // The next attempt replaces a lost device.
        if (pool.lost === null) throw error;
      }
    }
  }

  /** Resolves when every flush so far is done or has failed, and all transfers have arrived. */
  async settle(): Promise<void> {
    await this.settlePutOff();
    const last = this.#entries.filter(isWaiting).pop();
    while (last !== undefined && this.#entries.includes(last)) {
      await this.#first(true)?.arrival?.catch(() => undefined);
      this.#advance(true, 'memory');
    }
    // Transfers between engines that are under way arrive or fail.
    await Promise.allSettled(runs.transfers);
  }
}

/** The unfinished flushes: a part of the runtime. */
export let queue: FlushQueue = new FlushQueue(transactions);

/** Replaces the queue in use. */
export function useQueue(next: FlushQueue): void {
  queue = next;
}

/**
 * Realises nodes on the engines that hold them, as far as possible now.
 *
 * @returns null if all is done; otherwise what to wait for before the next attempt. Missing data is already being transferred.
 */
export function realise(nodes: readonly Node[], attempt: Attempt): Promise<void> | null {
  let wanted = nodes;
  // First the current engine alone, then several; what does not fit the current one goes to the CPU engine.
  let on: 'one' | 'several' | 'cpu' = 'one';
  while (wanted.length > 0) {
    const current = stateOf(getEngine());
    const { engine, pool } = current;
    if (pool.lost !== null) {
      const underway = recover();
      if (underway !== null) return underway;
      copies.keeper?.restoreLost();
      wanted = open(wanted);
      on = 'one';
      continue;
    }
    const several = multiEngine;
    if (on !== 'one') {
      if (several === null) return quiet(load());
      // Values restored from a copy need not be computed. Newly recorded nodes may still depend on values that were lost.
      if (engines.losses > 0) copies.lookAgain();
      const restored = copies.keeper?.restoreLost();
      wanted = open(wanted);
      if (restored) {
        on = 'one';
        continue;
      }
    }
    try {
      if (on === 'one' && several !== null && runs.placer?.isAway === true) {
        const done = several.realiseAgain(wanted, attempt);
        if (done !== false) return done === true ? null : done;
      }
      const done =
        on === 'one' || several === null
          ? run(
              current,
              wanted,
              attempt.everything ? current.global : current.partial,
              attempt.patience,
              attempt.told === true,
              runs.placer,
            )
          : several.realiseSplit(wanted, current, on === 'cpu', attempt);
      if (done !== false) return done === true ? null : done;
      on = 'several';
    } catch (error) {
      if (pool.lost !== null) continue;
      if (on === 'one' && runs.placer?.takes(error, current)) {
        on = 'several';
        continue;
      }
      const full = error instanceof OutOfMemoryError && engines.policy.outOfMemory === 'cpu' && on !== 'cpu';
      if (!full || (multiEngine === null ? engine.name === 'cpu' : cpuEngine() === engine)) throw error;
      on = 'cpu';
    }
  }
  return null;
}
