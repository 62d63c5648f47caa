/**
 * Device memory: buffers, and the figures by which a request is refused before the driver is asked.
 *
 * Drivers answer an allocation that fails too late: the buffer exists and is invalid. Or they never do: software adapters take the machine's
 * memory until the process is ended. So what can be told from numbers is told from numbers.
 */
import { type EngineBuffer, type EngineMemory, OutOfMemoryError, showAs } from '@polygrad/core/engine';
import { host } from '#host';
import { usage } from './constants.ts';

let nextId = 1;

/** A separate buffer on the device. */
export class WebGpuBuffer implements EngineBuffer {
  /** Never given twice, so that a key with it in never means another buffer. */
  readonly id: number = nextId++;
  readonly bytes: number;
  readonly owner: Memory;
  readonly gpu: GPUBuffer;
  freed = false;
  /** Why its contents are not what they should be; null where all is well. */
  failure: Error | null = null;
  /** Set when the driver has said that it had no memory for it. */
  refused: OutOfMemoryError | null = null;

  constructor(owner: Memory, gpu: GPUBuffer, bytes: number) {
    this.owner = owner;
    this.gpu = gpu;
    this.bytes = bytes;
  }
}

showAs(WebGpuBuffer.prototype, ({ bytes }) => ({ bytes }), 'WebGpuBuffer');

/** Allocations of at least this many bytes are watched one by one, so that a failure can name its size. */
const watchedBytes = 1 << 20;
/** So long after the driver had no memory, as many bytes as it had none for are refused without asking again. */
const fullMs = 1000;

export class Memory {
  readonly #device: GPUDevice;
  readonly #maxBuffer: number;
  /** Bytes all buffers together may have. */
  readonly limit: number;
  readonly #onRefused: (error: OutOfMemoryError, buffer: WebGpuBuffer) => void;
  #bytes = 0;
  #reserved = 0;
  #buffers = 0;
  /** Buffers of which the driver has not said yet whether it had memory for them. */
  #unsure = 0;
  #confirmed: { readonly promise: Promise<void>; readonly tell: () => void } | null = null;
  /** Bytes that all buffers together would have had when the driver had no memory, and until when that counts. */
  #full: { readonly bytes: number; readonly until: number } | null = null;

  /** `onRefused` is called for buffers that the driver had no memory for, some time after they were made. */
  constructor(
    device: GPUDevice,
    maxBuffer: number,
    limit: number,
    onRefused: (error: OutOfMemoryError, buffer: WebGpuBuffer) => void,
  ) {
    this.#device = device;
    this.#maxBuffer = maxBuffer;
    this.limit = limit;
    this.#onRefused = onRefused;
  }

  alloc(bytes: number): WebGpuBuffer {
    const size = Math.max(4, Math.ceil(bytes / 4) * 4);
    if (size > this.#maxBuffer)
      throw this.#refusal(bytes, this.#maxBuffer, 'one buffer may be no larger on this device; use smaller tensors');
    if (this.#reserved + size > this.limit) throw this.#refusal(bytes, this.limit);
    if (this.#isFull(size)) throw this.#refusal(bytes, this.#reserved);
    const watched = size >= watchedBytes;
    if (watched) this.#device.pushErrorScope('out-of-memory');
    const gpu = this.#device.createBuffer({ size, usage: usage.storage | usage.copySrc | usage.copyDst });
    const buffer = new WebGpuBuffer(this, gpu, bytes);
    if (watched) this.#watch(buffer);
    this.#bytes += bytes;
    this.#reserved += gpu.size;
    this.#buffers++;
    return buffer;
  }

  /** When the driver has said whether it has memory for all buffers; null if it has. */
  confirming(): Promise<void> | null {
    if (this.#unsure === 0) return null;
    if (this.#confirmed === null) {
      let tell!: () => void;
      const promise = new Promise<void>((resolve) => {
        tell = resolve;
      });
      this.#confirmed = { promise, tell };
    }
    return this.#confirmed.promise;
  }

  #watch(buffer: WebGpuBuffer): void {
    // The figures of now: later ones would not explain it.
    const error = this.#refusal(buffer.bytes, this.#reserved);
    const bytes = this.#reserved + buffer.gpu.size;
    this.#unsure++;
    host
      .paced(() => this.#device.popErrorScope())
      .then(
        (refused) => {
          if (refused === null) return;
          buffer.refused = error;
          this.#full = { bytes, until: performance.now() + fullMs };
          this.#onRefused(error, buffer);
        },
        () => {}, // The device is lost, which others tell.
      )
      .then(() => {
        if (--this.#unsure === 0) this.#tell();
      });
  }

  #tell(): void {
    const confirmed = this.#confirmed;
    this.#confirmed = null;
    confirmed?.tell();
  }

  #isFull(size: number): boolean {
    if (this.#full === null) return false;
    if (performance.now() > this.#full.until) this.#full = null;
    return this.#full !== null && this.#reserved + size >= this.#full.bytes;
  }

  /** Gives the memory back. Commands that use the buffer must have been submitted. */
  destroy(buffer: WebGpuBuffer): void {
    this.#reserved -= buffer.gpu.size;
    buffer.gpu.destroy();
  }

  /** The buffer may not be used any more; `destroy` follows. */
  forget(buffer: WebGpuBuffer): void {
    buffer.freed = true;
    this.#bytes -= buffer.bytes;
    this.#buffers--;
  }

  clear(): void {
    this.#bytes = this.#reserved = this.#buffers = 0;
    this.#tell();
  }

  figures(): EngineMemory {
    return { bytes: this.#bytes, buffers: this.#buffers, reservedBytes: this.#reserved };
  }

  #refusal(requested: number, limit: number, hint?: string): OutOfMemoryError {
    return new OutOfMemoryError('webgpu', { requested, live: this.#bytes, reserved: this.#reserved, limit }, hint);
  }
}
