/**
 * When to wake sleeping workers: for work worth their help, in one batch or in small ones that follow each other closely.
 */
import type { WorkerPool } from './pool.ts';

/** Estimated nanoseconds below which no thread is woken. */
const wakeAboveNs = 60_000;
/** Batches further apart than this (milliseconds) do not follow each other closely: a woken thread would sleep again. */
const closeMs = 0.3;

export class Waker {
  readonly #pool: WorkerPool;
  #recent = 0;
  #last = 0;

  constructor(pool: WorkerPool) {
    this.#pool = pool;
  }

  /** To be called before a batch whose sharable work is estimated at `work` nanoseconds. */
  before(work: number): void {
    if (work === 0) return;
    this.#pool.crew.look();
    if (this.#pool.sleepers === 0) return;
    const now = performance.now();
    this.#recent = work + (now - this.#last < closeMs ? this.#recent : 0);
    this.#last = now;
    if (this.#recent <= wakeAboveNs) return;
    this.#recent = 0;
    this.#pool.wake();
  }
}
