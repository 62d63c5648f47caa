/** What engines whose groups are one thread bring along to have kernels shaped for them (`caps.lowering`). */
import { shapeVectors } from '../codegen/loops/vectors.ts';
import { legalize } from '../arithmetic/legalize.ts';
import { reduceColumns } from '../codegen/linearize/columns.ts';
import type { Lowering } from '../engine/engine.ts';
import { byTiles } from '../contraction/names.ts';
import { lowerTiled } from '../contraction/gemm.ts';
import { lowerPlain } from '../codegen/plain.ts';
import { vectorContraction } from '../contraction/select-vectors.ts';

/** For engines where a group is one thread, with vectors. */
export const vectorLowering: Lowering = {
  shape: shapeVectors,
  columns: reduceColumns,
  legalize,
  contraction: (kernel, e, { caps }) => vectorContraction(kernel, e, caps),
  ways: (c, kernel, e, caps) => [[byTiles, () => lowerTiled(c, e, caps) ?? lowerPlain(kernel, caps)]],
};
