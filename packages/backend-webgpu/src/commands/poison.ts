/**
 * Results that are missing because a kernel could not be made: which buffers lack them, and what is computed from those.
 *
 * Whoever reads such a buffer gets the kernel's error; all other results are as good as ever. A buffer is well again when
 * a later batch writes it without reading it first, which is what happens to memory that is handed on.
 */
import type { Binding } from '@polygrad/core/engine';
import type { WebGpuKernel } from '../kernels/kernel.ts';
import type { WebGpuBuffer } from '../memory.ts';

export class Poison {
  /** Buffers with a failure, and the batch that made it. */
  readonly #ill = new Map<WebGpuBuffer, number>();
  #batch = 0;

  /** A new batch of commands begins. */
  begin(): void {
    this.#batch++;
  }

  /** The failure a dispatch must not run for, marked on what it would have written; null if it may run. */
  stops(kernel: WebGpuKernel, bindings: readonly Binding[]): Error | null {
    if (this.#ill.size === 0 && kernel.code.failure === null) return null;
    const at = (slot: number): WebGpuBuffer => bindings[slot]!.buffer as WebGpuBuffer;
    const source = kernel.reads.find((slot) => at(slot).failure !== null);
    const failure = kernel.code.failure ?? (source === undefined ? null : at(source).failure);
    for (const slot of kernel.writes) {
      if (failure !== null) this.mark(at(slot), failure);
      else this.written(at(slot));
    }
    return failure;
  }

  mark(buffer: WebGpuBuffer, failure: Error): void {
    buffer.failure = failure;
    this.#ill.set(buffer, this.#batch);
  }

  gone(buffer: WebGpuBuffer): void {
    this.#ill.delete(buffer);
  }

  /** The buffer has new contents. Kernels of one batch may write parts of it each. */
  written(buffer: WebGpuBuffer): void {
    if (buffer.failure === null || this.#ill.get(buffer) === this.#batch) return;
    buffer.failure = null;
    this.#ill.delete(buffer);
  }
}
