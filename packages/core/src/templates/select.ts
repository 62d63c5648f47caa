/**
 * The scheduler's door to the templates: which one lowers a hinted kernel, or none.
 */
import { isFloat, type DType } from '../shape/dtype.ts';
import { findContraction, sizeOf } from './contraction.ts';
import type { ContractionTemplate } from './contract.ts';
import { lowerTiled } from './gemm.ts';

/** Sums of fewer products than this are left to the plain loop nest. */
const smallest = 4096;

/** Lowers a kernel around a contraction by the template that suits it; null where the plain loop nest is as good. */
export const lowerContraction: ContractionTemplate = (kernel, _hint, e, caps) => {
  if (caps.simt) return null;
  const c = findContraction(kernel, e);
  if (c === null || !isFloat(c.reduce.dtype as DType)) return null;
  if (sizeOf(c.k) * sizeOf(c.kernel.stores[0]?.ranges ?? []) < smallest) return null;
  return lowerTiled(c, e, caps);
};
