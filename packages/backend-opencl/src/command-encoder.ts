/** Commands of the library as the driver takes them: numbers (CommandBuffer), with everything about them checked. */
import type { Binding, Command } from '@polygrad/core/engine';
import { CommandBuffer, type DeviceMemory } from '@polygrad/addon';
import type { MatrixProduct } from '@polygrad/core/kernel';
import type { OpenClKernel } from './kernel.ts';
import type { Kernels } from './kernels.ts';
import { type OfEach, productCommand, productKind } from './product.ts';

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
          this.#dispatch(c.kernel as OpenClKernel, c);
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

  #dispatch(kernel: OpenClKernel, { bindings, scalars, groups = null }: Dispatch): void {
    const { params, scalars: slots, program } = kernel;
    if (kernel.released) throw new Error(`[opencl.submit] kernel '${program.name}' was released`);
    if (bindings.length < kernel.bindingCount || scalars.length !== slots.length)
      throw new Error(
        `[opencl.submit] kernel '${program.name}' takes ${kernel.bindingCount} tensors and ${slots.length} scalars: ` +
          `got ${bindings.length} and ${scalars.length}`,
      );
    if (kernel.empty) return;
    const [encoded, memory] = [this.#encoded, this.#memory];
    if (program.product !== undefined && this.#kernels.isForLibrary(program)) {
      this.#multiply(program.product, bindings);
      return;
    }
    const handle = kernel.handle >= 0 ? kernel.handle : this.#kernels.handleOf(kernel);
    const at = encoded.dispatch(handle, kernel.argumentCount, groups);
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

  #multiply(product: MatrixProduct, bindings: readonly Binding[]): void {
    const bytes = product.dtype === 'float64' ? 8 : 4;
    const of = (pick: (b: Binding) => number): OfEach => {
      const at = (name: 'a' | 'b' | 'c'): number => pick(bindings[product[name].slot]!);
      return { a: at('a'), b: at('b'), c: at('c') };
    };
    const buffers = of((b) => this.#memory.within(b, b.bytes));
    const starts = of(({ offset }) => offset / bytes);
    this.#encoded.other(productKind, productCommand(product, buffers, starts));
  }

  /** What is left of commands of which the driver took `done`; those that were not written do not count. */
  rest(commands: readonly Command[], done: number): readonly Command[] {
    let at = 0;
    for (let taken = 0; at < commands.length && taken < done; at++) if (!isEmpty(commands[at]!)) taken++;
    return commands.slice(at);
  }
}

/** True for commands that are left out. */
function isEmpty(c: Command): boolean {
  switch (c.kind) {
    case 'dispatch':
      return (c.kernel as OpenClKernel).empty;
    case 'copy':
      return c.from.bytes === 0;
    case 'fill':
      return c.to.bytes === 0;
    default:
      return c satisfies never;
  }
}
