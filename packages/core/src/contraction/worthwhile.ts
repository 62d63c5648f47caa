/** The contractions that are worth tiles, on engines of either kind. */
import { sizeOf } from '../ir/free-ranges.ts';
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import type { LoopKernel } from '../ir/ir.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import { type Contraction, findContraction } from './contraction.ts';

/** Sums of fewer products than this are left to the plain loop nest. */
const smallest = 4096;

/** Tiles of CPUs are for floats; groups of threads do integers of 32 bits as well. */
function computes(dtype: DType, { simt }: CodegenCaps): boolean {
  return isFloat(dtype) || (simt && dtypeInfo[dtype].bytes >= 4);
}

/** The contraction of a kernel, if tiles may be worth it. */
export function worthwhile(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): Contraction | null {
  const c = findContraction(kernel, e);
  if (c === null || !computes(c.reduce.dtype as DType, caps)) return null;
  return sizeOf(c.k) * sizeOf(c.kernel.stores[0]?.ranges ?? []) < smallest ? null : c;
}
