/** A kernel as the engine dispatches it, and printing one. */
import { AddonKernel, type CommandBuffer, type DeviceMemory } from '@polygrad/addon';
import { type Binding, showKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import { dtypeInfo } from '@polygrad/core/kernel/emitters';
import { type OpenClOptions, type PrintedKernel, printOpenCl } from '@polygrad/emit-c';
import type { Held } from './programs.ts';

/** The program as OpenCL C. */
export function printKernel(program: Program, options: OpenClOptions): PrintedKernel {
  return printOpenCl(program, { ...options, offsets: true });
}

/** A kernel with its OpenCL C; in a batch it has two cells for each buffer and one for each scalar. */
export class OpenClKernel extends AddonKernel {
  /** Null until somebody needs it: programs that a library computes are not compiled. */
  held: Held | null;
  readonly printed: PrintedKernel;
  /** What the driver must know: groups, threads, bytes of each argument (0 for buffers). */
  readonly layout: Float64Array;

  constructor(program: Program, printed: PrintedKernel, held: Held | null) {
    const { params, scalars, dispatch, group } = printed;
    const cells = 2 * params.length + scalars.length;
    super(program, { scalars: scalars.length, empty: dispatch.includes(0), cells });
    this.held = held;
    this.printed = printed;
    const sizes = new Array<number>(cells).fill(0);
    for (const p of params) sizes[p.offsetArgument] = 8;
    for (const s of scalars) sizes[s.at] = dtypeInfo[s.dtype].bytes;
    this.layout = Float64Array.of(...dispatch, ...group, ...sizes);
  }

  write(
    encoded: CommandBuffer,
    at: number,
    memory: DeviceMemory,
    bindings: readonly Binding[],
    scalars: readonly (number | bigint)[],
  ): void {
    const { params, scalars: slots } = this.printed;
    for (let i = 0; i < params.length; i++) {
      const p = params[i]!;
      const b = bindings[p.slot]!;
      encoded.number(at + p.binding, memory.within(b, b.bytes));
      encoded.offset(at + p.offsetArgument, b.offset / p.bytes);
    }
    for (let i = 0; i < slots.length; i++) {
      const s = slots[i]!;
      encoded.scalar(at + s.at, s.dtype, scalars[s.slot]!);
    }
  }
}

showKernel(OpenClKernel.prototype, 'OpenClKernel');
