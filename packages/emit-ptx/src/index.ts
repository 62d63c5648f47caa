/** Entry point @polygrad/emit-ptx: programs of the kernel IR as PTX, the assembly that NVIDIA's driver takes. */
export type { DType } from '@polygrad/core/kernel';
export { type PtxLimits, ptxCaps, ptxNativeOps } from './caps.ts';
export { emitPtx } from './emit.ts';
export { PtxError, type PtxKernel, type PtxParam, type PtxScalar, type PtxTarget } from './kernel.ts';
export { capabilityFor, leastCapability } from './target.ts';
