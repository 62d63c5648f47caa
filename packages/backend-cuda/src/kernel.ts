/** A kernel as the engine dispatches it. */
import { type CompiledKernel, showKernel } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import type { PtxKernel } from '@polygrad/emit-ptx';
import type { Held } from './modules.ts';

/** A compiled kernel. `handle` is the driver's number for it, -1 as long as there is none. */
export class CudaKernel implements CompiledKernel {
  readonly program: Program;
  readonly emitted: PtxKernel;
  readonly held: Held;
  /** Bindings a dispatch gives: one for each slot. */
  readonly bindingCount: number;
  /** True where there is no group to run. */
  readonly empty: boolean;
  /** What the driver must know (native/driver.h). */
  readonly layout: Float64Array;
  /** Cells of the arguments: three for each buffer, one for each scalar. */
  readonly cells: number;
  handle = -1;
  released = false;

  constructor(program: Program, emitted: PtxKernel, held: Held) {
    this.program = program;
    this.emitted = emitted;
    this.held = held;
    const { params, scalars, grid, group, dynamicSharedBytes, parameterBytes } = emitted;
    this.bindingCount = program.params.reduce((most, p) => Math.max(most, p.arg.slot + 1), 0);
    this.empty = grid.includes(0);
    this.cells = 3 * params.length + scalars.length;
    const places = [...params.map(({ at }) => [at, 0]), ...scalars.map(({ at, bytes }) => [at, bytes])].flat();
    this.layout = Float64Array.of(...grid, ...group, dynamicSharedBytes, parameterBytes, ...places);
  }
}

showKernel(CudaKernel.prototype, 'CudaKernel');
