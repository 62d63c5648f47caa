/**
 * How many workers are asked to take part. On a machine that is busy with something else, a thread that holds chunks is stopped for
 * milliseconds, and the others wait for it. Then fewer threads are faster than many, and one may be the fastest.
 *
 * Whoever waits for a worker longer than its work explains says so, and workers that do next to nothing are counted: the crew becomes smaller, and after a while larger again, to try.
 * Tries that fail at once become rarer. On a quiet machine all of this is never asked for anything, not even the time.
 */
import { control } from './control.ts';

/** Milliseconds until more workers are tried again: at first, and at most, which is what a machine that has become quiet loses. */
const soonest = 5;
const latest = 640;
/** Dispatches that must be shared before one for which the crew had to be waited for, or sharing was no gain. */
const worth = 200;
/** Dispatches after which it is looked at what workers have done. */
const counted = 100;

export class Crew {
  readonly #words: Int32Array;
  readonly #most: number;
  /** Workers that come or go at once. */
  readonly #step: number;
  #size: number;
  #pause = soonest;
  #growAt = 0;
  /** Dispatches shared since a worker was late. */
  #shared = worth;
  #counted = 0;
  #chunks = 0;
  #byWorkers = 0;

  constructor(words: Int32Array, workers: number) {
    this.#words = words;
    this.#most = workers;
    this.#size = workers;
    this.#step = Math.max(1, workers >> 3);
    Atomics.store(words, control.crew, workers);
  }

  /** Workers that may take chunks. */
  get size(): number {
    return this.#size;
  }

  /** A dispatch was shared: of so many chunks, workers did these. */
  share(chunks: number, byWorkers: number): void {
    this.#shared++;
    this.#chunks += chunks;
    this.#byWorkers += byWorkers;
    if (++this.#counted < counted) return;
    // Threads that do nearly nothing are not there when work is: what they do instead is waiting for it.
    const useless = this.#byWorkers * 20 < this.#chunks;
    this.#counted = this.#chunks = this.#byWorkers = 0;
    if (useless && this.#size > 0) this.late(performance.now());
  }

  /** A worker was late, at this time. */
  late(now: number): void {
    this.#pause = this.#shared < worth ? Math.min(2 * this.#pause, latest) : soonest;
    this.#shared = 0;
    this.#growAt = now + this.#pause;
    this.#resize(this.#size - this.#step);
  }

  /** To be called before work that can be shared. */
  look(): void {
    if (this.#size === this.#most) return;
    const now = performance.now();
    if (now < this.#growAt) return;
    if (this.#shared >= worth) this.#pause = Math.max(soonest, this.#pause / 2);
    this.#growAt = now + this.#pause;
    this.#resize(this.#size + this.#step);
    Atomics.notify(this.#words, control.crew);
  }

  #resize(size: number): void {
    this.#size = Math.max(0, Math.min(this.#most, size));
    Atomics.store(this.#words, control.crew, this.#size);
  }
}
