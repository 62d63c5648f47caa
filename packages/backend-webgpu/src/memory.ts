/**
 * Device memory: buffers, and the figures by which a request is refused before the driver is asked.
 *
 * Drivers answer an allocation that fails too late (the buffer exists and is invalid) or not at all (software adapters take
 * the machine's memory until the process is ended), so what can be told from numbers is told from numbers.
 */
import { type EngineBuffer, type EngineMemory, OutOfMemoryError } from '@polygrad/core/engine';
import { host } from '#host';
import { usage } from './constants.ts';

let nextId = 1;

/** A buffer of its own on the device. */
export class WebGpuBuffer implements EngineBuffer {
  /** Never given twice, so that a key with it in never means another buffer. */
  readonly id: number = nextId++;
  readonly bytes: number;
  readonly owner: Memory;
  readonly gpu: GPUBuffer;
  freed = false;
  /** Why its contents are not what they should be; null where all is well. */
  failure: Error | null = null;

  constructor(owner: Memory, gpu: GPUBuffer, bytes: number) {
    this.owner = owner;
    this.gpu = gpu;
    this.bytes = bytes;
  }
}

/** Allocations of at least this many bytes are watched one by one, so that a failure can name its size. */
const watchedBytes = 1 << 20;

export class Memory {
  readonly #device: GPUDevice;
  readonly #maxBuffer: number;
  /** Bytes all buffers together may have. */
  readonly limit: number;
  readonly #onRefused: (error: OutOfMemoryError, buffer: WebGpuBuffer) => void;
  #bytes = 0;
  #reserved = 0;
  #buffers = 0;

  /** `onRefused` is told of buffers that the driver had no memory for, some time after they were made. */
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

  #watch(buffer: WebGpuBuffer): void {
    // The figures of now: later ones would not explain it.
    const error = this.#refusal(buffer.bytes, this.#reserved);
    host
      .paced(() => this.#device.popErrorScope())
      .then(
        (refused) => {
          if (refused !== null) this.#onRefused(error, buffer);
        },
        () => {}, // The device is lost, which others tell.
      );
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
  }

  figures(): EngineMemory {
    return { bytes: this.#bytes, buffers: this.#buffers, reservedBytes: this.#reserved };
  }

  #refusal(requested: number, limit: number, hint?: string): OutOfMemoryError {
    return new OutOfMemoryError('webgpu', { requested, live: this.#bytes, reserved: this.#reserved, limit }, hint);
  }
}
