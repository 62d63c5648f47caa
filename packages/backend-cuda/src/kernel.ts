/** A kernel as the engine dispatches it. */
import { AddonKernel, type CommandBuffer, type DeviceMemory } from '@polygrad/addon';
import { type Binding, showKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import type { PtxKernel } from '@polygrad/emit-ptx';
import type { Held } from './modules.ts';

/** A kernel with its PTX; in a batch it has three cells for each buffer and one for each scalar. */
export class CudaKernel extends AddonKernel {
  readonly emitted: PtxKernel;
  /** Null until somebody needs it: programs that a library computes are not compiled. */
  held: Held | null;
  /** What the driver must know (native/driver.h). */
  readonly layout: Float64Array;

  constructor(program: Program, emitted: PtxKernel, held: Held | null) {
    const { params, scalars, grid, group, dynamicSharedBytes, parameterBytes } = emitted;
    super(program, {
      scalars: scalars.length,
      empty: grid.includes(0),
      cells: 3 * params.length + scalars.length,
    });
    this.emitted = emitted;
    this.held = held;
    const places = [...params.map(({ at }) => [at, 0]), ...scalars.map(({ at, bytes }) => [at, bytes])].flat();
    this.layout = Float64Array.of(...grid, ...group, dynamicSharedBytes, parameterBytes, ...places);
  }

  write(
    encoded: CommandBuffer,
    from: number,
    memory: DeviceMemory,
    bindings: readonly Binding[],
    scalars: readonly (number | bigint)[],
  ): void {
    const { params, scalars: slots } = this.emitted;
    let at = from;
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

showKernel(CudaKernel.prototype, 'CudaKernel');
