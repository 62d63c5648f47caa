/**
 * The OpenCL engine: one context and one in-order queue on one device.
 *
 * A batch is enqueued with one native call and runs while JavaScript goes on. Reads wait on a thread of the addon, never on
 * the event loop, unless `downloadSync` asks for it.
 */
import {
  type Binding,
  type Command,
  CompileError,
  type CompiledKernel,
  DeviceLostError,
  type EngineBuffer,
  type EngineCaps,
  EngineDisposedError,
  type EngineLostInfo,
  type EngineMemory,
  type IEngine,
  type KernelSource,
  OutOfMemoryError,
} from '@polygrad/core/engine';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { PrintError } from '@polygrad/emit-c';
import type { Driver } from './addon.ts';
import { CommandWriter } from './commands.ts';
import { isNativeError, translate } from './errors.ts';
import { OpenClKernel, printKernel } from './kernel.ts';
import { BuildError, ProgramStore } from './programs.ts';
import { isRepeatable } from './repeatable.ts';
import { explainBuild } from './build-log.ts';
import { type OpenClEngineOptions, type Setup, setUp } from './setup.ts';

/** Device memory. */
class OpenClBuffer implements EngineBuffer {
  readonly owner: OpenClEngine;
  readonly bytes: number;
  /** The driver's number, or -1 after `free`. */
  handle: number;

  constructor(owner: OpenClEngine, bytes: number, handle: number) {
    this.owner = owner;
    this.bytes = bytes;
    this.handle = handle;
  }
}

/** An engine on an OpenCL device. Make one with `createOpenClEngine`. */
export class OpenClEngine implements IEngine {
  readonly name = 'opencl';
  readonly device: string;
  readonly caps: EngineCaps;
  readonly lost: Promise<EngineLostInfo>;
  /** Why programs are not kept on disk, or null. */
  readonly cacheRefused: string | null;
  readonly #setup: Setup;
  readonly #driver: Driver;
  readonly #programs: ProgramStore;
  readonly #writer = new CommandWriter();
  #state: 'live' | 'disposed' | 'lost' = 'live';
  /** What the driver said when it lost the device. */
  #loss = '';
  #bytes = 0;
  #buffers = 0;
  #onLost!: (info: EngineLostInfo) => void;

  constructor(setup: Setup) {
    this.#setup = setup;
    this.#driver = setup.driver;
    this.device = setup.device;
    this.caps = setup.caps;
    this.cacheRefused = setup.cache?.refused ?? null;
    this.#programs = new ProgramStore(setup.driver, setup.cache, setup.buildOptions, setup.identity, setup.reload);
    this.lost = new Promise((resolve) => {
      this.#onLost = resolve;
    });
  }

  /** Kernels compiled and kernels loaded from disk since the engine was made. */
  get builds(): { readonly compiled: number; readonly fromDisk: number } {
    const { compiled, fromDisk } = this.#programs;
    return { compiled, fromDisk };
  }

  alloc(bytes: number): EngineBuffer {
    this.#use('alloc');
    const { limit } = this.#setup;
    if (bytes > this.caps.maxBufferBytes || this.#bytes + bytes > limit) throw this.#outOfMemory(bytes);
    const handle = this.#call('alloc', () => this.#driver.alloc(Math.max(4, bytes)), bytes);
    this.#bytes += bytes;
    this.#buffers++;
    return new OpenClBuffer(this, bytes, handle);
  }

  free(buffer: EngineBuffer): void {
    if (this.#state !== 'live') return;
    const own = this.#own(buffer);
    const { handle } = own;
    own.handle = -1;
    this.#bytes -= own.bytes;
    this.#buffers--;
    this.#call('free', () => this.#driver.free(handle));
  }

  upload(to: Binding, data: ArrayBufferView): void {
    this.#use('upload');
    const handle = this.#within(to, data.byteLength);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#call('upload', () => this.#driver.upload(handle, to.offset, bytes), data.byteLength);
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    this.#use('download');
    const handle = this.#within(from, from.bytes);
    try {
      await this.#driver.read(handle, from.offset, into.subarray(0, from.bytes));
    } catch (error) {
      throw this.#failed(error, 'download', from.bytes);
    }
    return into;
  }

  downloadSync(from: Binding, into: Uint8Array): Uint8Array {
    this.#use('download');
    const handle = this.#within(from, from.bytes);
    this.#call('download', () => this.#driver.readSync(handle, from.offset, into.subarray(0, from.bytes)), from.bytes);
    return into;
  }

  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    this.#use('compile');
    const printed = programs.map((program) => {
      try {
        return printKernel(program, this.#setup.printOptions);
      } catch (error) {
        if (!(error instanceof PrintError)) throw error;
        throw new CompileError('opencl', program.name, error.message, printProgram(program), { cause: error });
      }
    });
    const made: OpenClKernel[] = [];
    try {
      const held = this.#programs.take(printed);
      for (const [i, program] of held.entries()) made.push(new OpenClKernel(programs[i]!, printed[i]!, program));
      for (const kernel of made)
        kernel.handle = this.#driver.kernel(kernel.held.module.handle, kernel.held.entry, kernel.layout);
    } catch (error) {
      this.release(made);
      if (error instanceof BuildError) throw explainBuild(error, programs[error.index]!, printed[error.index]!);
      throw this.#failed(error, 'compile', 0);
    }
    return made;
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (this.#state !== 'live') return;
    for (const kernel of kernels as readonly OpenClKernel[]) {
      if (kernel.released) continue;
      kernel.released = true;
      if (kernel.handle >= 0) this.#driver.releaseKernel(kernel.handle);
      this.#programs.release(kernel.held);
    }
  }

  submit(commands: readonly Command[]): void {
    this.#use('submit');
    this.#write(commands);
    const writer = this.#writer;
    if (writer.count > 0) this.#start(writer, commands);
  }

  /** Each command measured by the device's own clock. Waits for the batch before it returns. */
  async submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    this.#use('submit');
    const times: number[] = [];
    for (const command of commands) {
      this.#write([command]);
      const { bytes, count } = this.#writer;
      const [time = 0] = count === 0 ? [] : this.#call('submit', () => this.#driver.submitTimed(bytes, count));
      times.push(time < 0 ? Number.NaN : time);
    }
    return times;
  }

  #write(commands: readonly Command[]): void {
    const writer = this.#writer;
    writer.start();
    for (const c of commands) {
      switch (c.kind) {
        case 'dispatch':
          this.#dispatch(c.kernel as OpenClKernel, c.bindings, c.scalars);
          break;
        case 'copy': {
          const { bytes } = c.from;
          if (bytes === 0) break;
          writer.copy(this.#within(c.from, bytes), c.from.offset, this.#within(c.to, bytes), c.to.offset, bytes);
          break;
        }
        case 'fill':
          if (c.to.bytes > 0) writer.fill(this.#within(c.to, c.to.bytes), c.to.offset, c.to.bytes, c.pattern);
          break;
        default:
          c satisfies never;
      }
    }
  }

  #start(writer: CommandWriter, commands: readonly Command[]): void {
    try {
      this.#driver.submit(writer.bytes, writer.count);
    } catch (error) {
      // The library frees memory and submits the batch again: that must not find inputs that are overwritten already.
      const translated = this.#failed(error, 'submit', 0);
      const done = isNativeError(error) ? error.command : 0;
      // Empty commands were not given to the driver.
      const begun = commands.slice(0, done + commands.length - writer.commands);
      if (translated instanceof OutOfMemoryError && done > 0 && !isRepeatable(begun))
        throw this.#lose(
          `the driver had no room for command ${done} of a batch that had changed its inputs by then`,
          error,
        );
      throw translated;
    }
  }

  async idle(): Promise<void> {
    if (this.#state !== 'live') return;
    try {
      await this.#driver.idle();
    } catch (error) {
      throw this.#failed(error, 'idle', 0);
    }
  }

  memory(): EngineMemory {
    return { bytes: this.#bytes, buffers: this.#buffers, reservedBytes: this.#bytes };
  }

  async source(kernel: CompiledKernel): Promise<KernelSource> {
    return { language: 'opencl', text: (kernel as OpenClKernel).source };
  }

  /** Waits for what runs and gives everything back; every later call throws EngineDisposedError. */
  dispose(): void {
    if (this.#state === 'disposed') return;
    const wasLive = this.#state === 'live';
    this.#state = 'disposed';
    this.#bytes = this.#buffers = 0;
    this.#driver.dispose();
    if (wasLive) this.#onLost({ reason: 'disposed', message: 'the OpenCL engine was disposed' });
  }

  #dispatch(kernel: OpenClKernel, bindings: readonly Binding[], scalars: readonly (number | bigint)[]): void {
    const { params, scalars: slots, program } = kernel;
    if (kernel.released) throw new Error(`[opencl.submit] kernel '${program.name}' was released`);
    if (bindings.length < kernel.bindingCount || scalars.length !== slots.length)
      throw new Error(
        `[opencl.submit] kernel '${program.name}' takes ${kernel.bindingCount} tensors and ${slots.length} scalars: ` +
          `got ${bindings.length} and ${scalars.length}`,
      );
    if (kernel.empty) return;
    const writer = this.#writer;
    const at = writer.dispatch(kernel.handle, kernel.argumentCount);
    for (let i = 0; i < params.length; i++) {
      const p = params[i]!;
      const b = bindings[p.slot]!;
      writer.buffer(at + p.binding, this.#within(b, b.bytes));
      writer.offset(at + p.offsetArgument, b.offset / p.bytes);
    }
    for (let i = 0; i < slots.length; i++) {
      const s = slots[i]!;
      writer.scalar(at + s.at, s.dtype, scalars[s.slot]!);
    }
  }

  #use(action: string): void {
    if (this.#state === 'disposed') throw new EngineDisposedError('opencl', action);
    if (this.#state === 'lost') throw new DeviceLostError('opencl', this.device, this.#loss);
  }

  #own(buffer: EngineBuffer): OpenClBuffer {
    const own = buffer as OpenClBuffer;
    if (own.owner !== this) throw new Error('[opencl] the buffer belongs to another engine: allocate it from this one');
    if (own.handle < 0) throw new Error('[opencl] the buffer was freed: its memory may hold something else by now');
    return own;
  }

  /** The number of a binding's buffer; the binding must lie inside. */
  #within(b: Binding, bytes: number): number {
    const own = this.#own(b.buffer);
    if (!(b.offset >= 0 && b.offset + bytes <= own.bytes))
      throw new Error(
        `[opencl] a binding lies outside its buffer: offset ${b.offset} and ${bytes} bytes of ${own.bytes}`,
      );
    return own.handle;
  }

  #outOfMemory(requested: number): OutOfMemoryError {
    const { limit } = this.#setup;
    const hint =
      requested > this.caps.maxBufferBytes
        ? `the device takes at most ${this.caps.maxBufferBytes} bytes in one buffer: split the tensor`
        : undefined;
    return new OutOfMemoryError('opencl', { requested, live: this.#bytes, reserved: this.#bytes, limit }, hint);
  }

  #call<T>(action: string, call: () => T, requested = 0): T {
    try {
      return call();
    } catch (error) {
      throw this.#failed(error, action, requested);
    }
  }

  #failed(error: unknown, action: string, requested: number): unknown {
    const translated = translate(error, action, this.device, {
      requested,
      live: this.#bytes,
      limit: this.#setup.limit,
    });
    return translated instanceof DeviceLostError ? this.#lose(translated.reason, error) : translated;
  }

  /** From now on the device is lost. */
  #lose(reason: string, cause: unknown): DeviceLostError {
    const error = new DeviceLostError('opencl', this.device, reason, { cause });
    if (this.#state === 'live') {
      this.#state = 'lost';
      this.#loss = reason;
      this.#onLost({ reason: 'lost', message: error.message });
    }
    return error;
  }
}

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
