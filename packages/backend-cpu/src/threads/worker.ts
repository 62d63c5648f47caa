/**
 * The code of a worker thread: one function without references to anything outside it, because it travels as text.
 *
 * A worker shares the memory and takes chunks of the posted dispatch, last ones first, until none is left; then it looks for
 * the next dispatch for a while and goes to sleep. It never returns to its event loop, so modules come as bytes in the memory.
 */
import type { control } from './control.ts';

/** What a worker is started with. */
export interface WorkerStart {
  readonly memory: WebAssembly.Memory;
  readonly control: typeof control;
  readonly chunkBits: number;
  /** Threads that share the work: of the chunks that are left, a worker takes this part. */
  readonly threads: number;
  readonly tableAt: number;
  readonly tableSlots: number;
  readonly ringAt: number;
  readonly ringSlots: number;
  readonly argsAt: number;
  /** The memory has 64-bit addresses. */
  readonly wide: boolean;
  /** This worker's memory for SHARED. */
  readonly scratch: number;
  /** Looks at the ticket before sleeping. */
  readonly spins: number;
  /** This worker's number, from 0. */
  readonly index: number;
}

/** Runs until the engine is disposed. */
export function workerMain(start: WorkerStart): void {
  const { memory, control, chunkBits, threads, tableAt, tableSlots, ringAt, ringSlots, argsAt, wide } = start;
  const { scratch, spins, index } = start;
  type KernelFunction = (args: number, from: number, to: number, scratch: number) => void;
  // Only words at the start of memory are used through this view; it stays valid when shared memory grows.
  const words = new Int32Array(memory.buffer);
  const chunkMask = (1 << chunkBits) - 1;
  /** Functions of the modules, by their numbers. */
  const modules: KernelFunction[][] = new Array(tableSlots).fill([]);
  const versions = new Int32Array(tableSlots);
  let events = 0;

  /** Brings the module of a slot up to date with the table; the bytes may be replaced while they are read. */
  const load = (slot: number): KernelFunction[] => {
    const at = (tableAt >> 2) + slot * 4;
    for (;;) {
      const version = Atomics.load(words, at + 2);
      if (version === versions[slot]) return modules[slot]!;
      const address = (words[at]! >>> 0) + words[at + 3]! * 2 ** 32;
      const length = words[at + 1]!;
      const functions: KernelFunction[] = [];
      if (length > 0) {
        // A thread may not have noticed yet that another one made the memory larger.
        if (memory.buffer.byteLength < address + length) memory.grow((wide ? 0n : 0) as number);
        const bytes = new Uint8Array(length);
        bytes.set(new Uint8Array(memory.buffer, address, length));
        if (Atomics.load(words, at + 2) !== version) continue;
        const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { m: memory } });
        for (let i = 0; i.toString(36) in exports; i++) functions.push(exports[i.toString(36)] as KernelFunction);
      }
      modules[slot] = functions;
      versions[slot] = version;
      return functions;
    }
  };

  const loadChanged = (): void => {
    const now = Atomics.load(words, control.events);
    // Entries older than the ring are loaded when a dispatch needs them.
    for (let i = Math.max(events, now - ringSlots); i < now; i++) {
      try {
        load(words[(ringAt >> 2) + (i % ringSlots)]!);
      } catch {
        // Tried again, and reported, when a dispatch needs the module.
      }
    }
    events = now;
  };

  const runChunks = (first: number, end: number): void => {
    const size = words[control.chunkGroups]!;
    const to = Math.min(words[control.groups]!, end * size);
    try {
      load(words[control.slot]!)[words[control.fn]!]!(argsAt, first * size, to, scratch);
    } catch {
      Atomics.store(words, control.failed, 1);
    }
    Atomics.add(words, control.done, end - first);
    if (Atomics.load(words, control.mainWaits) === 1) Atomics.notify(words, control.done);
  };

  Atomics.add(words, control.ready, 1);
  let idle = 0;
  /** Looks before sleeping: fewer after each time that nothing came, as that time is taken from somebody. */
  let patience = spins;
  for (;;) {
    const crew = Atomics.load(words, control.crew);
    if (index >= crew) {
      if (Atomics.load(words, control.stop) === 1) return;
      Atomics.wait(words, control.crew, crew);
      idle = 0;
      continue;
    }
    const ticket = Atomics.load(words, control.ticket);
    const high = (ticket >> chunkBits) & chunkMask;
    const left = high - (ticket & chunkMask);
    if (left > 0) {
      const count = Math.max(1, Math.min(Math.ceil(left / threads), words[control.mostChunks]!));
      const next = ticket - (count << chunkBits);
      if (Atomics.compareExchange(words, control.ticket, ticket, next) === ticket) runChunks(high - count, high);
      idle = 0;
      patience = spins;
    } else if (++idle > patience) {
      if (Atomics.load(words, control.stop) === 1) return;
      Atomics.add(words, control.sleepers, 1);
      Atomics.wait(words, control.ticket, ticket);
      Atomics.sub(words, control.sleepers, 1);
      patience = Math.max(spins >> 2, patience >> 1);
      idle = 0;
    } else if ((idle & 255) === 1 && Atomics.load(words, control.events) !== events) loadChanged();
  }
}
