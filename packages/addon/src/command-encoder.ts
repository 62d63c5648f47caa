/** Commands of the library as the driver takes them: numbers (CommandBuffer), with everything about them checked. */
import type { Binding, Command } from '@polygrad/core/engine';
import type { DType, Product } from '@polygrad/core/kernel';
import { CommandBuffer } from './command-buffer.ts';
import type { AddonKernel, KernelTable } from './kernel.ts';
import type { ProductLibraries } from './library.ts';
import type { DeviceMemory } from './memory.ts';
import { bytesOf, type OfEach, productCommand } from './product.ts';

type Dispatch = Extract<Command, { kind: 'dispatch' }>;

export class CommandEncoder<K extends AddonKernel> {
  readonly #engine: string;
  readonly #memory: DeviceMemory;
  readonly #kernels: KernelTable<K>;
  readonly #library: ProductLibraries | null;
  readonly #encoded = new CommandBuffer();

  constructor(engine: string, memory: DeviceMemory, kernels: KernelTable<K>, library: ProductLibraries | null) {
    this.#engine = engine;
    this.#memory = memory;
    this.#kernels = kernels;
    this.#library = library;
  }

  /** The commands in a buffer, which is the same every time. Empty ones are left out. */
  encode(commands: readonly Command[]): CommandBuffer {
    const [encoded, memory] = [this.#encoded, this.#memory];
    encoded.start();
    for (const c of commands) {
      switch (c.kind) {
        case 'dispatch':
          this.#dispatch(c.kernel as K, c);
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

  #dispatch(kernel: K, { bindings, scalars, groups = null }: Dispatch): void {
    const { program, bindingCount, scalarCount } = kernel;
    if (kernel.released) throw new Error(`[${this.#engine}.submit] kernel '${program.name}' was released`);
    if (bindings.length < bindingCount || scalars.length !== scalarCount)
      throw new Error(
        `[${this.#engine}.submit] kernel '${program.name}' takes ${bindingCount} tensors and ${scalarCount} scalars: ` +
          `got ${bindings.length} and ${scalars.length}`,
      );
    if (kernel.empty) return;
    const product = this.#productOf(kernel, scalars);
    if (product !== null && this.#library?.takes(product) === true) {
      this.#multiply(product, bindings);
      return;
    }
    const handle = kernel.handle >= 0 ? kernel.handle : this.#kernels.handleOf(kernel);
    const at = this.#encoded.dispatch(handle, kernel.cells, groups);
    kernel.write(this.#encoded, at, this.#memory, bindings, scalars);
  }

  /** The product that a command computes, with its numbers; null for any other command. */
  productOf(command: Command | undefined): Product | null {
    return command?.kind === 'dispatch' ? this.#productOf(command.kernel as K, command.scalars) : null;
  }

  #productOf({ program: { product } }: K, scalars: readonly (number | bigint)[]): Product | null {
    return product === undefined || this.#library === null ? null : this.#library.programs.at(product, scalars);
  }

  #multiply(product: Product, bindings: readonly Binding[]): void {
    const of = (pick: (b: Binding, dtype: DType) => number): OfEach => {
      const at = (name: 'a' | 'b' | 'c'): number =>
        pick(bindings[product[name].slot]!, name === 'c' ? product.result : product.dtype);
      return { a: at('a'), b: at('b'), c: at('c') };
    };
    const buffers = of((b) => this.#memory.within(b, b.bytes));
    const starts = of(({ offset }, dtype) => offset / bytesOf(dtype));
    const { kind, cells } = productCommand(product, buffers, starts);
    this.#encoded.other(kind, cells);
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
      return (c.kernel as AddonKernel).empty;
    case 'copy':
      return c.from.bytes === 0;
    case 'fill':
      return c.to.bytes === 0;
    default:
      return c satisfies never;
  }
}
