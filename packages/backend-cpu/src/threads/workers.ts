/**
 * The worker threads of an engine, from before their code is there (`#threads`): what the main thread may ask of them.
 */
import { tableSlots } from '../memory/layout.ts';
import type { Heap } from '@polygrad/core/engine/shaping';
import { withThreads } from '#threads';
import type { Published, Waker, WorkerPool } from './pool.ts';
import type { Shares, Work } from './work.ts';

export class Workers {
  #pool: WorkerPool | null = null;
  #waker: Waker | null = null;
  /** Modules made before the pool was, which gives them the slots of their places here. */
  readonly #early: { readonly module: Published; readonly bytes: Uint8Array; withdrawn: boolean }[] = [];
  #wanted = false;
  #stopped = false;

  /** `scratch` has one address per thread, the main thread's first. */
  constructor(memory: WebAssembly.Memory, heap: Heap, scratch: readonly number[], wide: boolean) {
    withThreads((code) => {
      const early = this.#early.splice(0);
      // Where the code cannot be loaded, the engine goes on alone, as where a policy forbids workers.
      if (code === null) this.#stopped = true;
      if (code === null || this.#stopped) return;
      const pool = new code.WorkerPool(memory, heap, scratch, wide);
      try {
        for (const { module, bytes } of early) module.block = pool.publish(bytes)!.block;
      } catch {
        // No room for them.
        pool.dispose();
        this.#stopped = true;
        return;
      }
      for (const { module, withdrawn } of early) if (withdrawn) pool.withdraw(module);
      this.#waker = new code.Waker(pool);
      this.#pool = pool;
      if (this.#wanted) pool.start();
    });
  }

  /** Workers that take part. */
  get ready(): number {
    return this.#pool?.ready ?? 0;
  }

  /** Starts the workers on the first call; returns at once. Until they are ready the main thread works alone. */
  start(): void {
    this.#wanted = true;
    this.#pool?.start();
  }

  /** Gives the workers a module; null if no slot is left (then its kernels run on the main thread alone). */
  publish(bytes: Uint8Array): Published | null {
    if (this.#pool !== null) return this.#pool.publish(bytes);
    const slot = this.#early.length;
    if (this.#stopped || slot === tableSlots) return null;
    const module = { slot, block: null };
    this.#early.push({ module, bytes, withdrawn: false });
    return module;
  }

  /** Takes a module back. */
  withdraw(module: Published): void {
    const early = this.#early[module.slot];
    if (this.#pool !== null) this.#pool.withdraw(module);
    else if (early !== undefined) early.withdrawn = true;
  }

  /** To be called before a batch whose sharable work is estimated at so many nanoseconds. */
  before(work: number): void {
    this.#waker?.before(work);
  }

  /** Shares work with workers; false if none takes part. */
  share(work: Work, shares: Shares): boolean {
    const pool = this.#pool;
    if (pool === null || pool.ready === 0 || pool.crew.size === 0) return false;
    pool.dispatch.start(work, shares);
    return true;
  }

  /** Waits for what workers still do; an error in it is thrown here. */
  finish(): void {
    this.#pool?.dispatch.finish();
  }

  dispose(): void {
    this.#stopped = true;
    this.#pool?.dispose();
  }
}
