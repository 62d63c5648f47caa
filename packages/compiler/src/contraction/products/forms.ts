/** Types of products for a library of the device: the facts they are recognised from (`Factors`), and the result (`LibraryProduct`). */
import type { Range } from '../../ir/free-ranges.ts';
import type { Count, KNode, Product } from '../../ir/ir.ts';
import type { DType } from '../../shape/dtype.ts';
import type { Counts, SizedAccess } from './counts.ts';

/** A contraction as a product. */
export interface ProductForm {
  readonly product: Product<Count>;
  /** True if the library writes where the kernel stores; otherwise results go through memory, in this order. */
  readonly direct: boolean;
  readonly order: readonly Range[];
}

/** The same with `details`, further facts that its speed depends on: a part of the key of its measurement. */
export interface LibraryProduct extends ProductForm {
  readonly details: string;
}

/** A store that keeps sums as they are, or rounded: where, and in which dtype. */
export interface OwnStore {
  readonly access: SizedAccess;
  readonly dtype: DType;
}

/** What is known of a contraction's factors and its store. */
export interface Factors {
  readonly counts: Counts;
  /** Both factors as memory holds them, in the contraction's order. */
  readonly stored: readonly [KNode, KNode];
  readonly dtype: DType;
  readonly own: OwnStore | null;
  /** The value that goes through memory where there is no such store: the sums; rounded to 16 bits if only rounded sums are used. */
  readonly apart: KNode;
}
