/**
 * The engine that a native addon drives: everything but its kernels and its errors is the same for every driver.
 *
 * A batch is enqueued with one native call and runs while JavaScript goes on. Reads wait on a thread of the addon, never on
 * the event loop, unless `downloadSync` asks for it; kernels are compiled on threads too.
 */
import {
  type Binding,
  type Command,
  type CompiledKernel,
  checkAttached,
  DeviceLostError,
  type EngineBuffer,
  type EngineCaps,
  type EngineLostInfo,
  type EngineMemory,
  type EngineTuning,
  type IEngine,
  type KernelSource,
  OutOfMemoryError,
  type ProductLibrary,
} from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import { CommandEncoder } from './command-encoder.ts';
import { EngineState, type Translate } from './engine-state.ts';
import type { AddonKernel, KernelTable } from './kernel.ts';
import type { ProductLibraries } from './library.ts';
import { DeviceMemory, type MemoryDriver } from './memory.ts';
import { isNativeError } from './native-error.ts';
import { isRepeatable } from './repeatable.ts';

/** What an engine asks of its addon's driver. Failures are thrown as `NativeError`. */
export interface EngineDriver extends MemoryDriver {
  upload(buffer: number, offset: number, data: Uint8Array): void;
  readSync(buffer: number, offset: number, into: Uint8Array): void;
  /** Rejects where `into` was transferred away or made shorter meanwhile. */
  read(buffer: number, offset: number, into: Uint8Array): Promise<void>;
  idle(): Promise<void>;
  /** Commands as CommandBuffer writes them. */
  submit(cells: Uint8Array, count: number): void;
  /** The same, waiting; nanoseconds of each command on the device, negative where they are not known. */
  submitTimed(cells: Uint8Array, count: number): Float64Array;
  dispose(): void;
}

/** What an engine is made of. */
export interface EngineParts<K extends AddonKernel> {
  readonly engine: string;
  readonly device: string;
  readonly caps: EngineCaps;
  /** Most bytes to hold. */
  readonly limit: number;
  readonly tuning: EngineTuning | null;
  readonly library: ProductLibraries | null;
  readonly driver: EngineDriver;
  readonly kernels: KernelTable<K>;
  readonly translate: Translate;
  sourceOf(kernel: K): KernelSource;
}

/**
 * Live until it is lost or disposed. What it says of the driver's errors, and how kernels come about, is its parts'.
 *
 * @example no-run: an engine of a backend extends it
 * class MyEngine extends AddonEngine<AddonKernel> {
 *   readonly name = 'mine';
 * }
 */
export abstract class AddonEngine<K extends AddonKernel> implements IEngine {
  abstract readonly name: string;
  readonly device: string;
  readonly caps: EngineCaps;
  readonly lost: Promise<EngineLostInfo>;
  readonly tuning?: EngineTuning;
  readonly library?: ProductLibrary;
  readonly #parts: EngineParts<K>;
  readonly #driver: EngineDriver;
  readonly #kernels: KernelTable<K>;
  readonly #library: ProductLibraries | null;
  readonly #state: EngineState;
  readonly #memory: DeviceMemory;
  readonly #encoder: CommandEncoder<K>;
  readonly #done = { batches: 0, commands: 0, uploadedBytes: 0, downloadedBytes: 0 };

  constructor(parts: EngineParts<K>) {
    const { engine, device, caps, limit, tuning, library, driver, kernels, translate } = parts;
    this.device = device;
    this.caps = caps;
    if (tuning !== null) this.tuning = tuning;
    if (library !== null) this.library = library;
    this.#parts = parts;
    this.#driver = driver;
    this.#kernels = kernels;
    this.#library = library;
    this.#state = new EngineState(engine, device, translate);
    this.lost = this.#state.lost;
    this.#memory = new DeviceMemory(engine, driver, this.#state, caps.maxBufferBytes, limit);
    this.#encoder = new CommandEncoder(engine, this.#memory, kernels, library);
  }

  /** Native calls that enqueued commands, how many commands, and bytes to and from the device. */
  protected get done(): {
    readonly batches: number;
    readonly commands: number;
    readonly uploadedBytes: number;
    readonly downloadedBytes: number;
  } {
    return this.#done;
  }

  /** True until it is lost or disposed. */
  protected get live(): boolean {
    return this.#state.live;
  }

  /** Why the device is lost, or null. */
  protected get loss(): DeviceLostError | null {
    return this.#state.loss;
  }

  alloc(bytes: number): EngineBuffer {
    this.#state.check('alloc');
    return this.#memory.alloc(bytes);
  }

  free(buffer: EngineBuffer): void {
    if (this.#state.live) this.#memory.free(buffer);
  }

  upload(to: Binding, data: ArrayBufferView): void {
    this.#state.check('upload');
    checkAttached('upload', 'data', data);
    const handle = this.#memory.within(to, data.byteLength);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.call('upload', () => this.#driver.upload(handle, to.offset, bytes), data.byteLength);
    this.#done.uploadedBytes += bytes.length;
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    this.#state.check('download');
    const handle = this.#memory.within(from, from.bytes);
    try {
      await this.#driver.read(handle, from.offset, into.subarray(0, from.bytes));
    } catch (error) {
      throw this.#failed(error, 'download', from.bytes);
    }
    this.#done.downloadedBytes += from.bytes;
    return into;
  }

  downloadSync(from: Binding, into: Uint8Array): Uint8Array {
    this.#state.check('download');
    const handle = this.#memory.within(from, from.bytes);
    this.call('download', () => this.#driver.readSync(handle, from.offset, into.subarray(0, from.bytes)), from.bytes);
    this.#done.downloadedBytes += from.bytes;
    return into;
  }

  /** Returns at once; the first batch with a kernel waits until it is compiled, and throws CompileError where the driver refuses it. Readers ask `compiling` first. */
  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    this.#state.check('compile');
    return this.call('compile', () => this.#kernels.start(programs));
  }

  async ready(): Promise<void> {
    if (this.#state.live) await this.#kernels.ready();
  }

  compiling(kernels: readonly CompiledKernel[]): Promise<void> | null {
    return this.#state.live ? this.#kernels.compiling(kernels as readonly K[]) : null;
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (this.#state.live) this.call('release', () => this.#kernels.release(kernels as readonly K[]));
  }

  submit(commands: readonly Command[]): void {
    this.#state.check('submit');
    const { bytes, count, commands: written } = this.call('compile', () => this.#encoder.encode(commands));
    if (count === 0) return;
    try {
      this.#driver.submit(bytes, count);
    } catch (error) {
      const rest = isNativeError(error) ? this.#encoder.rest(commands, error.command) : [];
      if (this.#library?.failedBy(error, this.#encoder.productOf(rest[0])) !== true)
        throw this.#stopped(error, commands, written);
      this.submit(rest);
      return;
    }
    this.#done.batches++;
    this.#done.commands += written;
  }

  /** Each command measured by the device's own clock. Waits for the batch before it returns. */
  async submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    this.#state.check('submit');
    return commands.map((command) => this.#timed(command));
  }

  #timed(command: Command): number {
    const { bytes, count } = this.call('compile', () => this.#encoder.encode([command]));
    if (count === 0) return 0;
    try {
      const [time = -1] = this.#driver.submitTimed(bytes, count);
      return time < 0 ? Number.NaN : time;
    } catch (error) {
      if (this.#library?.failedBy(error, this.#encoder.productOf(command)) === true) return this.#timed(command);
      throw this.#failed(error, 'submit', 0);
    }
  }

  async idle(): Promise<void> {
    if (!this.#state.live) return;
    try {
      await this.#driver.idle();
    } catch (error) {
      throw this.#failed(error, 'idle', 0);
    }
  }

  memory(): EngineMemory {
    const held = this.#memory.report();
    if (!this.#state.live) return held;
    return { ...held, reservedBytes: Math.max(held.reservedBytes, this.reserved()) };
  }

  /** Bytes the driver holds for the engine, as far as it says. */
  protected reserved(): number {
    return 0;
  }

  async source(kernel: CompiledKernel): Promise<KernelSource> {
    return this.#parts.sourceOf(kernel as K);
  }

  /** Waits for what runs and gives everything back; every later call throws EngineDisposedError. */
  dispose(): void {
    if (!this.#state.dispose()) return;
    this.#memory.clear();
    this.#driver.dispose();
  }

  /** Calls the driver; its errors become the library's. */
  protected call<T>(action: string, call: () => T, requested = 0): T {
    return this.#state.call(action, call, this.#memory.figures(requested));
  }

  #failed(error: unknown, action: string, requested: number): unknown {
    return this.#state.failed(error, action, this.#memory.figures(requested));
  }

  /** What a batch of which the driver took `error.command` of the `written` commands ends with. */
  #stopped(error: unknown, commands: readonly Command[], written: number): unknown {
    // The library frees memory and submits the batch again: that must not find inputs that are overwritten already.
    const translated = this.#failed(error, 'submit', 0);
    const done = isNativeError(error) ? error.command : 0;
    // Empty commands were not given to the driver.
    const begun = commands.slice(0, done + commands.length - written);
    if (!(translated instanceof OutOfMemoryError) || done <= 0 || isRepeatable(begun)) return translated;
    const reason = `the driver had no room for command ${done} of a batch that had changed its inputs by then`;
    return this.#state.lose(() => new DeviceLostError(this.name, this.device, reason, { cause: error }), error);
  }
}
