/**
 * Runs commands in order: addresses and scalars into the args block, groups to this thread or to all.
 *
 * The last command may still be running in workers when `run` returns; code that touches memory calls `finish` first.
 */
import type { Binding, Command } from '@polygrad/core/engine';
import { blockBytes, type BuiltinCodes } from './builtins.ts';
import { type Code, type CpuKernel, sharesOf } from './kernel.ts';
import type { ArgsBlock } from './memory/args.ts';
import type { HeapBuffers } from '@polygrad/core/engine/shaping';
import { argsAt } from './memory/layout.ts';
import { kernelError, type Shares, type Work } from './threads/work.ts';
import type { Workers } from './threads/workers.ts';

export interface QueueSetup {
  readonly buffers: HeapBuffers;
  readonly args: ArgsBlock;
  readonly workers: Workers | null;
  readonly threads: number;
  /** The main thread's memory for SHARED. */
  readonly scratch: number;
  /** The kernels for copies and fills, compiled on first use. */
  builtin(name: keyof BuiltinCodes): Code;
}

export class CommandQueue {
  readonly #setup: QueueSetup;

  constructor(setup: QueueSetup) {
    this.#setup = setup;
  }

  /** Waits for what workers still do; an error in the last command is thrown here. */
  finish(): void {
    this.#setup.workers?.finish();
  }

  run(c: Command): void {
    this.finish();
    switch (c.kind) {
      case 'dispatch':
        this.#dispatch(c.kernel as CpuKernel, c.bindings, c.scalars);
        break;
      case 'copy':
        this.#copy(c.from, c.to);
        break;
      case 'fill':
        this.#fill(c.to, c.pattern);
        break;
      default:
        c satisfies never;
    }
  }

  #dispatch(kernel: CpuKernel, bindings: readonly Binding[], scalars: readonly (number | bigint)[]): void {
    const { args, buffers } = this.#setup;
    const { paramCount, scalarKinds } = kernel;
    if (bindings.length !== paramCount || scalars.length !== scalarKinds.length)
      throw wrongArguments(kernel, bindings, scalars);
    for (let i = 0; i < paramCount; i++) {
      const b = bindings[i]!;
      args.setPointer(i, buffers.addressOf(b, b.bytes));
    }
    for (let i = 0; i < scalarKinds.length; i++) args.setScalar(i, scalarKinds[i]!, scalars[i]!);
    this.#start(kernel, kernel.shares, kernel.step);
  }

  #copy(from: Binding, to: Binding): void {
    const { bytes } = from;
    if (bytes === 0) return;
    const { args, buffers, builtin } = this.#setup;
    const code = builtin('copy');
    const source = buffers.addressOf(from, bytes);
    const target = buffers.addressOf(to, bytes);
    args.setPointer(0, target);
    args.setPointer(1, source);
    args.setPointer(2, bytes);
    // Overlapping ranges are right only when copied in one call.
    const overlap = source < target + bytes && target < source + bytes;
    this.#startBlocks('copy', code, bytes, !overlap);
  }

  #fill(to: Binding, pattern: number): void {
    if (to.bytes === 0) return;
    const { args, buffers, builtin } = this.#setup;
    const code = builtin('fill');
    args.setPointer(0, buffers.addressOf(to, to.bytes));
    args.setScalar(0, 2, pattern);
    args.setScalar(1, 2, to.bytes / 4);
    this.#startBlocks('fill', code, to.bytes, true);
  }

  #startBlocks(name: string, { fn, module, index }: Code, bytes: number, divisible: boolean): void {
    const groups = Math.ceil(bytes / blockBytes);
    const slot = module.published?.slot ?? -1;
    const shares = sharesOf(bytes / 8, divisible && slot >= 0 ? groups : 1, this.#setup.threads);
    this.#start({ name, fn, slot, index, groups }, shares, groups);
  }

  /** Runs work whose args block is written: on all threads, or on this one, at most `step` groups at a time. */
  #start(work: Work, shares: Shares, step: number): void {
    const { workers, scratch } = this.#setup;
    if (shares.chunk > 0 && workers?.share(work, shares) === true) return;
    const { fn, groups } = work;
    try {
      for (let from = 0; from < groups; from += step) fn(argsAt, from, Math.min(groups, from + step), scratch);
    } catch (cause) {
      throw kernelError(work.name, cause);
    }
  }
}

function wrongArguments(kernel: CpuKernel, bindings: readonly Binding[], scalars: readonly unknown[]): Error {
  return new Error(
    `[cpu.submit] kernel '${kernel.name}' takes ${kernel.paramCount} tensors and ${kernel.scalarKinds.length} scalars: ` +
      `got ${bindings.length} and ${scalars.length}`,
  );
}
