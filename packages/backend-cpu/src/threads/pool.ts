/**
 * The main thread's side of the worker threads: publishing modules, handing out a dispatch in chunks, waiting for its end.
 *
 * A dispatch is posted by one store to the ticket word, which holds the range of chunks that nobody has taken. Whoever makes
 * the range smaller by a compare-and-exchange owns a chunk: the main thread takes the first, workers the last, so that threads
 * tend to meet the same data again in the next dispatch. A worker that wakes late finds an empty range or the range of the
 * running dispatch, and reads what that dispatch is only after it owns a chunk; nobody waits for workers that did not
 * come. Which thread runs a chunk never matters to results.
 */
import type { Heap } from '../memory/heap.ts';
import { argsAt, chunkBits, control, ringAt, ringSlots, tableAt, tableSlots } from '../memory/layout.ts';
import { mayBlock, startThread, type Thread } from './host.ts';
import { workerMain, type WorkerStart } from './worker.ts';

/** A kernel's code as exported by its module. */
export type KernelFunction = (args: number, from: number, to: number, scratch: number) => void;

const chunkMask = (1 << chunkBits) - 1;
/** Looks at a word before a thread goes to sleep: half a millisecond or so. */
const spins = 200_000;

export class WorkerPool {
  readonly #heap: Heap;
  readonly #memory: WebAssembly.Memory;
  readonly #words: Int32Array;
  readonly #wide: boolean;
  readonly #scratch: readonly number[];
  readonly #blocking = mayBlock();
  #threads: Thread[] = [];
  #started = false;
  #number = 0;
  #freeSlots: number[] = [];
  #nextSlot = 0;

  /** `scratch` has one address per worker. */
  constructor(memory: WebAssembly.Memory, heap: Heap, scratch: readonly number[], wide: boolean) {
    this.#wide = wide;
    this.#memory = memory;
    this.#heap = heap;
    this.#scratch = scratch;
    this.#words = new Int32Array(memory.buffer);
  }

  /** Starts the workers on the first call; returns at once. Until they are ready the main thread works alone. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    for (const scratch of this.#scratch) {
      const data: WorkerStart = {
        memory: this.#memory,
        control,
        chunkBits,
        tableAt,
        tableSlots,
        ringAt,
        ringSlots,
        argsAt,
        wide: this.#wide,
        scratch,
        spins,
      };
      this.#threads.push(startThread(workerMain, data));
    }
  }

  /** Workers that take part. */
  get ready(): number {
    return Atomics.load(this.#words, control.ready);
  }

  /** Wakes sleeping workers so that they are awake when work comes. */
  wake(): void {
    if (Atomics.load(this.#words, control.sleepers) > 0) Atomics.notify(this.#words, control.ticket);
  }

  /** Gives the workers a module; returns its slot, or -1 if no slot is left (then its kernels run on the main thread alone). */
  publish(bytes: Uint8Array): Published | null {
    const slot = this.#freeSlots.pop() ?? (this.#nextSlot < tableSlots ? this.#nextSlot++ : -1);
    if (slot < 0) return null;
    const block = this.#heap.alloc(bytes.length);
    new Uint8Array(this.#memory.buffer, block.address, bytes.length).set(bytes);
    this.#announce(slot, block.address, bytes.length);
    this.wake();
    return { slot, block };
  }

  /** Takes a module back. */
  withdraw(published: Published): void {
    this.#announce(published.slot, 0, 0);
    this.#heap.free(published.block);
    this.#freeSlots.push(published.slot);
  }

  /**
   * Runs all groups of a kernel on the workers and this thread. `error` of the first failing chunk is thrown after all
   * chunks have ended.
   */
  run(
    fn: KernelFunction,
    published: Published,
    index: number,
    groups: number,
    chunkGroups: number,
    scratch: number,
  ): void {
    const words = this.#words;
    const chunks = Math.ceil(groups / chunkGroups);
    words[control.slot] = published.slot;
    words[control.fn] = index;
    words[control.chunkGroups] = chunkGroups;
    words[control.groups] = groups;
    Atomics.store(words, control.done, 0);
    this.#number = (this.#number + 1) & (0x7fffffff >> (2 * chunkBits));
    Atomics.store(words, control.ticket, ((this.#number << chunkBits) | chunks) << chunkBits);
    let failure: unknown;
    for (;;) {
      const ticket = Atomics.load(words, control.ticket);
      const low = ticket & chunkMask;
      if (low >= ((ticket >> chunkBits) & chunkMask)) break;
      if (Atomics.compareExchange(words, control.ticket, ticket, ticket + 1) !== ticket) continue;
      const from = low * chunkGroups;
      try {
        fn(argsAt, from, Math.min(groups, from + chunkGroups), scratch);
      } catch (error) {
        failure ??= error;
      }
      Atomics.add(words, control.done, 1);
    }
    if (Atomics.load(words, control.done) !== chunks) this.#join(chunks);
    if (Atomics.load(words, control.failed) === 1) {
      Atomics.store(words, control.failed, 0);
      failure ??= new Error('[cpu.submit] a kernel failed in a worker thread');
    }
    if (failure !== undefined) throw failure;
  }

  dispose(): void {
    Atomics.store(this.#words, control.stop, 1);
    Atomics.notify(this.#words, control.ticket);
    for (const t of this.#threads) t.terminate();
    this.#threads = [];
    this.#started = true;
  }

  /** Waits until all chunks are finished. */
  #join(chunks: number): void {
    const words = this.#words;
    for (let i = 0; i < spins || !this.#blocking; i++) if (Atomics.load(words, control.done) === chunks) return;
    Atomics.store(words, control.mainWaits, 1);
    for (let done = Atomics.load(words, control.done); done !== chunks; done = Atomics.load(words, control.done)) {
      Atomics.wait(words, control.done, done, 10);
    }
    Atomics.store(words, control.mainWaits, 0);
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

/** A module the workers know. */
export interface Published {
  readonly slot: number;
  readonly block: ReturnType<Heap['alloc']>;
}
