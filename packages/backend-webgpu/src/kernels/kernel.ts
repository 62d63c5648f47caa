/** A compiled program as this engine's commands name it. */
import { type CompiledKernel, showKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/engine/planned';
import { secondsOf } from './pieces.ts';
import type { Code } from './pipelines.ts';

export class WebGpuKernel implements CompiledKernel {
  readonly program: Program;
  readonly code: Code;
  /** Slots the program reads, and those it writes. */
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  readonly seconds: number;
  released = false;

  constructor(program: Program, code: Code) {
    this.program = program;
    this.code = code;
    const slots = (...kinds: string[]): number[] =>
      program.params.filter((p) => kinds.includes(p.arg.access)).map((p) => p.arg.slot);
    this.reads = slots('read', 'readwrite');
    this.writes = slots('write', 'readwrite');
    this.seconds = secondsOf(program);
  }

  get failure(): Error | null {
    return this.code.failure;
  }
}

showKernel(WebGpuKernel.prototype, 'WebGpuKernel');
