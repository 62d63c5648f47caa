/** Entry point @polygrad/emit-c: programs of the kernel IR as source text of C-like languages. */
export type { DType } from '@polygrad/core/kernel';
export { type PrintedKernel, type PrintedParam, type PrintedScalar, PrintError } from './kernel.ts';
export type { WgslOptions } from './wgsl/types.ts';
export { wgslNativeOps } from './wgsl/facts.ts';
export { printWgsl } from './wgsl/print.ts';
export type { OpenClOptions } from './opencl/types.ts';
export { openClNativeOps, printOpenCl } from './opencl/print.ts';
