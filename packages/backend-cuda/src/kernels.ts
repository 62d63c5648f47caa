/** The engine's kernels: emitted, compiled in the background, made when they are first run or somebody waits for them. */
import { isNativeError, type KernelTable, type NativeError, withDriverCode } from '@polygrad/addon';
import { CompileError, type KernelSource } from '@polygrad/core/engine';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { emitPtx, PtxError, type PtxKernel } from '@polygrad/emit-ptx';
import { codeName, refusals } from './errors.ts';
import { CudaKernel } from './kernel.ts';
import { type Held, Modules } from './modules.ts';
import type { Setup } from './setup.ts';

/** Lines of the compiler's words that are worth repeating. */
const longestLog = 40;

export class Kernels implements KernelTable<CudaKernel> {
  readonly #setup: Setup;
  readonly #modules: Modules;

  constructor(setup: Setup) {
    this.#setup = setup;
    this.#modules = new Modules(setup.driver);
  }

  /** Texts compiled since the engine was made, and how often a text was there already. */
  get counts(): { readonly compiled: number; readonly reused: number } {
    const { compiled, reused } = this.#modules;
    return { compiled, reused };
  }

  /** True for programs that a library computes, which are compiled if it fails. */
  #isForLibrary({ product }: Program): boolean {
    return product !== undefined && this.#setup.library?.takes(product) === true;
  }

  start(programs: readonly Program[]): CudaKernel[] {
    const emitted = programs.map((program) => {
      try {
        return emitPtx(program, this.#setup.target);
      } catch (error) {
        if (!(error instanceof PtxError)) throw error;
        throw new CompileError('cuda', program.name, error.message, printProgram(program), { cause: error });
      }
    });
    return programs.map((program, i) => {
      const kernel = emitted[i]!;
      return new CudaKernel(program, kernel, this.#isForLibrary(program) ? null : this.#modules.take(kernel.text));
    });
  }

  handleOf(kernel: CudaKernel): number {
    if (kernel.handle >= 0) return kernel.handle;
    const { program, emitted, layout } = kernel;
    try {
      kernel.held ??= this.#modules.take(emitted.text);
      kernel.handle = this.#setup.driver.kernel(this.#modules.handleOf(kernel.held), emitted.entry, layout);
    } catch (error) {
      if (isNativeError(error) && refusals.has(error.code)) throw explain(error, program, emitted);
      throw error;
    }
    return kernel.handle;
  }

  compiling(kernels: readonly CudaKernel[]): Promise<void> | null {
    const open: Held[] = [];
    for (const { handle, held } of kernels) if (handle < 0 && held !== null && held.building) open.push(held);
    return open.length === 0 ? null : this.#modules.whenBuilt(open);
  }

  ready(): Promise<void> {
    return this.#modules.whenBuilt();
  }

  release(kernels: readonly CudaKernel[]): void {
    for (const kernel of kernels) {
      if (kernel.released) continue;
      kernel.released = true;
      if (kernel.handle >= 0) this.#setup.driver.releaseKernel(kernel.handle);
      if (kernel.held !== null) this.#modules.release(kernel.held);
    }
  }
}

/** The text the driver was given. */
export function sourceOf({ emitted }: CudaKernel): KernelSource {
  return { language: 'ptx', text: emitted.text };
}

/** What the driver's compiler says about a kernel: with the line of PTX, its IR, and the log. */
function explain(error: NativeError, program: Program, { text, lines }: PtxKernel): CompileError {
  const log = error.log.trim().split('\n').slice(0, longestLog).join('\n');
  const number = Number(/\bline (\d+)/.exec(log)?.[1] ?? 0);
  const line = text.split('\n')[number - 1]?.trim();
  const node = lines[number - 1];
  const where = line === undefined ? '' : ` at line ${number}, \`${line}\`${node ? ` (${node.op} ${node.dtype})` : ''}`;
  const what = `the compiler of the driver refuses it (${codeName(error.code)})${where}:\n${log}\nPTX:\n${text}\nkernel IR:`;
  return withDriverCode(new CompileError('cuda', program.name, what, printProgram(program), { cause: error }), error);
}
