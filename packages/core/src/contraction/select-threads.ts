/** How engines with groups of threads lower contractions: by a measured tile, else by the one their shape calls for. */
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import type { DType } from '../shape/dtype.ts';
import type { Contraction } from './contraction.ts';
import type { ContractionTemplate } from './contract.ts';
import { worthwhile } from './worthwhile.ts';
import { defaultTile } from './simt/choose.ts';
import { classOf } from './simt/class.ts';
import { lowerSimt, problemFor, tileFits } from './simt/gemm.ts';
import { type SimtTile, tileOf } from './simt/tile.ts';

/** Lowers a kernel around a contraction for groups of threads; null where the plain loop nest is as good. */
export const threadContraction: ContractionTemplate = (kernel, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps);
  if (c === null) return null;
  const key = choices === undefined ? '' : classOf(c, caps);
  choices?.note(key, kernel, e);
  return byThreads(c, e, caps, choices?.find(key));
};

/** `chosen`: the name of a measured tile. */
export function byThreads(c: Contraction, e: Exprs, caps: CodegenCaps, chosen: string | undefined): Lowered | null {
  const tile = measuredTile(c, caps, chosen) ?? defaultTile(c, caps);
  return tile === null ? null : lowerSimt(c, e, caps, tile);
}

/** Measured with other extents of the same class: it need not fit. */
function measuredTile(c: Contraction, caps: CodegenCaps, name: string | undefined): SimtTile | null {
  const tile = tileOf(name ?? '');
  return tile !== null && tileFits(tile, problemFor(c, tile), c.reduce.dtype as DType, caps) ? tile : null;
}
