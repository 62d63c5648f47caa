/** Buffers in host memory, for the engines of this folder. */
import type { Binding, EngineBuffer } from '@polygrad/core/engine';
import { EngineDisposedError } from '@polygrad/core/functions';

/** A host buffer; also answers whether it was freed, since using freed memory is what tests look for. */
export class HostBuffer implements EngineBuffer {
  readonly bytes: number;
  data: ArrayBuffer;
  freed = false;

  constructor(bytes: number, keepsData: boolean) {
    this.bytes = bytes;
    // Rounded up so that every dtype's typed array fits.
    this.data = new ArrayBuffer(keepsData ? Math.ceil(bytes / 8) * 8 : 0);
  }
}

/** Counts of buffers and bytes, and the peak. */
export class HostMemory {
  readonly #engine: string;
  readonly #keepsData: boolean;
  buffers = 0;
  bytes = 0;
  peakBytes = 0;
  disposed = false;

  constructor(engine: string, keepsData: boolean) {
    this.#engine = engine;
    this.#keepsData = keepsData;
  }

  alloc(bytes: number): HostBuffer {
    this.check('alloc');
    this.buffers++;
    this.bytes += bytes;
    this.peakBytes = Math.max(this.peakBytes, this.bytes);
    return new HostBuffer(bytes, this.#keepsData);
  }

  free(buffer: EngineBuffer): void {
    const own = hostBuffer(buffer);
    if (own.freed) throw new Error(`[${this.#engine}] a buffer of ${own.bytes} bytes is freed twice`);
    own.freed = true;
    // Commands of a plan may name it until the plan runs again.
    own.data = new ArrayBuffer(0);
    this.buffers--;
    this.bytes -= own.bytes;
  }

  check(action: string): void {
    if (this.disposed) throw new EngineDisposedError(this.#engine, action);
  }
}

/** The host buffer behind a binding; throws if it was freed or if the binding leaves it. */
export function liveBuffer(engine: string, { buffer, offset, bytes }: Binding): HostBuffer {
  const own = hostBuffer(buffer);
  if (own.freed) throw new Error(`[${engine}] a buffer of ${own.bytes} bytes is used after it was freed`);
  if (offset < 0 || offset + bytes > own.bytes) {
    throw new RangeError(
      `[${engine}] a binding of ${bytes} bytes at ${offset} leaves its buffer of ${own.bytes} bytes`,
    );
  }
  return own;
}

function hostBuffer(buffer: EngineBuffer): HostBuffer {
  if (!(buffer instanceof HostBuffer)) throw new TypeError('[engine] the buffer belongs to another engine');
  return buffer;
}
