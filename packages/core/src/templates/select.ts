/**
 * The scheduler's door to the templates: which one lowers a hinted kernel, or none.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import type { Exprs } from '../kernel/expr.ts';
import type { LoopKernel } from '../kernel/ir.ts';
import { type Contraction, findContraction, sizeOf } from './contraction.ts';
import type { ContractionTemplate, TileChoices } from './contract.ts';
import { lowerTiled } from './gemm.ts';
import { defaultTile } from './simt-choose.ts';
import { classOf } from './simt-class.ts';
import { lowerSimt, problemFor, tileFits } from './simt-gemm.ts';
import { type SimtTile, tileOf } from './simt-tile.ts';

/** Sums of fewer products than this are left to the plain loop nest. */
const smallest = 4096;

/** Tiles of CPUs are for floats; groups of threads do integers of 32 bits as well. */
function computes(dtype: DType, { simt }: EngineCaps): boolean {
  return isFloat(dtype) || (simt && dtypeInfo[dtype].bytes >= 4);
}

/** Lowers a kernel around a contraction by the template that suits it; null where the plain loop nest is as good. */
export const lowerContraction: ContractionTemplate = (kernel, _hint, e, caps, choices) => {
  const c = findContraction(kernel, e);
  if (c === null || !computes(c.reduce.dtype as DType, caps)) return null;
  if (sizeOf(c.k) * sizeOf(c.kernel.stores[0]?.ranges ?? []) < smallest) return null;
  if (!caps.simt) return lowerTiled(c, e, caps);
  const tile = measuredTile(kernel, c, e, caps, choices) ?? defaultTile(c, caps);
  return tile === null ? null : lowerSimt(c, e, caps, tile);
};

function measuredTile(
  kernel: LoopKernel,
  c: Contraction,
  e: Exprs,
  caps: EngineCaps,
  choices: TileChoices | undefined,
): SimtTile | null {
  if (choices === undefined) return null;
  const key = classOf(c, caps);
  choices.note(key, kernel, e);
  const tile = tileOf(choices.find(key) ?? '');
  // Measured with other extents of the same class: it need not fit.
  return tile !== null && tileFits(tile, problemFor(c, tile), c.reduce.dtype as DType, caps) ? tile : null;
}
