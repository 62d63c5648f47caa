/**
 * What every CPU engine is: one WebAssembly memory, kernels with their code, worker threads that share it all. What makes code of programs is given to
 * it (kernel-code.ts), at once or later.
 *
 * `submit` returns when at most the workers' last share of the last command is left; whatever touches memory waits for that, so
 * `downloadSync` always works.
 */
import {
  checkAttached,
  type Binding,
  type Command,
  CompileError,
  type CompiledKernel,
  type EngineBuffer,
  type EngineCaps,
  type EngineLostInfo,
  type EngineMemory,
  type IEngine,
  type KeptCode,
  type KernelSource,
} from '@polygrad/core/engine';
import {
  CodeTable,
  Heap,
  HeapBuffers,
  type PackedProgram,
  packProgram,
  type Program,
  sameCode,
} from '@polygrad/core/engine/planned';
import { assembleModule, type FunctionBody, type MemoryImport } from './asm/module.ts';
import type { EmitTarget } from './emit/target.ts';
import { EngineState } from './engine-state.ts';
import { CommandQueue, type QueueSetup } from './command-queue.ts';
import { Code, CodeModule, CpuKernel } from './kernel.ts';
import type { KernelCode } from './kernel-code.ts';
import { argSlots, heapAt } from './memory/layout.ts';
import type { CpuEngineOptions } from './options.ts';
import { setUp, sharedBytes } from './setup.ts';
import { processorName } from '#host';
import { Workers } from './threads/workers.ts';
import { ArgsBlock } from './memory/args.ts';

/** An engine on WebAssembly. */
export class WasmEngine implements IEngine {
  readonly name = 'cpu';
  readonly inHostMemory = true;
  readonly device: string;
  readonly caps: EngineCaps;
  readonly lost: Promise<EngineLostInfo>;
  readonly codeKey: string;
  readonly isPortable = true;
  readonly #state = new EngineState();
  readonly #threads: number;
  readonly #memory: WebAssembly.Memory;
  readonly #import: MemoryImport;
  readonly #target: EmitTarget;
  readonly #buffers: HeapBuffers;
  readonly #queue: CommandQueue;
  readonly #view: QueueSetup['view'];
  readonly #workers: Workers | null;
  readonly #codes = new CodeTable<Code>();

  /** What makes code of programs. Throws where it is still to be loaded. */
  readonly #compiler: () => KernelCode;

  /** `lowering` are capabilities; those who ask for what is not there yet are told to wait, as by `compiler`. */
  constructor(options: CpuEngineOptions, lowering: EngineCaps['lowering'], compiler: () => KernelCode) {
    const setup = setUp(options, lowering);
    this.#compiler = compiler;
    const { threads, memory, target } = setup;
    this.#threads = threads;
    this.#memory = memory;
    this.#import = setup.memoryImport;
    this.#target = target;
    this.codeKey = JSON.stringify(target);
    const wide = target.addressBits === 64;
    const args = new ArgsBlock(memory, wide);
    const heap = new Heap(memory, heapAt, setup.limit, () => args.refresh(), wide);
    const scratch = Array.from({ length: threads }, () => heap.alloc(sharedBytes).address);
    const buffers = new HeapBuffers('cpu', heap);
    const workers = threads > 1 ? new Workers(memory, heap, scratch, wide) : null;
    this.#buffers = buffers;
    this.#workers = workers;
    const view: QueueSetup['view'] = (b, bytes) => new Uint8Array(memory.buffer, buffers.addressOf(b, bytes), bytes);
    this.#queue = new CommandQueue({ buffers, args, workers, scratch: scratch[0]!, view });
    this.#view = view;
    this.device = `${processorName()}, ${threads} thread${threads === 1 ? '' : 's'}`;
    this.caps = setup.caps;
    this.lost = this.#state.lost;
  }

  /** Workers that have started so far; for tests and reports. */
  get readyWorkers(): number {
    return this.#workers?.ready ?? 0;
  }

  alloc(bytes: number): EngineBuffer {
    this.#state.check('alloc');
    return this.#buffers.alloc(bytes);
  }

  free(buffer: EngineBuffer): void {
    if (this.#state.live) this.#buffers.free(buffer);
  }

  upload(to: Binding, data: ArrayBufferView): void {
    this.#state.check('upload');
    checkAttached('upload', 'data', data);
    this.#bytesOf(to, data.byteLength).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    return this.downloadSync(from, into);
  }

  downloadSync(from: Binding, into: Uint8Array): Uint8Array {
    this.#state.check('download');
    into.set(this.#bytesOf(from, from.bytes));
    return into;
  }

  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    this.#state.check('compile');
    const packed = programs.map(packProgram);
    const codes = packed.map((p) => this.#codes.find(p));
    const fresh: { readonly program: Program; readonly packed: PackedProgram }[] = [];
    for (const [i, p] of packed.entries()) {
      if (codes[i] === undefined && !fresh.some((f) => sameCode(f.packed, p)))
        fresh.push({ program: programs[i]!, packed: p });
    }
    if (fresh.length > 0) {
      this.#workers?.start();
      const bodies = fresh.map(
        ({ program }) =>
          (program.kept as FunctionBody | null) ?? this.#compiler().emitFunction(checkSlots(program), this.#target),
      );
      const module = this.#load(bodies);
      module.users = fresh.length;
      for (const [index, f] of fresh.entries()) this.#codes.add(new Code(f.packed, module, index, bodies[index]!));
    }
    return packed.map((p, i) => {
      const code = codes[i] ?? this.#codes.find(p)!;
      code.users++;
      // Of a program without a body this is all there is.
      const again = programs[i]!.body.length === 0 ? always(programs[i]!) : this.#unpacked(p);
      return new CpuKernel(p, code, this.#threads, again);
    });
  }

  /** Makes a program again. A method of its own, as a closure of `compile` would keep all programs that it was given. */
  #unpacked(packed: PackedProgram): () => Program {
    return () => this.#compiler().unpackProgram(packed);
  }

  codeOf(kernel: CompiledKernel): KeptCode {
    return (kernel as CpuKernel).code.body as FunctionBody & KeptCode;
  }

  release(kernels: readonly CompiledKernel[]): void {
    if (!this.#state.live) return;
    for (const kernel of kernels as readonly CpuKernel[]) {
      if (kernel.released) continue;
      kernel.released = true;
      const { code } = kernel;
      if (--code.users > 0) continue;
      this.#codes.remove(code);
      const { module } = code;
      if (--module.users === 0 && module.published !== null) this.#workers!.withdraw(module.published);
    }
  }

  submit(commands: readonly Command[]): void {
    this.#begin(commands);
    for (const c of commands) this.#queue.run(c);
  }

  /** The clock of browsers has steps of 5 microseconds, 100 where the page is not cross-origin isolated. */
  async submitTimed(commands: readonly Command[]): Promise<readonly number[]> {
    this.#begin(commands);
    return commands.map((c) => {
      this.#queue.finish();
      const start = performance.now();
      this.#queue.run(c);
      this.#queue.finish();
      return (performance.now() - start) * 1e6;
    });
  }

  async source(kernel: CompiledKernel): Promise<KernelSource> {
    const { functionText } = await import('./asm/text.ts');
    return { language: 'wasm', text: functionText((kernel as CpuKernel).code.body) };
  }

  #begin(commands: readonly Command[]): void {
    this.#state.check('submit');
    if (this.#workers !== null && this.#workers.ready > 0) this.#workers.before(sharableNs(commands));
  }

  async idle(): Promise<void> {
    if (this.#state.live) this.#queue.finish();
  }

  memory(): EngineMemory {
    const { bytes, count, heap } = this.#buffers;
    return { bytes, buffers: count, reservedBytes: this.#state.live ? heap.reserved : 0 };
  }

  /** Stops the workers; every later call throws EngineDisposedError. */
  dispose(): void {
    if (!this.#state.dispose()) return;
    this.#workers?.dispose();
    this.#codes.clear();
    this.#buffers.clear();
  }

  /** The bytes of a binding, which nothing reads or writes any more. */
  #bytesOf(b: Binding, bytes: number): Uint8Array {
    this.#queue.finish();
    return this.#view(b, bytes);
  }

  #load(functions: readonly FunctionBody[]): CodeModule {
    const bytes = assembleModule(this.#import, functions);
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { m: this.#memory } });
    return new CodeModule(instance.exports, this.#workers?.publish(bytes) ?? null);
  }
}

/** Estimated nanoseconds of what a batch lets several threads do. */
function sharableNs(commands: readonly Command[]): number {
  let work = 0;
  for (const c of commands)
    if (c.kind === 'dispatch' && (c.kernel as CpuKernel).shares.chunk > 0) work += (c.kernel as CpuKernel).estimate;
  return work;
}

const always = (program: Program) => (): Program => program;

function checkSlots(p: Program): Program {
  if (p.params.length <= argSlots && p.scalars.length <= argSlots) return p;
  throw new CompileError(
    'cpu',
    p.name,
    `${p.params.length} tensors or ${p.scalars.length} scalars are more than ${argSlots}`,
    '',
  );
}
