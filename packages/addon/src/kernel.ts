/** A kernel as an engine with an addon dispatches it. */
import type { Binding, CompiledKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import type { CommandBuffer } from './command-buffer.ts';
import type { DeviceMemory } from './memory.ts';

/** What a dispatch of a kernel gives and has written. */
export interface KernelForm {
  readonly scalars: number;
  /** True where there is no group to run. */
  readonly empty: boolean;
  /** Cells of the arguments in a batch. */
  readonly cells: number;
}

/**
 * A compiled kernel. `handle` is the driver's number for it, -1 as long as there is none.
 *
 * @example no-run: an engine's own kernels extend it
 * class MyKernel extends AddonKernel {
 *   write(): void {}
 * }
 */
export abstract class AddonKernel implements CompiledKernel {
  readonly program: Program;
  /** Bindings a dispatch gives: one for each slot. */
  readonly bindingCount: number;
  readonly scalarCount: number;
  readonly empty: boolean;
  readonly cells: number;
  handle = -1;
  released = false;

  constructor(program: Program, { scalars, empty, cells }: KernelForm) {
    this.program = program;
    this.bindingCount = program.params.reduce((most, p) => Math.max(most, p.arg.slot + 1), 0);
    this.scalarCount = scalars;
    this.empty = empty;
    this.cells = cells;
  }

  /** Writes the arguments of a dispatch to the cells from `at` on. */
  abstract write(
    encoded: CommandBuffer,
    at: number,
    memory: DeviceMemory,
    bindings: readonly Binding[],
    scalars: readonly (number | bigint)[],
  ): void;
}

/** The kernels of an engine: compiled in the background, made when they are first run or somebody waits for them. */
export interface KernelTable<K extends AddonKernel> {
  /** Kernels of programs; starts compiling new ones. Throws CompileError for what the language cannot express. */
  start(programs: readonly Program[]): K[];
  /** The driver's number of a kernel, once it is compiled. Throws CompileError where the driver refuses it. */
  handleOf(kernel: K): number;
  /** Resolves when these are compiled, or refused; null where `handleOf` would wait for none of them. */
  compiling(kernels: readonly K[]): Promise<void> | null;
  /** Resolves when all are compiled, or refused. */
  ready(): Promise<void>;
  release(kernels: readonly K[]): void;
}
