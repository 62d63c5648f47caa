/**
 * What every WebGPU engine is: buffers, pipelines and queue of one device behind the interface that all engines have. What makes WGSL of programs is given
 * to it (kernel-code.ts), at once or later.
 *
 * Nothing here waits. What needs a pipeline that is still being made waits in the command queue, with everything asked for
 * after it; all else goes to the device's queue at once, in order.
 */
import {
  type Binding,
  checkAttached,
  type Command,
  type CompiledKernel,
  type EngineBuffer,
  type EngineCaps,
  type EngineLostInfo,
  type EngineMemory,
  type EngineTuning,
  type KernelSource,
  type ReadyProgress,
  showCaps,
  showEngine,
} from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/engine/planned';
import { host } from '#host';
import type { Found } from './device/naming.ts';
import type { DeviceArithmetic } from './device/arithmetic.ts';
import { CommandQueue } from './commands/command-queue.ts';
import { BindGroups } from './kernels/bindings.ts';
import { capsOf, tuningOf } from './device/device.ts';
import { checkArguments, checkBindings, insideBuffer, ownBuffer } from './commands/checks.ts';
import { CommandEncoder } from './commands/command-encoder.ts';
import type { KernelCode } from './kernel-code.ts';
import { WebGpuKernel } from './kernels/kernel.ts';
import { Layouts } from './kernels/layouts.ts';
import { Memory } from './memory.ts';
import { checkOptions, type WebGpuEngineOptions } from './options.ts';
import { type Code, Pipelines } from './kernels/pipelines.ts';
import { Poison } from './commands/poison.ts';
import type { Traffic, WebGpuEngine as Public } from './public.ts';
import { Staging } from './transfers/staging.ts';
import { Stopwatch } from './commands/stopwatch.ts';
import { Transfers } from './transfers/transfers.ts';
import { EngineState } from './engine-state.ts';
import { Uniforms } from './commands/uniforms.ts';
import { UploadRing } from './transfers/upload-ring.ts';

/** Memory for software adapters where the machine's own is not known. */
const softwareMemory = 2 ** 31;

/** An engine on a WebGPU device. */
export class WebGpuEngine implements Public {
  readonly name = 'webgpu';
  readonly device: string;
  /** True where a processor pretends to be a GPU: the CPU engine is faster. */
  readonly software: boolean;
  /** True where the compiler regroups float arithmetic: kernels then keep it from that. */
  readonly reassociates: boolean;
  readonly caps: EngineCaps;
  readonly tuning?: EngineTuning;
  readonly submitTimed?: (commands: readonly Command[]) => Promise<readonly number[]>;
  readonly #gpu: GPUDevice;
  readonly #state: EngineState;
  readonly #memory: Memory;
  readonly #pipelines: Pipelines;
  readonly #groups: BindGroups;
  readonly #encoder: CommandEncoder;
  readonly #staging: Staging;
  readonly #ring: UploadRing;
  readonly #transfers: Transfers;
  readonly #queue: CommandQueue;
  readonly #poison = new Poison();
  readonly #compiler: KernelCode;

  /** Takes over a device and everything made with it. Unless told, its arithmetic is taken to do all that WGSL allows. */
  constructor(
    gpu: GPUDevice,
    { name, software, subgroups }: Omit<Found, 'adapter'>,
    compiler: KernelCode,
    options: WebGpuEngineOptions = {},
    { regroups = true, flushes = true }: DeviceArithmetic = {},
  ) {
    checkOptions(options);
    this.#compiler = compiler;
    this.#gpu = gpu;
    this.reassociates = options.reassociates ?? regroups;
    this.device = `${name}${this.reassociates ? ', regroups sums' : ''}${flushes ? ', flushes denormals' : ''}`;
    this.software = software;
    const tuning = tuningOf(options, software);
    if (tuning !== undefined) this.tuning = tuning;
    // Group memory of a software adapter is ordinary memory: using it only costs time, and takes long to compile.
    const own = options.subgroups === false ? undefined : subgroups;
    this.caps = showCaps({
      ...capsOf(gpu, compiler.lowering, options.maxBindings),
      subgroups: own,
      sharedIsMemory: software,
      flushesDenormals: flushes,
      keepRounding: this.reassociates ? compiler.keepRounding : undefined,
      ...compiler.caps,
    });
    this.#state = new EngineState(gpu, name);
    const most = software ? (host.memoryBytes() ?? 2 * softwareMemory) / 2 : Number.POSITIVE_INFINITY;
    this.#memory = new Memory(gpu, this.caps.maxBufferBytes, options.memory ?? most, (error, buffer) => {
      this.#state.explain(error);
      this.#poison.mark(buffer, error);
    });
    const layouts = new Layouts(gpu);
    this.#pipelines = new Pipelines(
      gpu,
      compiler.printProgram,
      layouts,
      software,
      (code) => this.#settled(code),
      options.onCompile,
    );
    this.#groups = new BindGroups(gpu);
    this.#encoder = new CommandEncoder(gpu, this.#groups, new Uniforms(gpu, layouts));
    this.#staging = new Staging(gpu);
    this.#ring = new UploadRing(gpu, this.#encoder);
    this.#transfers = new Transfers(gpu, this.#encoder, this.#staging, this.#ring, this.#memory);
    this.#queue = new CommandQueue(
      (code) => this.#pipelines.force(code),
      (error) => this.#state.report(error),
    );
    if (gpu.features.has('timestamp-query')) this.submitTimed = (commands) => this.#submitTimed(commands);
    this.#state.lost.then(() => this.#letGo());
  }

  get lost(): Promise<EngineLostInfo> {
    return this.#state.lost;
  }

  /** Submissions, passes and dispatches since the start; for tests and reports. */
  get traffic(): Readonly<Traffic> {
    return this.#encoder.traffic;
  }

  /** Pipelines being made, and batches that wait for them. */
  get waiting(): { readonly pipelines: number; readonly batches: number } {
    return { pipelines: this.#pipelines.pending, batches: this.#queue.size };
  }

  alloc(bytes: number): EngineBuffer {
    this.#state.check('alloc');
    return this.#memory.alloc(bytes);
  }

  confirming(): Promise<void> | null {
    return this.#state.live ? this.#memory.confirming() : null;
  }

  free(buffer: EngineBuffer): void {
    if (!this.#state.live) return;
    const own = ownBuffer(this.#memory, buffer);
    this.#memory.forget(own);
    const destroy = (): void => {
      this.#poison.gone(own);
      this.#memory.destroy(own);
    };
    if (own.refused === null) this.#queue.add([], 0, destroy);
    else destroy();
  }

  upload(to: Binding, data: ArrayBufferView): void {
    this.#state.check('upload');
    checkAttached('upload', 'data', data);
    const own = insideBuffer(this.#memory, to, data.byteLength);
    let bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    // The source may change before its turn comes.
    const waits = !this.#queue.empty;
    if (waits) bytes = bytes.slice();
    this.#queue.add([], waits ? bytes.length : 0, () => {
      this.#poison.begin();
      this.#poison.written(own);
      this.#transfers.upload(to, bytes);
    });
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    this.#state.check('download');
    const own = insideBuffer(this.#memory, from, from.bytes);
    if (into.length < from.bytes)
      throw new Error(`[webgpu] ${from.bytes} bytes do not fit into ${into.length}: give a larger array`);
    const read = new Promise<void>((resolve, reject) => {
      this.#queue.add([], 0, () => {
        if (own.failure !== null) reject(own.failure);
        else this.#transfers.read(from, into, from.bytes).then(resolve, reject);
      });
    });
    await this.#state.guard(read);
    const error = own.failure ?? this.#state.takeReported();
    if (error !== null) throw error;
    return into;
  }

  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    this.#state.check('compile');
    const { shaderOf, printProgram } = this.#compiler;
    const kernels: WebGpuKernel[] = [];
    try {
      for (const program of programs) {
        checkBindings(program, this.caps, printProgram);
        const code = this.#pipelines.take(program, shaderOf(program, this.caps.dtypes.has('float16')));
        kernels.push(new WebGpuKernel(program, code));
      }
    } catch (error) {
      this.release(kernels);
      throw error;
    }
    return kernels;
  }

  ready(told?: (progress: ReadyProgress) => void): Promise<void> {
    if (this.#state.end !== null) return Promise.reject(this.#state.end);
    return this.#state.guard(this.#pipelines.ready(told));
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (!this.#state.live) return;
    for (const kernel of kernels as readonly WebGpuKernel[]) {
      if (kernel.released) continue;
      kernel.released = true;
      this.#pipelines.drop(kernel.code);
    }
  }

  submit(commands: readonly Command[]): void {
    this.#queue.add(this.#missing(commands), 0, () => this.#run(commands));
  }

  async source(kernel: CompiledKernel): Promise<KernelSource> {
    return { language: 'wgsl', text: (kernel as WebGpuKernel).code.shader.source };
  }

  #submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    const times = new Promise<readonly number[]>((resolve, reject) => {
      this.#queue.add(this.#missing(commands), 0, () => {
        const stopwatch = new Stopwatch(this.#gpu, commands.length);
        try {
          this.#run(commands, stopwatch);
          stopwatch.read().then(resolve, reject);
        } catch (error) {
          reject(error);
        }
      });
    });
    return this.#state.guard(times);
  }

  /** The pipelines that the commands wait for. Refuses commands that are not right. */
  #missing(commands: readonly Command[]): Code[] {
    this.#state.check('submit');
    const missing: Code[] = [];
    for (const c of commands) {
      if (c.kind === 'dispatch') {
        const kernel = c.kernel as WebGpuKernel;
        checkArguments(kernel, c.bindings, c.scalars, this.#memory, this.caps);
        if (!kernel.code.settled && !missing.includes(kernel.code)) missing.push(kernel.code);
      } else {
        insideBuffer(this.#memory, c.to, c.to.bytes);
        if (c.kind === 'copy') insideBuffer(this.#memory, c.from, c.from.bytes);
      }
    }
    return missing;
  }

  idle(): Promise<void> {
    if (this.#state.end !== null) return Promise.reject(this.#state.end);
    const done = new Promise<void>((resolve, reject) => {
      this.#queue.add([], 0, () => {
        host.paced(() => this.#gpu.queue.onSubmittedWorkDone()).then(resolve, reject);
      });
    });
    return this.#state.guard(done);
  }

  memory(): EngineMemory {
    return this.#memory.figures();
  }

  /** Releases the device. Reads that have not ended reject; every later call throws EngineDisposedError. */
  dispose(): void {
    this.#state.dispose();
    this.#letGo();
    this.#gpu.destroy();
  }

  #letGo(): void {
    this.#queue.clear();
    this.#encoder.abandon();
    this.#groups.clear();
    this.#pipelines.clear();
    this.#staging.clear();
    this.#ring.clear();
    this.#memory.clear();
  }

  #run(commands: readonly Command[], stopwatch: Stopwatch | null = null): void {
    this.#poison.begin();
    try {
      if (stopwatch !== null) this.#encoder.measure(stopwatch);
      for (const [i, c] of commands.entries()) {
        if (stopwatch !== null) this.#encoder.command(i);
        if (c.kind === 'dispatch') {
          const kernel = c.kernel as WebGpuKernel;
          if (this.#poison.stops(kernel, c.bindings) === null) this.#encoder.dispatch(kernel, c);
        } else if (c.kind === 'copy') this.#transfers.copy(c.from, c.to);
        else this.#transfers.fill(c.to, c.pattern);
      }
      if (stopwatch !== null) this.#encoder.measure(null);
      this.#encoder.submit();
    } catch (error) {
      this.#encoder.abandon();
      throw error;
    }
  }

  #settled(code: Code): void {
    // Work that could not wait used the pipeline before its error was known.
    if (code.failure !== null && code.pipeline !== null) this.#state.report(code.failure);
    if (this.#state.live) this.#queue.drain();
  }
}

showEngine(WebGpuEngine.prototype, 'WebGpuEngine');
