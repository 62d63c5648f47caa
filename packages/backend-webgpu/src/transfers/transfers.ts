/** Bytes that come and go: uploads, reads, copies and fills. WebGPU moves whole words; what is left over is patched. */
import type { Binding } from '@polygrad/core/engine';
import type { CommandEncoder } from '../commands/command-encoder.ts';
import type { Memory, WebGpuBuffer } from '../memory.ts';
import type { Staging } from './staging.ts';
import type { UploadRing } from './upload-ring.ts';

/** Uploads after which the queue is submitted: their copies live until then. */
const flushBytes = 1 << 26;

export class Transfers {
  readonly #device: GPUDevice;
  readonly #encoder: CommandEncoder;
  readonly #staging: Staging;
  readonly #ring: UploadRing;
  readonly #memory: Memory;
  #uploaded = 0;

  constructor(device: GPUDevice, encoder: CommandEncoder, staging: Staging, ring: UploadRing, memory: Memory) {
    this.#device = device;
    this.#encoder = encoder;
    this.#staging = staging;
    this.#ring = ring;
    this.#memory = memory;
  }

  /** Host bytes to the device, after everything submitted. */
  upload({ buffer, offset }: Binding, data: Uint8Array): void {
    const own = buffer as WebGpuBuffer;
    const end = offset + data.length;
    const first = Math.ceil(offset / 4) * 4;
    const last = Math.floor(end / 4) * 4;
    if (first < last) this.#write(own, first, data.subarray(first - offset, last - offset));
    if (first > offset) this.#patch(own, first - 4, offset, Math.min(first, end), data, offset);
    if (last < end && last >= first) this.#patch(own, last, last, end, data, offset);
  }

  /** Device bytes to the host, after everything submitted. */
  async read({ buffer, offset }: Binding, into: Uint8Array, bytes: number): Promise<void> {
    const from = Math.floor(offset / 4) * 4;
    const size = Math.ceil((offset + bytes) / 4) * 4 - from;
    if (size === 0) return;
    const staged = this.#staging.take(size);
    this.#encoder.copy((buffer as WebGpuBuffer).gpu, from, staged, 0, size);
    this.#encoder.submit();
    await this.#staging.read(staged, size, (data) => into.set(data.subarray(offset - from, offset - from + bytes)));
  }

  copy(from: Binding, to: Binding): void {
    const { bytes } = from;
    if (bytes === 0) return;
    if (from.offset % 4 !== 0 || to.offset % 4 !== 0 || bytes % 4 !== 0)
      throw new Error(
        `[webgpu] copies move whole words of four bytes: offsets ${from.offset} and ${to.offset}, ${bytes} bytes`,
      );
    const source = from.buffer as WebGpuBuffer;
    const target = to.buffer as WebGpuBuffer;
    if (source !== target) {
      this.#encoder.copy(source.gpu, from.offset, target.gpu, to.offset, bytes);
      return;
    }
    // A buffer cannot be copied to itself.
    const between = this.#memory.alloc(bytes);
    this.#encoder.copy(source.gpu, from.offset, between.gpu, 0, bytes);
    this.#encoder.copy(between.gpu, 0, target.gpu, to.offset, bytes);
    this.#encoder.submit();
    this.#memory.forget(between);
    this.#memory.destroy(between);
  }

  fill({ buffer, offset, bytes }: Binding, pattern: number): void {
    if (bytes === 0) return;
    if (offset % 4 !== 0 || bytes % 4 !== 0)
      throw new Error(`[webgpu] fills write whole words of four bytes: offset ${offset}, ${bytes} bytes`);
    const own = buffer as WebGpuBuffer;
    if (pattern === 0) this.#encoder.clear(own, offset, bytes);
    else this.#encoder.overwrite(own, { first: offset / 4, count: bytes / 4, keep: 0, set: pattern });
  }

  #write(buffer: WebGpuBuffer, from: number, all: Uint8Array): void {
    const done = this.#ring.write(buffer.gpu, from, all);
    if (done === all.length) return;
    const [at, data] = [from + done, all.subarray(done)];
    // Drivers need not take shared memory.
    const bytes = data.buffer instanceof ArrayBuffer ? (data as Uint8Array<ArrayBuffer>) : new Uint8Array(data);
    this.#device.queue.writeBuffer(buffer.gpu, at, bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#uploaded += bytes.byteLength;
    if (this.#uploaded < flushBytes) return;
    this.#device.queue.submit([]);
    this.#uploaded = 0;
  }

  /** Bytes `from` to `to` of the word at `word`; `data` begins at `base`. */
  #patch(buffer: WebGpuBuffer, word: number, from: number, to: number, data: Uint8Array, base: number): void {
    let keep = 0xffffffff;
    let set = 0;
    for (let at = from; at < to; at++) {
      const shift = 8 * (at - word);
      keep &= ~(0xff << shift);
      set |= data[at - base]! << shift;
    }
    this.#encoder.overwrite(buffer, { first: word / 4, count: 1, keep: keep >>> 0, set: set >>> 0 });
    this.#encoder.submit();
  }
}
