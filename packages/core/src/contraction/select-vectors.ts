/** How engines whose groups are one thread lower contractions. */
import type { ContractionTemplate } from './contract.ts';
import { lowerTiled } from './gemm.ts';
import { worthwhile } from './worthwhile.ts';

/** Lowers a kernel around a contraction for one thread with vectors; null where the plain loop nest is as good. */
export const vectorContraction: ContractionTemplate = (kernel, e, caps) => {
  const c = worthwhile(kernel, e, caps);
  return c === null ? null : lowerTiled(c, e, caps);
};
