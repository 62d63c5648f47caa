/**
 * One dispatch shared by threads, seen from the main thread: posting it, taking chunks of it, waiting for its end.
 *
 * A dispatch is posted by one store to the ticket word, which holds the range of chunks that are not taken. Whoever makes the range
 * smaller by a compare-and-exchange owns the chunks between. The main thread takes the first and workers the last, so that threads tend
 * to meet the same data again in the next dispatch. Each takes a part of what is left, ever fewer towards the end: few takes, and threads
 * that end together. The main thread takes less than its share, as it has other things to do. A worker that wakes late finds an empty
 * range or the range of the running dispatch. It reads what that dispatch is only after it owns a chunk; no thread waits for workers that
 * did not come. Which thread runs a chunk never matters to results.
 *
 * `start` returns while workers are busy with their last chunks, so that the main thread can prepare what comes next.
 * `finish` must come before anything that the dispatch reads or writes is touched: memory, the args block, modules.
 */
import { argsAt } from '../memory/layout.ts';
import { chunkBits, control } from './control.ts';
import type { Crew } from './crew.ts';
import { mayBlock } from '#host';
import { kernelError, type Shares, type Work } from './work.ts';

const chunkMask = (1 << chunkBits) - 1;
/** Looks at the ticket before a worker goes to sleep: half a millisecond or so. */
export const spins = 200_000;
/** Looks at the count of chunks before the main thread looks at the clock, and between two looks at it. */
const quickLooks = 4_000;
const looks = 1_000;
/** Milliseconds that the main thread waits awake. */
const awakeMs = 0.5;
/** Chunks left to each worker when the main thread returns early; it comes back for them if it must wait. */
const leftPerWorker = 2;

export class SharedDispatch {
  /** Of the chunks that are left the main thread takes the part 3 * 2 ** -shareShift: three quarters of its share at most. */
  readonly #shareShift: number;
  readonly #words: Int32Array;
  readonly #workers: number;
  readonly #scratch: number;
  readonly #crew: Crew;
  readonly #blocking = mayBlock();
  #number = 0;
  /** The dispatch that is not finished yet. */
  #work: Work | null = null;
  #shares: Shares = { chunk: 0, most: 0, patience: 0 };
  #chunks = 0;
  /** Chunks done by this thread. */
  #done = 0;
  /** All chunks that workers have finished before this dispatch, as the word counts them. */
  #before = 0;
  #failure: unknown;

  /** `scratch`: the main thread's memory for SHARED. */
  constructor(words: Int32Array, workers: number, scratch: number, crew: Crew) {
    this.#crew = crew;
    this.#words = words;
    this.#workers = workers;
    this.#scratch = scratch;
    this.#shareShift = 33 - Math.clz32(2 * workers + 1);
  }

  /** Posts work whose args block is written, and takes part in it until what is left can be left to busy workers. */
  start(work: Work, shares: Shares): void {
    const words = this.#words;
    const { chunk, most } = shares;
    const chunks = Math.ceil(work.groups / chunk);
    // What is there already is not written again: the line stays in the caches of workers.
    if (words[control.slot] !== work.slot) words[control.slot] = work.slot;
    if (words[control.fn] !== work.index) words[control.fn] = work.index;
    if (words[control.chunkGroups] !== chunk) words[control.chunkGroups] = chunk;
    if (words[control.groups] !== work.groups) words[control.groups] = work.groups;
    if (words[control.mostChunks] !== most) words[control.mostChunks] = most;
    this.#number = (this.#number + 1) & (0x7fffffff >> (2 * chunkBits));
    // The first chunks are this thread's from the start.
    const count = Math.max(1, Math.min((3 * chunks) >> this.#shareShift, most));
    Atomics.store(words, control.ticket, (((this.#number << chunkBits) | chunks) << chunkBits) + count);
    this.#work = work;
    this.#shares = shares;
    this.#chunks = chunks;
    this.#done = 0;
    this.#run(0, count);
    this.#take(leftPerWorker * this.#workers);
  }

  /** Waits for the end of the dispatch. The error of a chunk that failed is thrown here. */
  finish(): void {
    const work = this.#work;
    if (work === null) return;
    this.#take(0);
    const words = this.#words;
    const all = (this.#before + this.#chunks - this.#done) | 0;
    if (Atomics.load(words, control.done) !== all) this.#join(all);
    this.#before = all;
    this.#work = null;
    this.#crew.share(this.#chunks, this.#chunks - this.#done);
    let failure = this.#failure;
    this.#failure = undefined;
    if (Atomics.load(words, control.failed) === 1) {
      Atomics.store(words, control.failed, 0);
      failure ??= 'in a worker thread';
    }
    if (failure !== undefined) throw kernelError(work.name, failure);
  }

  /** Takes chunks; once workers take part, this many are left to them. */
  #take(leave: number): void {
    const words = this.#words;
    for (;;) {
      const ticket = Atomics.load(words, control.ticket);
      const first = ticket & chunkMask;
      const end = (ticket >> chunkBits) & chunkMask;
      const left = end - first;
      if (left <= 0 || (left <= leave && end < this.#chunks)) return;
      const count = Math.max(1, Math.min((3 * left) >> this.#shareShift, this.#shares.most));
      if (Atomics.compareExchange(words, control.ticket, ticket, ticket + count) === ticket) this.#run(first, count);
    }
  }

  #run(first: number, count: number): void {
    const { fn, groups } = this.#work as Work;
    const { chunk } = this.#shares;
    try {
      fn(argsAt, first * chunk, Math.min(groups, (first + count) * chunk), this.#scratch);
    } catch (error) {
      this.#failure ??= error;
    }
    this.#done += count;
  }

  /** Waits until the workers have finished so many chunks in all: awake at first, as waking takes longer than most waits. */
  #join(chunks: number): void {
    if (this.#looks(chunks, quickLooks)) return;
    const start = performance.now();
    let done = false;
    while (!done && (!this.#blocking || performance.now() - start < awakeMs)) done = this.#looks(chunks, looks);
    // Somebody else has the processor: it is given up, so that the worker can go on in this thread's place.
    if (!done) this.#sleep(chunks);
    // A worker took longer than its work explains.
    const now = performance.now();
    if (now - start > awakeMs + this.#shares.patience) this.#crew.late(now);
  }

  /** Looks so many times whether the workers have finished. */
  #looks(chunks: number, count: number): boolean {
    const words = this.#words;
    for (let i = 0; i < count; i++) if (Atomics.load(words, control.done) === chunks) return true;
    return false;
  }

  #sleep(chunks: number): void {
    const words = this.#words;
    Atomics.store(words, control.mainWaits, 1);
    for (let done = Atomics.load(words, control.done); done !== chunks; done = Atomics.load(words, control.done)) {
      Atomics.wait(words, control.done, done, 10);
    }
    Atomics.store(words, control.mainWaits, 0);
  }
}
