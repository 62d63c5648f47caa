/**
 * The worker threads as the main thread sees them: starting them, publishing modules to them, and when sleeping ones are woken. They are
 * woken for work worth their help, in one batch or in small ones that follow each other closely. Loaded as one with what it imports:
 * here.ts and late.ts say when.
 */
import type { Heap } from '@polygrad/core/engine/shaping';
import { argsAt, ringAt, ringSlots, tableAt, tableSlots } from '../memory/layout.ts';
import { chunkBits, control } from './control.ts';
import { Crew } from './crew.ts';
import { SharedDispatch, spins } from './dispatch.ts';
import { noteStarted, threadsWithin } from '#room';
import { startThread, type Thread } from './thread.ts';
import { workerMain, type WorkerStart } from './worker.ts';

/** A module the workers know, or will know. */
export interface Published {
  readonly slot: number;
  block: ReturnType<Heap['alloc']> | null;
}

export class WorkerPool {
  readonly dispatch: SharedDispatch;
  readonly crew: Crew;
  readonly #heap: Heap;
  readonly #memory: WebAssembly.Memory;
  readonly #words: Int32Array;
  readonly #wide: boolean;
  readonly #scratch: readonly number[];
  #threads: Thread[] = [];
  #started = false;
  #freeSlots: number[] = [];
  #nextSlot = 0;

  /** `scratch` has one address per thread, the main thread's first. */
  constructor(memory: WebAssembly.Memory, heap: Heap, [first = 0, ...scratch]: readonly number[], wide: boolean) {
    this.#wide = wide;
    this.#memory = memory;
    this.#heap = heap;
    this.#scratch = scratch;
    this.#words = new Int32Array(memory.buffer);
    this.crew = new Crew(this.#words, scratch.length);
    this.dispatch = new SharedDispatch(this.#words, scratch.length, first, this.crew);
  }

  /** Starts the workers on the first call; returns at once. Until they are ready the main thread works alone. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    // The engine may have been made long ago, and other engines since.
    const count = threadsWithin(this.#scratch.length + 1) - 1;
    noteStarted(count);
    for (const [index, scratch] of this.#scratch.slice(0, count).entries()) {
      const data: WorkerStart = {
        memory: this.#memory,
        control,
        chunkBits,
        threads: this.#scratch.length + 1,
        tableAt,
        tableSlots,
        ringAt,
        ringSlots,
        argsAt,
        wide: this.#wide,
        scratch,
        spins,
        index,
      };
      this.#threads.push(startThread(workerMain, data));
    }
  }

  /** Workers that take part. */
  get ready(): number {
    return Atomics.load(this.#words, control.ready);
  }

  /** Workers that sleep. */
  get sleepers(): number {
    return Atomics.load(this.#words, control.sleepers);
  }

  /** Wakes sleeping workers so that they are awake when work comes. */
  wake(): void {
    if (this.sleepers > 0) Atomics.notify(this.#words, control.ticket);
  }

  /** Gives the workers a module; null if no slot is left (then its kernels run on the main thread alone). */
  publish(bytes: Uint8Array): Published | null {
    const slot = this.#freeSlots.pop() ?? (this.#nextSlot < tableSlots ? this.#nextSlot++ : -1);
    if (slot < 0) return null;
    // The block may have belonged to a buffer that the dispatch still uses.
    this.dispatch.finish();
    const block = this.#heap.alloc(bytes.length);
    new Uint8Array(this.#memory.buffer, block.address, bytes.length).set(bytes);
    this.#announce(slot, block.address, bytes.length);
    this.wake();
    return { slot, block };
  }

  /** Takes a module back. */
  withdraw(published: Published): void {
    this.dispatch.finish();
    this.#announce(published.slot, 0, 0);
    this.#heap.free(published.block!);
    this.#freeSlots.push(published.slot);
  }

  dispose(): void {
    Atomics.store(this.#words, control.stop, 1);
    Atomics.notify(this.#words, control.ticket);
    Atomics.notify(this.#words, control.crew);
    for (const t of this.#threads) t.terminate();
    this.#threads = [];
    this.#started = true;
  }

  #announce(slot: number, address: number, length: number): void {
    const words = this.#words;
    const at = tableAt / 4 + slot * 4;
    // Twice: a worker that reads while the entry changes sees another version afterwards and reads again.
    Atomics.add(words, at + 2, 1);
    Atomics.store(words, at, address);
    Atomics.store(words, at + 3, Math.floor(address / 2 ** 32));
    Atomics.store(words, at + 1, length);
    Atomics.add(words, at + 2, 1);
    const events = Atomics.load(words, control.events);
    words[ringAt / 4 + (events % ringSlots)] = slot;
    Atomics.store(words, control.events, events + 1);
  }
}

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
