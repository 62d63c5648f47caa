/**
 * Runs commands in order: addresses and scalars into the args block, groups to this thread or to all. This thread copies and fills alone: it does so
 * as fast as memory allows.
 *
 * The last command may still be running in workers when `run` returns; code that touches memory calls `finish` first.
 */
import { fault, told } from '@polygrad/core/engine';
import type { Binding, Command } from '@polygrad/core/engine';
import type { CpuKernel } from './kernel.ts';
import type { ArgsBlock } from './memory/args.ts';
import type { HeapBuffers } from '@polygrad/core/engine/shaping';
import { argsAt } from './memory/layout.ts';
import { kernelError } from './threads/work.ts';
import type { Workers } from './threads/workers.ts';

export interface QueueSetup {
  readonly buffers: HeapBuffers;
  readonly args: ArgsBlock;
  readonly workers: Workers | null;
  /** The main thread's memory for SHARED. */
  readonly scratch: number;
  /** The bytes of a binding. */
  view(b: Binding, bytes: number): Uint8Array;
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
    const { view } = this.#setup;
    switch (c.kind) {
      case 'dispatch':
        this.#dispatch(c.kernel as CpuKernel, c.bindings, c.scalars);
        break;
      case 'copy':
        view(c.to, c.from.bytes).set(view(c.from, c.from.bytes));
        break;
      case 'fill': {
        const { buffer, byteOffset } = view(c.to, c.to.bytes);
        new Uint32Array(buffer, byteOffset, c.to.bytes / 4).fill(c.pattern);
        break;
      }
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
    this.#start(kernel);
  }

  /** Runs a kernel whose args block is written: on all threads, or on this one, at most `step` groups at a time. */
  #start(kernel: CpuKernel): void {
    const { workers, scratch } = this.#setup;
    const { fn, groups, shares, step } = kernel;
    if (shares.chunk > 0 && workers?.share(kernel, shares) === true) return;
    try {
      for (let from = 0; from < groups; from += step) fn(argsAt, from, Math.min(groups, from + step), scratch);
    } catch (cause) {
      throw kernelError(kernel.name, cause);
    }
  }
}

function wrongArguments(kernel: CpuKernel, bindings: readonly Binding[], scalars: readonly unknown[]): Error {
  const what =
    told &&
    `kernel '${kernel.name}' takes ${kernel.paramCount} tensors and ${kernel.scalarKinds.length} scalars: got ${bindings.length} and ${scalars.length}`;
  return fault('cpu.submit', what);
}
