/** A kernel as the engine dispatches it, and printing one. */
import { type CompiledKernel, showKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import { type DType, type OpenClOptions, type PrintedKernel, printOpenCl } from '@polygrad/emit-c';
import type { Held } from './programs.ts';

/** The program as OpenCL C. */
export function printKernel(program: Program, options: OpenClOptions): PrintedKernel {
  return printOpenCl(program, { ...options, offsets: true });
}

// biome-ignore format: a table
const scalarBytes: Readonly<Record<DType, number>> = {
  float32: 4, float64: 8, float16: 2, bfloat16: 2, int8: 1, int16: 2, int32: 4, int64: 8, uint8: 1, uint16: 2, uint32: 4, uint64: 8, bool: 1,
};

/** A compiled kernel. `handle` is the driver's number for it, -1 as long as there is none. */
export class OpenClKernel implements CompiledKernel {
  readonly program: Program;
  /** Null until somebody needs it: programs that a library computes are not compiled. */
  held: Held | null;
  readonly params: PrintedKernel['params'];
  readonly scalars: PrintedKernel['scalars'];
  /** Bindings a dispatch gives: one for each slot. */
  readonly bindingCount: number;
  /** True where there is no group to run. */
  readonly empty: boolean;
  /** What the driver must know: groups, threads, bytes of each argument (0 for buffers). */
  readonly layout: Float64Array;
  readonly argumentCount: number;
  readonly printed: PrintedKernel;
  handle = -1;
  released = false;

  constructor(program: Program, printed: PrintedKernel, held: Held | null) {
    this.program = program;
    this.held = held;
    this.params = printed.params;
    this.scalars = printed.scalars;
    this.printed = printed;
    this.bindingCount = program.params.reduce((most, p) => Math.max(most, p.arg.slot + 1), 0);
    this.empty = printed.dispatch.includes(0);
    this.argumentCount = 2 * printed.params.length + printed.scalars.length;
    const sizes = new Array<number>(this.argumentCount).fill(0);
    for (const p of printed.params) sizes[p.offsetArgument] = 8;
    for (const s of printed.scalars) sizes[s.at] = scalarBytes[s.dtype];
    this.layout = Float64Array.of(...printed.dispatch, ...printed.group, ...sizes);
  }
}

showKernel(OpenClKernel.prototype, 'OpenClKernel');
