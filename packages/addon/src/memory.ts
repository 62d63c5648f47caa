/** The engine's buffers: numbers of the driver, and how many bytes they hold together. */
import { type Binding, type EngineBuffer, type EngineMemory, OutOfMemoryError, showAs } from '@polygrad/core/engine';
import type { EngineState } from './engine-state.ts';

/** Device memory. */
class NativeBuffer implements EngineBuffer {
  readonly owner: DeviceMemory;
  readonly bytes: number;
  /** The driver's number, or -1 after `free`. */
  handle: number;

  constructor(owner: DeviceMemory, bytes: number, handle: number) {
    this.owner = owner;
    this.bytes = bytes;
    this.handle = handle;
  }
}

showAs(NativeBuffer.prototype, ({ bytes }) => ({ bytes }), 'NativeBuffer');

/** What memory asks of an addon's driver. */
export interface MemoryDriver {
  alloc(bytes: number): number;
  free(buffer: number): void;
}

/**
 * The buffers of an engine: who owns them, where they end, how many bytes they are together.
 *
 * @example
 * const state = new EngineState('mine', 'a card', (error) => error);
 * const memory = new DeviceMemory('mine', { alloc: () => 0, free: () => {} }, state, 1024, 4096);
 * memory.free(memory.alloc(16));
 * memory.report().buffers; // 0
 */
export class DeviceMemory {
  readonly #engine: string;
  readonly #driver: MemoryDriver;
  readonly #state: EngineState;
  /** Largest buffer, and most bytes of all together. */
  readonly #largest: number;
  readonly #limit: number;
  #bytes = 0;
  #buffers = 0;

  constructor(engine: string, driver: MemoryDriver, state: EngineState, largest: number, limit: number) {
    this.#engine = engine;
    this.#driver = driver;
    this.#state = state;
    this.#largest = largest;
    this.#limit = limit;
  }

  alloc(bytes: number): EngineBuffer {
    if (bytes > this.#largest || this.#bytes + bytes > this.#limit) throw this.#outOfMemory(bytes);
    const handle = this.#state.call('alloc', () => this.#driver.alloc(Math.max(4, bytes)), this.figures(bytes));
    this.#bytes += bytes;
    this.#buffers++;
    return new NativeBuffer(this, bytes, handle);
  }

  free(buffer: EngineBuffer): void {
    const own = this.#own(buffer);
    const { handle } = own;
    own.handle = -1;
    this.#bytes -= own.bytes;
    this.#buffers--;
    this.#state.call('free', () => this.#driver.free(handle), this.figures(0));
  }

  /** The number of a binding's buffer; the binding must lie inside. */
  within(b: Binding, bytes: number): number {
    const own = this.#own(b.buffer);
    if (!(b.offset >= 0 && b.offset + bytes <= own.bytes))
      throw new Error(
        `[${this.#engine}] a binding lies outside its buffer: offset ${b.offset} and ${bytes} bytes of ${own.bytes}`,
      );
    return own.handle;
  }

  /** For messages about memory. */
  figures(requested: number): { requested: number; live: number; limit: number } {
    return { requested, live: this.#bytes, limit: this.#limit };
  }

  report(): EngineMemory {
    return { bytes: this.#bytes, buffers: this.#buffers, reservedBytes: this.#bytes };
  }

  /** All buffers are gone. */
  clear(): void {
    this.#bytes = this.#buffers = 0;
  }

  #own(buffer: EngineBuffer): NativeBuffer {
    const own = buffer as NativeBuffer;
    if (own.owner !== this)
      throw new Error(`[${this.#engine}] the buffer belongs to another engine: allocate it from this one`);
    if (own.handle < 0)
      throw new Error(`[${this.#engine}] the buffer was freed: its memory may hold something else by now`);
    return own;
  }

  #outOfMemory(requested: number): OutOfMemoryError {
    const hint =
      requested > this.#largest
        ? `the device takes at most ${this.#largest} bytes in one buffer: split the tensor`
        : undefined;
    const [live, limit] = [this.#bytes, this.#limit];
    return new OutOfMemoryError(this.#engine, { requested, live, reserved: live, limit }, hint);
  }
}
