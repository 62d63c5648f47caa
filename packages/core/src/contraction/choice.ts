/**
 * What may be chosen for a contraction by measurement, by name: a tile of threads (simt/tile.ts), the tiles of an engine without
 * threads, or a library. And the key under which such a choice is kept.
 */
import type { CodegenCaps } from '../codegen/lowering.ts';
import { type ContractionTemplate, type ProductLibrary, byLibrary, byTiles } from './contract.ts';
import { type Contraction, worthwhile } from './contraction.ts';
import { lowerTiled } from './gemm.ts';
import type { LibraryProduct } from './library.ts';
import { byThreads } from './simt/choose.ts';
import { classOf } from './simt/problem.ts';
import { tileOf } from './simt/tile.ts';

/** A contraction of which something is to be chosen. */
export interface Question {
  readonly key: string;
  /** What the library would compute; null where it cannot. */
  readonly product: LibraryProduct | null;
}

export function isChoice(name: string): boolean {
  return name === byTiles || name === byLibrary || tileOf(name) !== null;
}

/** The contraction as a product that the library takes, else null. */
function libraryProduct(c: Contraction, library: ProductLibrary | null | undefined): LibraryProduct | null {
  const found = library?.programs.find(c) ?? null;
  return found !== null && library?.takes(found.product) ? found : null;
}

/** Null where there is only one way. */
export function questionOf(
  c: Contraction,
  caps: CodegenCaps,
  library: ProductLibrary | null | undefined,
): Question | null {
  const product = libraryProduct(c, library);
  if (product === null) return caps.simt ? { key: classOf(c, caps), product } : null;
  return { key: `${classOf(c, caps)} ${library?.name}${product.direct ? '' : '+'}`, product };
}

/**
 * Contractions on engines of either kind and on those with a library: which of the ways lowers a kernel, or none. The planner gets here by
 * `caps.lowering` (targets/any.ts).
 */

/** Lowers a kernel around a contraction by the engine's kind, or by a library where that was measured faster; null where the plain
 * loop nest is as good. */
export const lowerContraction: ContractionTemplate = (kernel, e, caps, choices) => {
  const c = worthwhile(kernel, e, caps);
  if (c === null) return null;
  const question = choices === undefined ? null : questionOf(c, caps, choices.library);
  if (question !== null) choices?.note(question.key, kernel, e);
  const chosen = question === null ? undefined : choices?.find(question.key);
  if (chosen === byLibrary && question?.product)
    return choices?.library?.programs.lower(c, e, caps, question.product) ?? null;
  return caps.simt ? byThreads(c, e, caps, chosen) : lowerTiled(c, e, caps);
};
