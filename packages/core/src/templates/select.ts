/**
 * The scheduler's door to the templates: which one lowers a hinted kernel, or none.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import { type Contraction, findContraction, sizeOf } from './contraction.ts';
import type { ContractionTemplate } from './contract.ts';
import { lowerTiled } from './gemm.ts';
import { byLibrary, questionOf } from './choice.ts';
import { lowerForLibrary } from './library.ts';
import { defaultTile } from './simt-choose.ts';
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
  const question = choices === undefined ? null : questionOf(c, caps, choices.library);
  if (question !== null) choices?.note(question.key, kernel, e);
  const chosen = question === null ? undefined : choices?.find(question.key);
  if (chosen === byLibrary && question?.product) return lowerForLibrary(c, e, caps, question.product);
  if (!caps.simt) return lowerTiled(c, e, caps);
  const tile = measuredTile(c, caps, chosen) ?? defaultTile(c, caps);
  return tile === null ? null : lowerSimt(c, e, caps, tile);
};

/** Measured with other extents of the same class: it need not fit. */
function measuredTile(c: Contraction, caps: EngineCaps, name: string | undefined): SimtTile | null {
  const tile = tileOf(name ?? '');
  return tile !== null && tileFits(tile, problemFor(c, tile), c.reduce.dtype as DType, caps) ? tile : null;
}
