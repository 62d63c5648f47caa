/** The native engine: machine code made from programs, in one shared memory, with threads of the addon. `submit` returns when all is done. */
import {
  type Binding,
  checkAttached,
  type Command,
  CompileError,
  type CompiledKernel,
  type EngineBuffer,
  type EngineCaps,
  EngineDisposedError,
  type EngineLostInfo,
  type EngineMemory,
  type IEngine,
  type KeptCode,
  type KernelSource,
  showEngine,
} from '@polygrad/core/engine';
import { CodeTable, Heap, HeapBuffers } from '@polygrad/core/engine/shaping';
import { type PackedProgram, packProgram, printProgram, type Program } from '@polygrad/core/kernel/ir';
import { emitMachineCode, MachineCodeError } from '@polygrad/emit-machine';
import type { Addon } from './addon.ts';
import { CommandCells } from './commands.ts';
import { Code, NativeKernel } from './kernel.ts';
import { SharedMemory } from './memory.ts';
import type { NativeEngineOptions } from './options.ts';
import { argSlots, factsOf, processorName, type Setup, setUp } from './setup.ts';

const firstBytes = 2 * 65536;

/**
 * An engine on machine code. Make one with `createNativeEngine`, which tries the machine first.
 *
 * @example
 * const engine: NativeEngine = createNativeEngine({ threads: 1 });
 * engine.name; // 'native'
 * engine.dispose();
 */
export class NativeEngine implements IEngine {
  readonly name = 'native';
  readonly inHostMemory = true;
  readonly device: string;
  readonly caps: EngineCaps;
  readonly lost: Promise<EngineLostInfo>;
  readonly codeKey: string;
  readonly #setup: Setup;
  readonly #memory: SharedMemory;
  readonly #buffers: HeapBuffers;
  readonly #cells: CommandCells;
  readonly #codes = new CodeTable<Code>();
  readonly #number: number;
  /** The cells that the addon knows, and the function that runs them. */
  #submitted: Float64Array | null = null;
  #submitCells: ReturnType<Addon['submitter']> | null = null;
  /** The list whose batch is in the cells, as long as none of its buffers or kernels can have been given back. */
  #written: readonly Command[] | null = null;
  #live = true;
  #tellLost!: (info: EngineLostInfo) => void;

  constructor(options: NativeEngineOptions = {}) {
    this.#setup = setUp(options);
    const { addon, caps, limit, target, threads } = this.#setup;
    this.codeKey = JSON.stringify(target);
    this.#memory = new SharedMemory(firstBytes, limit);
    this.#number = addon.create(new Uint8Array(this.#memory.buffer), threads);
    const heap = new Heap(this.#memory, 64, limit, () =>
      addon.resize(this.#number, new Uint8Array(this.#memory.buffer)),
    );
    this.#buffers = new HeapBuffers('native', heap);
    this.#cells = new CommandCells(this.#buffers, this.#codes);
    this.caps = caps;
    this.device = `${processorName()}, ${factsOf(this.#setup)}`;
    this.lost = new Promise((resolve) => {
      this.#tellLost = resolve;
    });
  }

  alloc(bytes: number): EngineBuffer {
    this.#check('alloc');
    return this.#buffers.alloc(bytes);
  }

  free(buffer: EngineBuffer): void {
    if (!this.#live) return;
    this.#written = null;
    this.#buffers.free(buffer);
  }

  upload(to: Binding, data: ArrayBufferView): void {
    this.#check('upload');
    checkAttached('upload', 'data', data);
    this.#bytesOf(to, data.byteLength).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    return this.downloadSync(from, into);
  }

  downloadSync(from: Binding, into: Uint8Array): Uint8Array {
    this.#check('download');
    into.set(this.#bytesOf(from, from.bytes));
    return into;
  }

  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    this.#check('compile');
    return programs.map((program) => {
      const packed = packProgram(program);
      // Checked code contains the lengths of its memory, which may differ between equal programs.
      let code = this.#setup.target.checked === true ? undefined : this.#codes.find(packed);
      if (code === undefined) {
        code = this.#load(program, packed);
        this.#codes.add(code);
      }
      code.users++;
      return new NativeKernel(this.#codes, program, packed, code, this.#setup.threads);
    });
  }

  #load(program: Program, packed: PackedProgram): Code {
    const { addon } = this.#setup;
    const { params, scalars, grid, kept } = program;
    const bytes = kept?.bytes instanceof Uint8Array ? kept.bytes : this.#emit(program, false).bytes;
    const number = addon.compile(this.#number, bytes, params.length, scalars.length, grid[0] * grid[1] * grid[2]);
    return new Code(packed, bytes, number);
  }

  codeOf(kernel: CompiledKernel): KeptCode {
    return { bytes: (kernel as NativeKernel).code.bytes };
  }

  #emit(program: Program, listing: boolean): ReturnType<typeof emitMachineCode> {
    const { name, params, scalars } = program;
    if (params.length > argSlots || scalars.length > argSlots)
      throw new CompileError(
        'native',
        name,
        `${params.length} tensors or ${scalars.length} scalars are more than ${argSlots}`,
        '',
      );
    try {
      return emitMachineCode(program, this.#setup.target, listing);
    } catch (error) {
      if (!(error instanceof MachineCodeError)) throw error;
      throw new CompileError('native', name, error.what, printProgram(program));
    }
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (!this.#live) return;
    this.#written = null;
    for (const kernel of kernels as readonly NativeKernel[]) {
      if (kernel.codes !== this.#codes) throw new Error('[native.release] the kernel belongs to another engine');
      if (kernel.released) continue;
      kernel.released = true;
      const { code } = kernel;
      if (--code.users > 0) continue;
      this.#codes.remove(code);
      this.#setup.addon.release(this.#number, code.number);
    }
  }

  submit(commands: readonly Command[]): void {
    this.#check('submit');
    // A list is never changed, so what it says is written there already.
    if (commands !== this.#written) this.#write(commands);
    const fault = this.#submitCells!();
    if (fault !== undefined) throw new Error(`[native.submit] a kernel reaches outside of its memory (check ${fault})`);
  }

  #write(commands: readonly Command[]): void {
    this.#written = null;
    this.#cells.clear();
    for (let i = 0; i < commands.length; i++) this.#cells.add(commands[i]!);
    const cells = this.#cells.close();
    if (cells !== this.#submitted) {
      this.#submitted = cells;
      this.#submitCells = this.#setup.addon.submitter(this.#number, cells);
    }
    this.#written = commands;
  }

  async submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    this.#check('submit');
    return commands.map((c) => {
      const start = performance.now();
      this.submit([c]);
      return (performance.now() - start) * 1e6;
    });
  }

  async source(kernel: CompiledKernel): Promise<KernelSource> {
    return {
      language: this.#setup.target.isa === 'arm64' ? 'arm64' : 'x64',
      text: this.#emit(kernel.program, true).text,
    };
  }

  async idle(): Promise<void> {}

  memory(): EngineMemory {
    const { bytes, count, heap } = this.#buffers;
    return { bytes, buffers: count, reservedBytes: this.#live ? heap.reserved : 0 };
  }

  /** Stops the threads; every later call throws EngineDisposedError. */
  dispose(): void {
    if (!this.#live) return;
    this.#live = false;
    this.#setup.addon.dispose(this.#number);
    this.#codes.clear();
    this.#buffers.clear();
    this.#tellLost({ reason: 'disposed', message: 'the native engine was disposed' });
  }

  #check(action: string): void {
    if (!this.#live) throw new EngineDisposedError('native', action);
  }

  #bytesOf(b: Binding, bytes: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, this.#buffers.addressOf(b, bytes), bytes);
  }
}

showEngine(NativeEngine.prototype, 'NativeEngine');
