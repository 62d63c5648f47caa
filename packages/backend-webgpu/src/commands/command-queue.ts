/**
 * Work in order: batches of commands, uploads and reads. What has to wait for a pipeline waits here, and everything asked for after it too.
 *
 * A program that never awaits never lets a pipeline be finished: when too much waits, the pipelines are made at once.
 */
import type { Code } from '../kernels/pipelines.ts';

interface Item {
  /** Pipelines that must be there. */
  readonly codes: readonly Code[];
  /** Bytes of host memory that it holds. */
  readonly bytes: number;
  readonly run: () => void;
}

/** Batches, and bytes of uploads, that may wait. */
const mostItems = 256;
const mostBytes = 1 << 26;

export class CommandQueue {
  readonly #force: (code: Code) => void;
  readonly #onError: (error: Error) => void;
  #items: Item[] = [];
  #bytes = 0;
  #draining = false;

  /** `onError` is called with errors of work whose caller has returned. */
  constructor(force: (code: Code) => void, onError: (error: Error) => void) {
    this.#force = force;
    this.#onError = onError;
  }

  /** True if nothing waits: then work may be done without `add`. */
  get empty(): boolean {
    return this.#items.length === 0 && !this.#draining;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Runs at once if it can, else when its turn comes. */
  add(codes: readonly Code[], bytes: number, run: () => void): void {
    const missing = codes.filter((code) => !code.settled);
    if (this.empty && missing.length === 0) {
      run();
      return;
    }
    this.#items.push({ codes: missing, bytes, run });
    this.#bytes += bytes;
    if (this.#items.length > mostItems || this.#bytes > mostBytes) this.forceAll();
  }

  /** Runs what can run; called when a pipeline is there. */
  drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    let done = 0;
    try {
      // Items that are added meanwhile join at the end.
      for (const { codes, bytes, run } of this.#items) {
        if (!codes.every((code) => code.settled)) break;
        done++;
        this.#bytes -= bytes;
        try {
          run();
        } catch (error) {
          this.#onError(error instanceof Error ? error : new Error(String(error)));
        }
      }
    } finally {
      this.#items.splice(0, done);
      this.#draining = false;
    }
  }

  /** Makes all missing pipelines now and runs everything. */
  forceAll(): void {
    for (const { codes } of this.#items) for (const code of codes) this.#force(code);
    this.drain();
  }

  clear(): void {
    this.#items = [];
    this.#bytes = 0;
  }
}
