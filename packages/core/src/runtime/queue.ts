/**
 * Flushes put off until the device has said whether it has the memory they need: a flush that fails for want of it has changed
 * nothing, and tensors assigned in it go back to what they were, where the device says so late as well as where it says so at once.
 *
 * They are done in order, each as the flush it was; what is flushed meanwhile comes after them. A program that never awaits never
 * lets the device answer: when too many wait, they are done without its word.
 */
import { getEngine } from '../engine/registry.ts';
import { holdAssigned, letGoAssigned, putOffAssigned, resumeAssigned, settleAssigned } from '../graph/transactions.ts';
import type { Node } from '../graph/node.ts';
import { stateOf } from './engine-state.ts';
import { type Apart, beginApart, endApart, type Failure, goOnApart, waitFor } from './failed.ts';
import { advance, isWord } from './realise.ts';
import type { Patience } from './run.ts';

/** Flushes that may wait. */
const most = 8;

interface PutOff {
  readonly wanted: readonly Node[];
  /** Set once it has failed as a whole. */
  apart: Apart | null;
}

const queue: PutOff[] = [];
let arrival: Promise<void> | null = null;
let late: Failure | null = null;

/** True while a flush is put off. */
export function isUnsure(): boolean {
  return queue.length > 0;
}

/** A flush begins: what was put off comes first. */
export function beforeFlush(): void {
  goOn(queue.length >= most ? false : 'memory');
}

/**
 * Computes what a flush wants, or puts it off. Returns how it failed, or null.
 *
 * Assignments since the last flush are settled, taken back, or put off with it.
 */
export function flushSurely(wanted: readonly Node[]): Failure | null {
  const next: PutOff = { wanted, apart: null };
  if (queue.length === 0) {
    const failure = attempt(next, 'memory');
    if (failure !== 'unsure') return failure;
  }
  queue.push(next);
  putOffAssigned();
  // Counts as work in flight, so that loops come to a halt in throttle() when nothing else does it.
  stateOf(getEngine()).inFlight++;
  return null;
}

function attempt(flush: PutOff, patience: Patience): Failure | null | 'unsure' {
  let word: Promise<void> | null = null;
  if (flush.apart === null) {
    const open = flush.wanted.filter((node) => node.storage === null && node.edges !== 'dead');
    letGoAssigned();
    try {
      const next = open.length === 0 ? null : advance(open, 'global', patience);
      if (next !== null && isWord(next)) word = next;
      else if (next !== null) waitFor(open, next);
    } catch (error) {
      flush.apart = beginApart(open, error);
    }
  }
  if (flush.apart !== null) word = goOnApart(flush.apart, patience);
  if (word !== null) {
    holdAssigned();
    listen(word);
    return 'unsure';
  }
  const failure = flush.apart === null ? null : endApart(flush.apart);
  settleAssigned();
  return failure;
}

function listen(next: Promise<void>): void {
  if (arrival === next) return;
  arrival = next;
  void next.then(() => {
    if (arrival !== next) return;
    arrival = null;
    goOn('memory');
  });
}

/** Does what was put off, oldest first; with patience as far as that is certain now. */
export function goOn(patience: Patience = 'memory'): void {
  let going = true;
  while (going && queue.length > 0) {
    resumeAssigned(() => {
      const failure = attempt(queue[0] as PutOff, patience);
      going = failure !== 'unsure';
      if (failure === 'unsure') return false;
      queue.shift();
      late ??= failure;
      return true;
    });
  }
}

/** How the first flush failed that was put off, once. */
export function takeLate(): Failure | null {
  const failure = late;
  late = null;
  return failure;
}

/** Resolves when nothing is put off any more. */
export async function settleUnsure(): Promise<void> {
  while (queue.length > 0) {
    goOn();
    await arrival;
  }
}
