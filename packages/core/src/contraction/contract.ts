/** What the lowering of contractions is given, and what may be measured of it. */
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import type { LoopKernel } from '../ir/ir.ts';
import type { ProductLibrary } from './product-library.ts';

/** What was measured, for engines with groups of threads or a library for products (tuning/). */
export interface TileChoices {
  /** The engine's library, if it has one. */
  readonly library?: ProductLibrary | null;
  /** Name of what was chosen for a class of contractions (choice.ts); undefined if nothing was measured. */
  find(key: string): string | undefined;
  /** Told of every contraction that is lowered. */
  note(key: string, kernel: LoopKernel, e: Exprs): void;
}

/**
 * Lowers a kernel around a contraction, or returns null: then the loop nest is lowered as it stands. `e` is the factory that made the
 * kernel's nodes.
 */
export type ContractionTemplate = (
  kernel: LoopKernel,
  e: Exprs,
  caps: CodegenCaps,
  choices?: TileChoices,
) => Lowered | null;

/** A way to lower a contraction, by name. */
export type Way = readonly [name: string, lower: () => Lowered];
