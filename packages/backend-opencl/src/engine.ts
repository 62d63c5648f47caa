/**
 * The OpenCL engine: one context and one in-order queue on one device.
 *
 * A batch is enqueued with one native call and runs while JavaScript goes on. Reads wait on a thread of the addon, never on
 * the event loop, unless `downloadSync` asks for it; kernels are compiled on threads too.
 */
import {
  checkAttached,
  DeviceLostError,
  type Binding,
  type Command,
  type CompiledKernel,
  type EngineBuffer,
  type EngineCaps,
  type EngineLostInfo,
  type EngineMemory,
  type EngineTuning,
  type IEngine,
  type KernelSource,
  OutOfMemoryError,
  type ProductLibrary,
  showEngine,
} from '@polygrad/core/engine';
import { DeviceMemory, EngineState, isNativeError, isRepeatable, type NativeError } from '@polygrad/addon';
import type { Program } from '@polygrad/core/kernel';
import type { Driver } from './addon.ts';
import { CommandEncoder } from './command-encoder.ts';
import type { Clblast } from './clblast.ts';
import { translate } from './errors.ts';
import type { OpenClKernel } from './kernel.ts';
import { Kernels, sourceOf } from './kernels.ts';
import { type OpenClEngineOptions, type Setup, setUp } from './setup.ts';

/**
 * An engine on an OpenCL device. Make one with `createOpenClEngine`.
 *
 * @example
 * if (listOpenClDevices().length > 0) {
 *   const engine: OpenClEngine = createOpenClEngine();
 *   console.log(engine.device);
 *   engine.dispose();
 * }
 */
export class OpenClEngine implements IEngine {
  readonly name = 'opencl';
  readonly device: string;
  readonly caps: EngineCaps;
  readonly lost: Promise<EngineLostInfo>;
  readonly tuning?: EngineTuning;
  readonly library?: ProductLibrary;
  /** Why programs are not kept on disk, or null. */
  readonly cacheRefused: string | null;
  readonly #driver: Driver;
  readonly #state: EngineState;
  readonly #memory: DeviceMemory;
  readonly #kernels: Kernels;
  readonly #encoder: CommandEncoder;
  readonly #clblast: Clblast | null;

  constructor(setup: Setup) {
    const { driver, device, caps, cache, limit, tuning, library } = setup;
    this.device = device;
    this.caps = caps;
    this.cacheRefused = cache?.refused ?? null;
    if (tuning !== null) this.tuning = tuning;
    if (library !== null) this.library = library;
    this.#clblast = library;
    this.#driver = driver;
    this.#state = new EngineState('opencl', device, translate);
    this.lost = this.#state.lost;
    this.#memory = new DeviceMemory('opencl', driver, this.#state, caps.maxBufferBytes, limit);
    this.#kernels = new Kernels(setup);
    this.#encoder = new CommandEncoder(this.#memory, this.#kernels);
  }

  /** Kernels compiled and kernels loaded from disk since the engine was made. */
  get builds(): { readonly compiled: number; readonly fromDisk: number } {
    return this.#kernels.builds;
  }

  /** Why CLBlast is not used, or null where it may be. */
  get clblastMissing(): string | null {
    return this.#clblast === null ? 'the option clblast is false' : this.#clblast.missing;
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
    this.#call('upload', () => this.#driver.upload(handle, to.offset, bytes), data.byteLength);
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    this.#state.check('download');
    const handle = this.#memory.within(from, from.bytes);
    try {
      await this.#driver.read(handle, from.offset, into.subarray(0, from.bytes));
    } catch (error) {
      throw this.#failed(error, 'download', from.bytes);
    }
    return into;
  }

  downloadSync(from: Binding, into: Uint8Array): Uint8Array {
    this.#state.check('download');
    const handle = this.#memory.within(from, from.bytes);
    this.#call('download', () => this.#driver.readSync(handle, from.offset, into.subarray(0, from.bytes)), from.bytes);
    return into;
  }

  /** Returns at once; the first batch with a kernel waits until it is compiled, and throws CompileError where the driver refuses it. Readers ask `compiling` first. */
  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    this.#state.check('compile');
    return this.#call('compile', () => this.#kernels.start(programs));
  }

  async ready(): Promise<void> {
    if (this.#state.live) await this.#kernels.ready();
  }

  compiling(kernels: readonly CompiledKernel[]): Promise<void> | null {
    return this.#state.live ? this.#kernels.compiling(kernels as readonly OpenClKernel[]) : null;
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (this.#state.live) this.#kernels.release(kernels);
  }

  submit(commands: readonly Command[]): void {
    this.#state.check('submit');
    const { bytes, count, commands: written } = this.#call('compile', () => this.#encoder.encode(commands));
    if (count === 0) return;
    try {
      this.#driver.submit(bytes, count);
    } catch (error) {
      if (this.#isOfLibrary(error)) this.submit(this.#encoder.rest(commands, error.command));
      else throw this.#stopped(error, commands, written);
    }
  }

  /** Each command measured by the device's own clock. Waits for the batch before it returns. */
  async submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    this.#state.check('submit');
    return commands.map((command) => this.#timed(command));
  }

  #timed(command: Command): number {
    const { bytes, count } = this.#call('compile', () => this.#encoder.encode([command]));
    if (count === 0) return 0;
    try {
      const [time = -1] = this.#driver.submitTimed(bytes, count);
      return time < 0 ? Number.NaN : time;
    } catch (error) {
      if (this.#isOfLibrary(error)) return this.#timed(command);
      throw this.#failed(error, 'submit', 0);
    }
  }

  /** True if CLBlast failed; from then on kernels do its work. */
  #isOfLibrary(error: unknown): error is NativeError {
    if (this.#clblast === null || !isNativeError(error) || !error.call.startsWith('CLBlast')) return false;
    this.#clblast.fail(error.message);
    return true;
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
    return this.#memory.report();
  }

  async source(kernel: CompiledKernel): Promise<KernelSource> {
    return sourceOf(kernel);
  }

  /** Waits for what runs and gives everything back; every later call throws EngineDisposedError. */
  dispose(): void {
    if (!this.#state.dispose()) return;
    this.#memory.clear();
    this.#driver.dispose();
  }

  #call<T>(action: string, call: () => T, requested = 0): T {
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
    return this.#state.lose(() => new DeviceLostError('opencl', this.device, reason, { cause: error }));
  }
}

showEngine(OpenClEngine.prototype, 'OpenClEngine');

/**
 * Makes an OpenCL engine.
 *
 * @throws EngineMissingError where there is no native part, no OpenCL library, or no device that fits
 * @example
 * import { createOpenClEngine, listOpenClDevices } from '@polygrad/backend-opencl';
 * if (listOpenClDevices().length > 0) {
 *   const engine = createOpenClEngine();
 *   const buffer = engine.alloc(8);
 *   engine.upload({ buffer, offset: 0, bytes: 8 }, Float32Array.of(1, 2));
 *   const bytes = await engine.download({ buffer, offset: 4, bytes: 4 }, new Uint8Array(4));
 *   if (new Float32Array(bytes.buffer)[0] !== 2) throw new Error('what was written is not what is read');
 *   engine.dispose();
 * }
 */
export function createOpenClEngine(options: OpenClEngineOptions = {}): OpenClEngine {
  return new OpenClEngine(setUp(options));
}
