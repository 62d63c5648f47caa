/** Commands of the library as the driver takes them: numbers (CommandBuffer), with everything about them checked. */
import { CommandBuffer, type DeviceMemory } from '@polygrad/addon';
import type { Command } from '@polygrad/core/engine';
import type { CudaKernel } from './kernel.ts';
import type { Kernels } from './kernels.ts';

type Dispatch = Extract<Command, { kind: 'dispatch' }>;

export class CommandEncoder {
  readonly #memory: DeviceMemory;
  readonly #kernels: Kernels;
  readonly #encoded = new CommandBuffer();

  constructor(memory: DeviceMemory, kernels: Kernels) {
    this.#memory = memory;
    this.#kernels = kernels;
  }

  /** The commands in a buffer, which is the same every time. Empty ones are left out. */
  encode(commands: readonly Command[]): CommandBuffer {
    const [encoded, memory] = [this.#encoded, this.#memory];
    encoded.start();
    for (const c of commands) {
      switch (c.kind) {
        case 'dispatch':
          this.#dispatch(c.kernel as CudaKernel, c);
          break;
        case 'copy': {
          const { bytes } = c.from;
          if (bytes === 0) break;
          encoded.copy(memory.within(c.from, bytes), c.from.offset, memory.within(c.to, bytes), c.to.offset, bytes);
          break;
        }
        case 'fill':
          if (c.to.bytes > 0) encoded.fill(memory.within(c.to, c.to.bytes), c.to.offset, c.to.bytes, c.pattern);
          break;
        default:
          c satisfies never;
      }
    }
    return encoded;
  }

  #dispatch(kernel: CudaKernel, { bindings, scalars, groups = null }: Dispatch): void {
    const { emitted, program } = kernel;
    const { params, scalars: slots } = emitted;
    if (kernel.released) throw new Error(`[cuda.submit] kernel '${program.name}' was released`);
    if (bindings.length < kernel.bindingCount || scalars.length !== slots.length)
      throw new Error(
        `[cuda.submit] kernel '${program.name}' takes ${kernel.bindingCount} tensors and ${slots.length} scalars: ` +
          `got ${bindings.length} and ${scalars.length}`,
      );
    if (kernel.empty) return;
    const [encoded, memory] = [this.#encoded, this.#memory];
    const handle = kernel.handle >= 0 ? kernel.handle : this.#kernels.handleOf(kernel);
    let at = encoded.dispatch(handle, kernel.cells, groups);
    for (const { slot } of params) {
      const b = bindings[slot]!;
      encoded.number(at, memory.within(b, b.bytes));
      encoded.number(at + 1, b.offset);
      encoded.number(at + 2, b.bytes);
      at += 3;
    }
    for (const { slot, dtype } of slots) encoded.scalar(at++, dtype, scalars[slot]!);
  }
}
