/**
 * The CUDA engine: streams on one card.
 *
 * A batch is enqueued with one native call and runs while JavaScript goes on. Uploads and reads have streams of their own beside the kernels'.
 * Reads wait on a thread of the addon, never on the event loop, unless `downloadSync` asks for it; kernels are compiled on threads too.
 */
import { DeviceMemory, EngineState, isNativeError, isRepeatable } from '@polygrad/addon';
import {
  checkAttached,
  type Binding,
  type Command,
  type CompiledKernel,
  DeviceFaultError,
  DeviceLostError,
  type EngineBuffer,
  type EngineCaps,
  type EngineLostInfo,
  type EngineMemory,
  type EngineTuning,
  type IEngine,
  type KernelSource,
  OutOfMemoryError,
  showEngine,
} from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import type { Driver } from './addon.ts';
import { CommandEncoder } from './command-encoder.ts';
import { translate } from './errors.ts';
import type { CudaKernel } from './kernel.ts';
import { Kernels, sourceOf } from './kernels.ts';
import { type CudaEngineOptions, type Setup, setUp } from './setup.ts';

/** What an engine has done since it was made. */
export interface CudaStats {
  /** Texts of kernels given to the driver's compiler: none where a program goes on as before. */
  readonly compiled: number;
  /** Kernels whose text was compiled already. */
  readonly reused: number;
  /** Native calls that enqueued commands, and how many commands. */
  readonly batches: number;
  readonly commands: number;
  readonly uploadedBytes: number;
  readonly downloadedBytes: number;
}

/**
 * An engine on an NVIDIA card. Make one with `createCudaEngine`.
 *
 * @example
 * if (listCudaDevices().length > 0) {
 *   const engine: CudaEngine = createCudaEngine();
 *   console.log(engine.device);
 *   engine.dispose();
 * }
 */
export class CudaEngine implements IEngine {
  readonly name = 'cuda';
  readonly device: string;
  readonly caps: EngineCaps;
  readonly lost: Promise<EngineLostInfo>;
  readonly tuning?: EngineTuning;
  readonly #driver: Driver;
  readonly #state: EngineState;
  readonly #memory: DeviceMemory;
  readonly #kernels: Kernels;
  readonly #encoder: CommandEncoder;
  readonly #done = { batches: 0, commands: 0, uploadedBytes: 0, downloadedBytes: 0 };
  #fault: number | null = null;

  constructor(setup: Setup) {
    const { driver, device, caps, limit, tuning } = setup;
    this.device = device;
    this.caps = caps;
    if (tuning !== null) this.tuning = tuning;
    this.#driver = driver;
    this.#state = new EngineState('cuda', device, (...args) => {
      const error = translate(...args);
      if (error instanceof DeviceFaultError) this.#fault = error.driverCode;
      return error;
    });
    this.lost = this.#state.lost;
    this.#memory = new DeviceMemory('cuda', driver, this.#state, caps.maxBufferBytes, limit);
    this.#kernels = new Kernels(setup);
    this.#encoder = new CommandEncoder(this.#memory, this.#kernels);
  }

  get stats(): CudaStats {
    return { ...this.#kernels.counts, ...this.#done };
  }

  /** The driver's code of the fault that ended the engine, or null. No engine works on the card in this process after one. */
  get fault(): number | null {
    return this.#fault;
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
    this.#call('download', () => this.#driver.readSync(handle, from.offset, into.subarray(0, from.bytes)), from.bytes);
    this.#done.downloadedBytes += from.bytes;
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
    return this.#state.live ? this.#kernels.compiling(kernels as readonly CudaKernel[]) : null;
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (this.#state.live) this.#call('release', () => this.#kernels.release(kernels));
  }

  submit(commands: readonly Command[]): void {
    this.#state.check('submit');
    const { bytes, count, commands: written } = this.#call('compile', () => this.#encoder.encode(commands));
    if (count === 0) return;
    try {
      this.#driver.submit(bytes, count);
    } catch (error) {
      throw this.#stopped(error, commands, written);
    }
    this.#done.batches++;
    this.#done.commands += written;
  }

  /** Each command measured by the card's own clock. Waits for the batch before it returns. */
  async submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    this.#state.check('submit');
    return commands.map((command) => {
      const { bytes, count } = this.#call('compile', () => this.#encoder.encode([command]));
      if (count === 0) return 0;
      const [time = -1] = this.#call('submit', () => this.#driver.submitTimed(bytes, count));
      return time < 0 ? Number.NaN : time;
    });
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
    const [, , reserved = 0] = this.#call('memory', () => this.#driver.memoryInfo());
    return { ...held, reservedBytes: Math.max(held.reservedBytes, reserved) };
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
    return this.#state.lose(() => new DeviceLostError('cuda', this.device, reason, { cause: error }));
  }
}

showEngine(CudaEngine.prototype, 'CudaEngine');

/**
 * Makes a CUDA engine.
 *
 * @throws EngineMissingError where there is no native part, no driver, or no card that fits
 * @example
 * import { createCudaEngine, listCudaDevices } from '@polygrad/backend-cuda';
 * if (listCudaDevices().some(({ score }) => score > 0)) {
 *   const engine = createCudaEngine();
 *   const buffer = engine.alloc(8);
 *   engine.upload({ buffer, offset: 0, bytes: 8 }, Float32Array.of(1, 2));
 *   const bytes = await engine.download({ buffer, offset: 4, bytes: 4 }, new Uint8Array(4));
 *   if (new Float32Array(bytes.buffer)[0] !== 2) throw new Error('what was written is not what is read');
 *   engine.dispose();
 * }
 */
export function createCudaEngine(options: CudaEngineOptions = {}): CudaEngine {
  return new CudaEngine(setUp(options));
}
