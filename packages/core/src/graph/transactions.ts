/**
 * The log of assignments: what tensors named before, so that assignments whose values cannot be computed are rolled back.
 *
 * A transaction has the assignments that one flush commits together or not at all. New assignments go to the newest one. A flush that must
 * wait keeps its transaction, and the next one begins. Later assignments depend on earlier values, so they are rolled back with them. `warmup`
 * records into a transaction that is always rolled back.
 *
 * Each old value is held by one use, so no flush overwrites it. If the work itself reads the old value, the flush drops that use while it plans:
 * then the new value may take its memory. A flush that fails before it submits has changed nothing. Code that goes on with parts of it
 * takes the use again first.
 *
 * Functions tell here of values and effects of JavaScript (`hostValue`, `hostEffect`), which the recording of a compiled function (replay/) cannot see. Effects are
 * undone with the assignments.
 */
import { checkFunction } from '@polygrad/compiler/shape/options';
import { graph } from './state.ts';
import { type Node, dropUse, holdUse, rename, type TrackedHandle } from './node.ts';
import { stopGradient } from './primitives.ts';

/** One assigned tensor. */
interface Entry {
  /** What it named when the transaction began. */
  readonly before: Node;
  /** Whether the transaction has a use of `before`. */
  held: boolean;
  /** What the tensor named when its flush was put off; null if it was not. */
  after: Node | null;
}

/** Assignments that are computed together or rolled back together. */
export class Transaction {
  /** For each tensor its value when the transaction began. */
  entries: Map<TrackedHandle, Entry> = new Map();
  /** Functions that undo related effects in JavaScript (`onRollback`). */
  readonly undoers: (() => void)[] = [];

  /** Notes the handle's value before it names another node. */
  add(handle: TrackedHandle): void {
    if (this.entries.has(handle)) return;
    holdUse(handle.node);
    handle.assigned = true;
    this.entries.set(handle, { before: handle.node, held: true, after: null });
  }

  /** Drops the uses as work begins, of values that something else needs too. */
  letGo(): void {
    if (this.entries.size === 0) return;
    this.entries.forEach((entry) => {
      const { before } = entry;
      if (!entry.held || before.handles + before.uses === 1) return;
      entry.held = false;
      dropUse(before);
    });
  }

  /** Takes the uses again, because other work comes first or the work failed: nothing may overwrite the old values. */
  hold(): void {
    for (const entry of this.entries.values()) {
      if (entry.held) continue;
      entry.held = true;
      holdUse(entry.before);
    }
  }

  /** The nodes that the tensors name, or named when the flush was put off. */
  nodes(): Set<Node> {
    return new Set([...this.entries].map(([{ node }, { after }]) => after ?? node));
  }
}

/** A transaction that is always rolled back; flushes call `plan` instead of computing. */
export interface Rehearsal extends Transaction {
  plan?: (wanted: readonly Node[]) => void;
}

/** Transactions that are open. */
export class TransactionLog {
  /** Open transactions, oldest first. */
  #open: Transaction[] = [];
  /** The transaction of new assignments. */
  current: Transaction = this.begin();
  /**
   * Undo functions of committed assignments, oldest first, since the last copy of protected tensors (runtime/shadow.ts).
   * Null without protected tensors.
   */
  committed: (() => void)[] | null = null;
  /** Set while everything recorded will be rolled back: it notes every handle that is bound to another node. */
  rehearsal: Rehearsal | null = null;

  /** Begins a transaction after the open ones. */
  begin(): Transaction {
    const transaction = new Transaction();
    this.#open.push(transaction);
    return transaction;
  }

  /** The current transaction's flush is put off: later assignments belong to the next one. */
  putOff(): void {
    const { current } = this;
    current.hold();
    for (const [{ node }, entry] of current.entries) entry.after = node;
    this.current = this.begin();
  }

  /** Notes that the handle is about to be assigned `next`. A value in memory needs no computing, so it is not rolled back. */
  assign(handle: TrackedHandle, next: Node): void {
    if (this.rehearsal !== null) return;
    if (next.storage === null) this.current.add(handle);
    else this.forget(handle);
  }

  /** Forgets a handle that was disposed, or whose value is final. */
  forget(handle: TrackedHandle): void {
    handle.assigned = false;
    for (const { entries } of this.#open) {
      const known = entries.get(handle);
      if (entries.delete(handle) && known?.held) dropUse(known.before);
    }
  }

  /** Commits a transaction: its values are computed, or will not be rolled back. Only the current transaction stays open. */
  commit(transaction: Transaction): void {
    const { entries, undoers } = transaction;
    if (transaction !== this.current) this.#open = this.#open.filter((other) => other !== transaction);
    if (entries.size > 0) {
      entries.forEach(({ before, held }, handle) => {
        handle.assigned = this.#open.some((other) => other !== transaction && other.entries.has(handle));
        if (held) dropUse(before);
      });
      // Not cleared: V8 links the old contents of a map to the new ones. So what the old generation has of them would keep all that came later.
      transaction.entries = new Map();
    }
    if (undoers.length === 0) return;
    this.committed?.push(...undoers);
    undoers.length = 0;
  }

  /** Protected tensors have the values of their copies again: undoes the JavaScript effects of assignments since then. */
  rewind(): void {
    const open = this.#open.flatMap(({ undoers }) => undoers.splice(0));
    const undo = [...(this.committed?.splice(0) ?? []), ...open];
    for (const f of undo.reverse()) f();
  }

  /** Makes the handles of this and of later transactions name their old nodes again; all must be held. True if the transaction had handles. */
  rollBack(transaction: Transaction): boolean {
    const found = transaction.entries.size > 0;
    const at = this.#open.indexOf(transaction);
    for (const undone of this.#open.slice(at, found ? undefined : at + 1).reverse()) this.#undo(undone);
    return found;
  }

  #undo(transaction: Transaction): void {
    for (const [handle, { before }] of transaction.entries) {
      // The tensor may have become a leaf of gradients since. That stays, unless all was only rehearsed.
      const { slot } = handle.node;
      let node = before;
      if (slot !== before.slot && transaction !== this.rehearsal) {
        node = stopGradient(before);
        node.slot = slot;
        node.requiresGrad = slot !== null;
      }
      rename(handle, node);
    }
    const undo = transaction.undoers.splice(0);
    this.commit(transaction);
    for (const f of undo.reverse()) f();
  }
}

/** The log in use: a part of the runtime. */
export let transactions: TransactionLog = new TransactionLog();

/** Replaces the log in use. */
export function useTransactions(next: TransactionLog): void {
  transactions = next;
}

/**
 * Calls a function if the values assigned since the last flush cannot be computed and the tensors are rolled back: to undo
 * related changes in JavaScript, such as an optimizer's count of steps. The function is dropped once the values are computed.
 *
 * @example
 * let steps = 0;
 * const w = zeros([2]);
 * scope(() => {
 *   w.assign(w.add(1));
 *   steps++;
 *   onRollback(() => steps--);
 * });
 */
export function onRollback(undo: () => void): void {
  transactions.current.undoers.push(undo);
}

/**
 * True while `warmup` records a function. Code that counts calls in JavaScript (an optimizer its steps) should not count then.
 *
 * @example
 * console.log(isRehearsing()); //=> false
 */
export function isRehearsing(): boolean {
  return transactions.rehearsal !== null;
}

/**
 * A JavaScript value that decides what a function records, such as a mode. A function of `compile` reads it before each replay,
 * and records again if it has changed.
 *
 * @param read called for the value, now and before every replay
 * @returns its present value
 * @throws ArgumentError if `read` is no function
 *
 * @example
 * let training = true;
 * const step = compile((x: Tensor) => (hostValue(() => training) ? x.mul(2) : x));
 * step(tensor([3])); // [6]
 */
export function hostValue<T>(read: () => T): T {
  checkFunction('hostValue', read);
  const value = read();
  graph.observer?.value(read, value);
  return value;
}

/**
 * Runs a function with an effect in JavaScript, now and at every replay of a function of `compile`: counting steps, for instance.
 *
 * @param run the effect
 * @param undo undoes it if the work recorded with it cannot be computed. If given, `warmup` does not run the effect
 * @throws ArgumentError if either is no function
 *
 * @example
 * let steps = 0;
 * const step = compile((x: Tensor) => {
 *   hostEffect(
 *     () => void steps++,
 *     () => void steps--,
 *   );
 *   return x.mul(2);
 * });
 * step(tensor([3])); // [6]
 * steps; // 1
 */
export function hostEffect(run: () => void, undo?: () => void): void {
  checkFunction('hostEffect', run);
  if (undo !== undefined) {
    checkFunction('hostEffect', undo);
    if (isRehearsing()) return;
  }
  run();
  if (undo !== undefined) onRollback(undo);
  graph.observer?.effect(run, undo);
}
