/**
 * The transaction log of assignments: what tensors named before they were assigned, so that they can name it again.
 *
 * A transaction is what a flush does as a whole or not at all. Assignments go to the newest one. A flush that is put off keeps its own, and
 * the next one begins: what is assigned then was computed from its values, and goes back with them. `warmup` records into a transaction
 * that is always rolled back.
 *
 * A value that is still to be replaced is held by one use. The hold is let go while a flush or a plan looks at the graph, where the work
 * itself reads the value, so that its memory may be given to the new one. A flush that fails before it submits has changed nothing, and
 * whoever goes on in parts after that holds again first.
 */
import { type Node, dropUse, holdUse, release, retain } from './node.ts';
import { stopGradient } from './primitives.ts';
import { type TrackedHandle, unwatch } from './recorder.ts';

interface Entry {
  readonly before: Node;
  held: boolean;
  /** What the tensor named when its flush was put off; null while it was not. */
  after: Node | null;
}

/** Assignments that are computed together, or go back together. */
export class Transaction {
  /** By tensor, the first value since the transaction began. */
  readonly entries: Map<TrackedHandle, Entry> = new Map();
  /** Undoes what belongs to them in JavaScript. */
  readonly undoers: (() => void)[] = [];

  /** The handle is about to name another node. */
  add(handle: TrackedHandle): void {
    if (this.entries.has(handle)) return;
    holdUse(handle.node);
    handle.assigned = true;
    this.entries.set(handle, { before: handle.node, held: true, after: null });
  }

  /** Work begins: values it reads itself are not held beside it. */
  letGo(): void {
    for (const entry of this.entries.values()) {
      const { before } = entry;
      if (!entry.held || before.handles + before.uses === 1) continue;
      entry.held = false;
      dropUse(before);
    }
  }

  /** Other work comes first, or it failed: nothing may overwrite the old values. */
  hold(): void {
    for (const entry of this.entries.values()) {
      if (entry.held) continue;
      entry.held = true;
      holdUse(entry.before);
    }
  }

  /** What the tensors name, or named when the flush was put off. */
  nodes(): Set<Node> {
    return new Set([...this.entries].map(([{ node }, { after }]) => after ?? node));
  }
}

/** A transaction that is always rolled back, and what a flush does meanwhile. */
export interface Rehearsal extends Transaction {
  plan?: (wanted: readonly Node[]) => void;
}

/** Transactions that are open. */
export class TransactionLog {
  /** Oldest first. */
  #open: Transaction[] = [];
  /** Assignments go here. */
  current: Transaction = this.begin();
  /**
   * What undoes in JavaScript what belongs to assignments that are committed, oldest first: since the last copy of protected tensors (runtime/shadow.ts).
   * Null where there is none.
   */
  committed: (() => void)[] | null = null;
  /** Present while everything is recorded to be rolled back: of every handle that is bound to another node. */
  rehearsal: Rehearsal | null = null;

  /** A transaction that begins after those that are open. */
  begin(): Transaction {
    const transaction = new Transaction();
    this.#open.push(transaction);
    return transaction;
  }

  /** The flush of the current transaction is put off: what is assigned from now on belongs to the next one. */
  putOff(): void {
    const { current } = this;
    current.hold();
    for (const [{ node }, entry] of current.entries) entry.after = node;
    this.current = this.begin();
  }

  /** The handle is about to be assigned `next`. One that is in memory is final. */
  assign(handle: TrackedHandle, next: Node): void {
    if (this.rehearsal !== null) return;
    if (next.storage === null) this.current.add(handle);
    else this.forget(handle);
  }

  /** The handle is disposed, or what it names is final. */
  forget(handle: TrackedHandle): void {
    handle.assigned = false;
    for (const { entries } of this.#open) {
      const known = entries.get(handle);
      if (entries.delete(handle) && known?.held) dropUse(known.before);
    }
  }

  /** What was assigned is computed, or nobody will take it back. Only the current transaction goes on. */
  commit(transaction: Transaction): void {
    const { entries, undoers } = transaction;
    if (transaction !== this.current) this.#open = this.#open.filter((other) => other !== transaction);
    if (entries.size > 0) {
      for (const [handle, { before, held }] of entries) {
        handle.assigned = this.#open.some((other) => other !== transaction && other.entries.has(handle));
        if (held) dropUse(before);
      }
      entries.clear();
    }
    if (undoers.length === 0) return;
    this.committed?.push(...undoers);
    undoers.length = 0;
  }

  /** Protected tensors have the values of their copies again: what belongs to assignments since then in JavaScript goes back with them. */
  rewind(): void {
    const open = this.#open.flatMap(({ undoers }) => undoers.splice(0));
    const undo = [...(this.committed?.splice(0) ?? []), ...open];
    for (const f of undo.reverse()) f();
  }

  /** The handles name again what they named before, and so do those assigned later, from these; all values must be held. True if there were any. */
  rollBack(transaction: Transaction): boolean {
    const found = transaction.entries.size > 0;
    const at = this.#open.indexOf(transaction);
    for (const undone of this.#open.slice(at, found ? undefined : at + 1).reverse()) this.#undo(undone);
    return found;
  }

  #undo(transaction: Transaction): void {
    for (const [handle, { before }] of transaction.entries) {
      const dropped = handle.node;
      // Whether it is a leaf with a gradient may have been set since. A rehearsal takes that back, too.
      const { slot } = dropped;
      let node = before;
      if (slot !== before.slot && transaction !== this.rehearsal) {
        node = stopGradient(before);
        node.slot = slot;
        node.requiresGrad = slot !== null;
      }
      retain(node);
      handle.node = node;
      if (handle.watched) unwatch(handle);
      release(dropped);
    }
    const undo = transaction.undoers.splice(0);
    this.commit(transaction);
    for (const f of undo.reverse()) f();
  }
}

/** The log in use: a part of the runtime. */
export let transactions: TransactionLog = new TransactionLog();

/** Another log takes its place. */
export function useTransactions(next: TransactionLog): void {
  transactions = next;
}

/**
 * Calls a function if the values assigned since the last flush cannot be computed and the tensors go back to what they were: for what
 * belongs to them in JavaScript, as an optimizer's count of steps. Forgotten when they are computed.
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
 * True while `warmup` records a function. Who counts calls in JavaScript (an optimizer its steps) does not count then.
 *
 * @example
 * console.log(isRehearsing()); //=> false
 */
export function isRehearsing(): boolean {
  return transactions.rehearsal !== null;
}
