/** Readback: a few buffers that the program can map, used in turns. */
import { host } from '#host';
import { mapRead, usage } from '../constants.ts';

/** Buffers kept, and the largest that is. */
const mostKept = 8;
const largestKept = 1 << 24;

export class Staging {
  readonly #device: GPUDevice;
  #kept: GPUBuffer[] = [];

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** A buffer of at least `bytes` bytes to copy to. */
  take(bytes: number): GPUBuffer {
    const at = this.#kept.findIndex(({ size }) => size >= bytes);
    if (at >= 0) return this.#kept.splice(at, 1)[0]!;
    const size = bytes > largestKept ? bytes : Math.max(256, 2 ** Math.ceil(Math.log2(bytes)));
    return this.#device.createBuffer({ label: 'staging', size, usage: usage.mapRead | usage.copyDst });
  }

  /** Waits until what was copied there has arrived, hands it over and takes the buffer back. */
  async read(buffer: GPUBuffer, bytes: number, use: (data: Uint8Array) => void): Promise<void> {
    try {
      await host.paced(() => buffer.mapAsync(mapRead, 0, bytes));
      use(new Uint8Array(buffer.getMappedRange(0, bytes)));
      buffer.unmap();
    } catch (error) {
      buffer.destroy();
      throw error;
    }
    if (buffer.size > largestKept || this.#kept.length >= mostKept) buffer.destroy();
    else {
      this.#kept.push(buffer);
      this.#kept.sort((a, b) => a.size - b.size);
    }
  }

  clear(): void {
    for (const buffer of this.#kept) buffer.destroy();
    this.#kept = [];
  }
}
