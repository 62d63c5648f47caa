/** The engine's kernels: printed, compiled in the background, made when they are first run or somebody waits for them. */
import type { KernelTable } from '@polygrad/addon';
import { CompileError, type KernelSource } from '@polygrad/core/engine';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { PrintError } from '@polygrad/emit-c';
import { explainBuild } from './build-log.ts';
import { OpenClKernel, printKernel } from './kernel.ts';
import { BuildError, type Held, ProgramStore } from './programs.ts';
import type { Setup } from './setup.ts';

export class Kernels implements KernelTable<OpenClKernel> {
  readonly #setup: Setup;
  readonly #programs: ProgramStore;

  constructor(setup: Setup) {
    this.#setup = setup;
    const { driver, cache, buildOptions, identity, reload, lockFolder } = setup;
    this.#programs = new ProgramStore(driver, cache, buildOptions, identity, reload, lockFolder);
  }

  get builds(): { readonly compiled: number; readonly fromDisk: number } {
    const { compiled, fromDisk } = this.#programs;
    return { compiled, fromDisk };
  }

  /** True for programs that a library computes, which are compiled if it fails. */
  #isForLibrary({ product }: Program): boolean {
    return product !== undefined && this.#setup.library?.takes(product) === true;
  }

  start(programs: readonly Program[]): OpenClKernel[] {
    const printed = programs.map((program) => {
      try {
        return printKernel(program, this.#setup.printOptions);
      } catch (error) {
        if (!(error instanceof PrintError)) throw error;
        throw new CompileError('opencl', program.name, error.message, printProgram(program), { cause: error });
      }
    });
    const kernels = programs.map((program, i) => new OpenClKernel(program, printed[i]!, null));
    const wanted = kernels.filter(({ program }) => !this.#isForLibrary(program));
    const held = this.#programs.take(wanted.map((kernel) => kernel.printed));
    wanted.forEach((kernel, i) => {
      kernel.held = held[i]!;
    });
    return kernels;
  }

  handleOf(kernel: OpenClKernel): number {
    if (kernel.handle >= 0) return kernel.handle;
    const { program, printed, layout } = kernel;
    try {
      kernel.held ??= this.#programs.take([printed])[0]!;
      const { held } = kernel;
      kernel.handle = this.#setup.driver.kernel(this.#programs.handleOf(held), held.entry, layout);
    } catch (error) {
      throw error instanceof BuildError ? explainBuild(error, program, printed) : error;
    }
    return kernel.handle;
  }

  compiling(kernels: readonly OpenClKernel[]): Promise<void> | null {
    const open: Held[] = [];
    for (const { handle, held } of kernels)
      if (handle < 0 && held !== null && held.module.building !== null) open.push(held);
    return open.length === 0 ? null : this.#programs.whenBuilt(open);
  }

  ready(): Promise<void> {
    return this.#programs.whenBuilt();
  }

  release(kernels: readonly OpenClKernel[]): void {
    for (const kernel of kernels) {
      if (kernel.released) continue;
      kernel.released = true;
      if (kernel.handle >= 0) this.#setup.driver.releaseKernel(kernel.handle);
      if (kernel.held !== null) this.#programs.release(kernel.held);
    }
  }
}

/** The text the compiler was given, before its entry point was renamed. */
export function sourceOf({ printed }: OpenClKernel): KernelSource {
  return { language: 'opencl', text: printed.source };
}
