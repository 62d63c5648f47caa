/** Programs as PTX. */
import type { Program } from '@polygrad/core/kernel';
import { PtxError, type PtxKernel, type PtxTarget } from './kernel.ts';

/** The program as PTX text with one thread per thread of a group. */
export function emitPtx(program: Program, _target: PtxTarget): PtxKernel {
  throw new PtxError(`${program.name} cannot be emitted yet`);
}
