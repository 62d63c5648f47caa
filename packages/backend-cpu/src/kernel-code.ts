/** What makes code of computations that have none yet: the planner, what lowers kernels, the emitter. Pages that bring their plans load it when one is missing. */
import type { EngineCaps } from '@polygrad/core/engine';
import { vectorShaping } from '@polygrad/core/engine/shaping';
import { computesAll, unpackProgram } from '@polygrad/core/kernel/ir';
import { dtypeCode } from '#dtypes';
import { emitFunction } from './emit/emit.ts';

const lowering: EngineCaps['lowering'] = {
  ...vectorShaping,
  legalize: (program, caps) => (computesAll(caps, program) ? program : dtypeCode().legalize(program, caps)),
};

/** The compiler of the CPU engine. */
export interface KernelCode {
  readonly lowering: EngineCaps['lowering'];
  readonly emitFunction: typeof emitFunction;
  readonly unpackProgram: typeof unpackProgram;
}

export const kernelCode: KernelCode = { lowering, emitFunction, unpackProgram };
