/**
 * Pipelines: made asynchronously, shared by kernels with the same WGSL, made at once where work waits too long.
 *
 * Programs that no kernel uses any more stay for a while: a plan that is dropped often comes back.
 */
import { host } from '#host';
import { CompileError, type ReadyProgress } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/engine/planned';
import type { Layouts, Signature } from './layouts.ts';
import type { Shader } from './shader.ts';
import type { CompileProgress } from '../options.ts';

/** One pipeline, ready or on its way. */
export class Code {
  readonly shader: Shader;
  readonly signature: Signature;
  /** The first program that was printed as this text; for messages. */
  readonly program: Program;
  /** Let go when the pipeline is there: drivers keep the whole text as a tree. */
  module: GPUShaderModule | null;
  pipeline: GPUComputePipeline | null = null;
  failure: Error | null = null;
  users = 0;

  constructor(shader: Shader, signature: Signature, program: Program, module: GPUShaderModule) {
    this.shader = shader;
    this.signature = signature;
    this.program = program;
    this.module = module;
  }

  /** False while the pipeline is being made. */
  get settled(): boolean {
    return this.pipeline !== null || this.failure !== null;
  }
}

/** Pipelines kept that no kernel uses; software adapters hold machine code of half a MiB to two MiB for each in this process. */
const mostUnused = { hardware: 256, software: 32 };

export class Pipelines {
  readonly #device: GPUDevice;
  readonly #layouts: Layouts;
  readonly #codes = new Map<string, Code>();
  /** In the order in which they were given up. */
  readonly #unused = new Map<string, Code>();
  readonly #onSettled: (code: Code) => void;
  readonly #onCompile: ((progress: CompileProgress) => void) | undefined;
  #asked = 0;
  #done = 0;
  readonly #whenReady: (() => void)[] = [];
  readonly #told: ((progress: ReadyProgress) => void)[] = [];
  readonly #mostUnused: number;
  readonly #print: (program: Program) => string;

  /** `print` gives the text of programs, for messages. */
  constructor(
    device: GPUDevice,
    print: (program: Program) => string,
    layouts: Layouts,
    software: boolean,
    onSettled: (code: Code) => void,
    onCompile: ((progress: CompileProgress) => void) | undefined,
  ) {
    this.#device = device;
    this.#print = print;
    this.#layouts = layouts;
    this.#onSettled = onSettled;
    this.#onCompile = onCompile;
    this.#mostUnused = mostUnused[software ? 'software' : 'hardware'];
  }

  /** Pipelines on their way. */
  get pending(): number {
    return this.#asked - this.#done;
  }

  /** Resolves when none is on its way; until then `told` hears how many are made. */
  ready(told?: (progress: ReadyProgress) => void): Promise<void> {
    if (this.pending === 0) return Promise.resolve();
    if (told !== undefined) {
      told({ done: this.#done, total: this.#asked });
      this.#told.push(told);
    }
    return new Promise((resolve) => {
      this.#whenReady.push(resolve);
    });
  }

  /** The code of a program with one more user; starts making it if it is new. */
  take(program: Program, shader: Shader): Code {
    let code = this.#codes.get(shader.source);
    if (code === undefined) this.#codes.set(shader.source, (code = this.#start(shader, program)));
    if (code.users++ === 0) this.#unused.delete(shader.source);
    return code;
  }

  /** One user less. */
  drop(code: Code): void {
    if (--code.users > 0) return;
    const { source } = code.shader;
    this.#unused.set(source, code);
    if (this.#unused.size <= this.#mostUnused) return;
    const [oldest] = this.#unused.keys();
    this.#unused.delete(oldest as string);
    this.#codes.delete(oldest as string);
  }

  clear(): void {
    this.#codes.clear();
    this.#unused.clear();
  }

  #start(shader: Shader, program: Program): Code {
    const { source } = shader;
    const module = this.#quietly(() => this.#device.createShaderModule({ label: program.name, code: source }));
    const code = new Code(shader, this.#layouts.signature(shader), program, module);
    this.#asked++;
    this.#report(undefined);
    host
      .paced(() => this.#device.createComputePipelineAsync(this.#descriptor(code)))
      .then(
        (pipeline) => {
          code.pipeline ??= pipeline;
        },
        async (error: unknown) => {
          const { reason, where } = await explain(module, source, error);
          code.failure = new CompileError('webgpu', program.name, reason, `${where}${this.#print(program)}`, {
            cause: error,
          });
          // Not again from the cache: the next try may be on a driver that is less busy.
          if (this.#codes.get(source) === code) this.#codes.delete(source);
        },
      )
      .then(() => {
        code.module = null;
        this.#done++;
        this.#report(program.name);
        if (this.#done === this.#asked) {
          this.#done = this.#asked = 0;
          this.#told.length = 0;
          for (const tell of this.#whenReady.splice(0)) tell();
        }
        this.#onSettled(code);
      });
    return code;
  }

  /** Makes the pipeline before this returns, which may hold up the program for a while. */
  force(code: Code): void {
    if (code.settled) return;
    code.pipeline = this.#quietly(() => this.#device.createComputePipeline(this.#descriptor(code)));
  }

  /** Without a report on the side: the asynchronous pipeline tells what is wrong. */
  #quietly<T>(make: () => T): T {
    this.#device.pushErrorScope('validation');
    const made = make();
    host.paced(() => this.#device.popErrorScope()).catch(() => {});
    return made;
  }

  /** Of a pipeline that is not there yet. */
  #descriptor({ shader, signature, module, program }: Code): GPUComputePipelineDescriptor {
    const { entryPoint } = shader;
    const compute = { module: module as GPUShaderModule, entryPoint };
    return { label: program.name, layout: signature.layout, compute };
  }

  #report(kernel: string | undefined): void {
    const progress = { done: this.#done, total: this.#asked, kernel };
    this.#onCompile?.(progress);
    for (const told of this.#told) told(progress);
  }
}

/** Lines shown before and after the one at fault. */
const around = 2;

/** `reason` in one line; `where`: the lines concerned, empty where the compiler names none. Never throws. */
export async function explain(
  module: GPUShaderModule,
  source: string,
  error: unknown,
): Promise<{ reason: string; where: string }> {
  const said = error instanceof Error ? error.message : String(error);
  const messages: readonly GPUCompilationMessage[] = await host
    .paced(() => module.getCompilationInfo())
    .then(
      (info) => info.messages,
      () => [],
    );
  const worst = messages.find((m) => m.type === 'error');
  if (worst === undefined) return { reason: said.trim(), where: '' };
  const { lineNum, linePos, message } = worst;
  return { reason: `WGSL line ${lineNum}:${linePos}: ${message}`, where: excerpt(source, lineNum) };
}

function excerpt(source: string, line: number): string {
  const lines = source.split('\n');
  const from = Math.max(1, line - around);
  const shown = lines.slice(from - 1, line + around);
  return shown.map((text, i) => `${from + i === line ? '>' : ' '} ${from + i} | ${text}\n`).join('');
}
