/**
 * Choices for a contraction that may be measured, and the key under which the fastest is kept. A choice is a name: of a tile of
 * threads (simt/problem.ts), of the tiles of an engine without threads, or of a library.
 */
import type { CodegenCaps } from '../codegen/lowering.ts';
import type { Contraction } from './contraction.ts';
import { byLibrary, byTiles, type ProductLibrary } from './template.ts';
import type { LibraryProduct } from './products/library.ts';
import { classOf, isStagedName, tileOf } from './simt/problem.ts';

/** A contraction with a choice to make. */
export interface Question {
  readonly key: string;
  /** The product as the library takes it; null where it cannot. */
  readonly product: LibraryProduct | null;
}

export function isChoice(name: string): boolean {
  return name === byTiles || name === byLibrary || isStagedName(name) || tileOf(name) !== null;
}

/** The contraction as the first product that the library takes, else null. */
function libraryProduct(c: Contraction, library: ProductLibrary | null | undefined): LibraryProduct | null {
  if (!library) return null;
  return library.programs.find(c).find(({ product }) => library.takes(product)) ?? null;
}

/** The question; null where there is only one way. */
export function questionOf(
  c: Contraction,
  caps: CodegenCaps,
  library: ProductLibrary | null | undefined,
): Question | null {
  const found = libraryProduct(c, library);
  if (found === null) return caps.simt ? { key: classOf(c, caps), product: null } : null;
  return { key: `${classOf(c, caps)} ${library!.nameOf(found.product)}${found.details}`, product: found };
}
