/** What an engine knows of WGSL without the printer: which operations it has itself, and where numbers go. */
import type { KNode } from '@polygrad/core/kernel';
import type { DType, PrintedScalar } from '../kernel.ts';

/**
 * Value operations WGSL prints itself besides BASE_OPS, with results as the contract wants them: a suggestion for
 * `caps.nativeOps`. The functions of WGSL promise too little and are not among them.
 */
export const wgslNativeOps: ReadonlySet<KNode['op']> = new Set([
  'ABS',
  'CEIL',
  'TRUNC',
  'ROUND',
  'ISNAN',
  'RECIP',
  'ROUNDED',
  'MULADD',
]);

/**
 * Where the scalars of a program go in the uniform block: one word each, in their order.
 *
 * @example
 * import { wgslScalars } from '@polygrad/emit-c/wgsl-facts';
 * const [, second] = wgslScalars(['float32', 'bool']);
 * console.log(second!.dtype, second!.at); //=> uint32 4
 */
export function wgslScalars(dtypes: readonly DType[]): readonly PrintedScalar[] {
  return dtypes.map((dtype, slot) => ({
    slot,
    dtype: dtype === 'bool' ? 'uint32' : dtype === 'float16' ? 'float32' : dtype,
    at: 4 * slot,
  }));
}
