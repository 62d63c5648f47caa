/**
 * Large uploads: a few buffers that the program has mapped, used in turns.
 *
 * What is written to a mapped buffer is copied once less than what `writeBuffer` takes. That pays from a few MiB on; below it the
 * mapping costs more. A buffer comes back when the device has copied it, which is told later: while none is there, and for all small
 * uploads, `writeBuffer` is taken.
 */
import { host } from '#host';
import type { CommandEncoder } from '../commands/command-encoder.ts';
import { mapWrite, usage } from '../constants.ts';

/** Uploads from this many bytes on, bytes of a buffer, buffers. */
const leastBytes = 1 << 21;
const pieceBytes = 1 << 22;
const mostBuffers = 4;

export class UploadRing {
  readonly #device: GPUDevice;
  readonly #encoder: CommandEncoder;
  #mapped: GPUBuffer[] = [];
  #all: GPUBuffer[] = [];

  constructor(device: GPUDevice, encoder: CommandEncoder) {
    this.#device = device;
    this.#encoder = encoder;
  }

  /** Writes the beginning of the data, after everything submitted; as much as there are buffers for. Returns how many bytes that was. */
  write(target: GPUBuffer, at: number, data: Uint8Array): number {
    if (data.length < leastBytes) return 0;
    const used: GPUBuffer[] = [];
    let done = 0;
    while (done < data.length) {
      const buffer = this.#take();
      if (buffer === null) break;
      const bytes = Math.min(pieceBytes, data.length - done);
      new Uint8Array(buffer.getMappedRange(0, bytes)).set(data.subarray(done, done + bytes));
      buffer.unmap();
      this.#encoder.copy(buffer, 0, target, at + done, bytes);
      used.push(buffer);
      done += bytes;
    }
    if (used.length > 0) this.#encoder.submit();
    for (const buffer of used) this.#mapAgain(buffer);
    return done;
  }

  #take(): GPUBuffer | null {
    const known = this.#mapped.pop();
    if (known !== undefined) return known;
    if (this.#all.length >= mostBuffers) return null;
    try {
      const flags = usage.mapWrite | usage.copySrc;
      const made = this.#device.createBuffer({
        label: 'upload',
        size: pieceBytes,
        usage: flags,
        mappedAtCreation: true,
      });
      this.#all.push(made);
      return made;
    } catch {
      // No memory to map: there is another way.
      return null;
    }
  }

  #mapAgain(buffer: GPUBuffer): void {
    host
      .paced(() => buffer.mapAsync(mapWrite))
      .then(
        () => {
          if (this.#all.includes(buffer)) this.#mapped.push(buffer);
        },
        () => {
          // The device is lost, or the ring was cleared.
          this.#all = this.#all.filter((b) => b !== buffer);
        },
      );
  }

  clear(): void {
    const all = this.#all;
    this.#all = [];
    this.#mapped = [];
    for (const buffer of all) buffer.destroy();
  }
}
