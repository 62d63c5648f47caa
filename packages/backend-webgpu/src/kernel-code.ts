/** What makes WGSL of computations that have none yet: the planner, what lowers kernels, the emitter. Pages that bring their plans load it when one is missing. */
import type { EngineCaps } from '@polygrad/core/engine';
import { keepRounding, threadLowering } from '@polygrad/core/engine/threads';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { shaderOf } from './kernels/wgsl.ts';
import type { Shader } from './kernels/shader.ts';

/** The compiler of the WebGPU engine. */
export interface KernelCode {
  readonly lowering: EngineCaps['lowering'];
  readonly keepRounding: NonNullable<EngineCaps['keepRounding']>;
  /** A program as WGSL. Throws CompileError for programs that WGSL cannot express. */
  readonly shaderOf: (program: Program, f16: boolean) => Shader;
  readonly printProgram: (program: Program) => string;
  /** What engines have in the place of capabilities of their device. */
  readonly caps?: Partial<EngineCaps>;
}

export const kernelCode: KernelCode = { lowering: threadLowering, keepRounding, shaderOf, printProgram };
