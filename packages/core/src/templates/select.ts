/**
 * The scheduler's door to the templates: which one lowers a hinted kernel, or none.
 */
import type { EngineCaps } from '../engine/engine.ts';
import type { Exprs } from '../kernel/expr.ts';
import type { LoopKernel } from '../kernel/ir.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import { type Contraction, findContraction, sizeOf } from './contraction.ts';
import type { ContractionTemplate, Lowered } from './contract.ts';
import { lowerTiled } from './gemm.ts';
import { byLibrary, questionOf } from './choice.ts';
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

/** The contraction of a kernel, if a template may be worth it. */
function worthwhile(kernel: LoopKernel, e: Exprs, caps: EngineCaps): Contraction | null {
  const c = findContraction(kernel, e);
  if (c === null || !computes(c.reduce.dtype as DType, caps)) return null;
  return sizeOf(c.k) * sizeOf(c.kernel.stores[0]?.ranges ?? []) < smallest ? null : c;
}

/** Lowers a kernel around a contraction for one thread with vectors; null where the plain loop nest is as good. */
export const vectorContraction: ContractionTemplate = (kernel, _hint, e, caps) => {
  const c = worthwhile(kernel, e, caps);
  return c === null ? null : lowerTiled(c, e, caps);
};

/** The same for groups of threads. */
export const threadContraction: ContractionTemplate = (kernel, _hint, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps);
  if (c === null) return null;
  const key = choices === undefined ? '' : classOf(c, caps);
  choices?.note(key, kernel, e);
  return byThreads(c, e, caps, choices?.find(key));
};

/** Either, by the engine's kind, or a library where that was measured faster. */
export const lowerContraction: ContractionTemplate = (kernel, _hint, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps);
  if (c === null) return null;
  const question = choices === undefined ? null : questionOf(c, caps, choices.library);
  if (question !== null) choices?.note(question.key, kernel, e);
  const chosen = question === null ? undefined : choices?.find(question.key);
  if (chosen === byLibrary && question?.product)
    return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
  return caps.simt ? byThreads(c, e, caps, chosen) : lowerTiled(c, e, caps);
};

/** `chosen`: the name of a measured tile. */
function byThreads(c: Contraction, e: Exprs, caps: EngineCaps, chosen: string | undefined): Lowered | null {
  const tile = measuredTile(c, caps, chosen) ?? defaultTile(c, caps);
  return tile === null ? null : lowerSimt(c, e, caps, tile);
}

/** Measured with other extents of the same class: it need not fit. */
function measuredTile(c: Contraction, caps: EngineCaps, name: string | undefined): SimtTile | null {
  const tile = tileOf(name ?? '');
  return tile !== null && tileFits(tile, problemFor(c, tile), c.reduce.dtype as DType, caps) ? tile : null;
}
