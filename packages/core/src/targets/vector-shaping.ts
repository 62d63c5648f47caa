/**
 * How loops are shaped where a group is one thread, with vectors: all of `caps.lowering` but what legalizes small dtypes. Pages load that with
 * the first small dtype, and some bundlers load all that a file names together with it.
 */
import { shapeVectors } from '../codegen/loops/cpu.ts';
import { lowerPlain } from '../codegen/lowering.ts';
import { reduceColumns } from '../codegen/linearize/columns.ts';
import { lowerTiled, vectorContraction } from '../contraction/gemm.ts';
import { byTiles } from '../contraction/contraction.ts';
import type { Lowering } from '../engine/engine.ts';

/** For engines where a group is one thread, with vectors, which add `legalize` themselves where they do not compute in every dtype they hold. */
export const vectorShaping: Lowering = {
  shape: shapeVectors,
  columns: reduceColumns,
  sizes: true,
  contraction: (kernel, e, { caps }) => vectorContraction(kernel, e, caps),
  ways: (c, kernel, e, caps) => [[byTiles, () => lowerTiled(c, e, caps) ?? lowerPlain(kernel, caps)]],
};
