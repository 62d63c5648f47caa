/** What both forms of products for a library are made from, and made as. */
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, Product } from '../../ir/ir.ts';
import type { DType } from '../../shape/dtype.ts';
import type { LinearAccess } from '../access.ts';

/** A contraction as a product. */
export interface ProductForm {
  readonly product: Product;
  /** True if the library writes where the kernel stores; otherwise results go through memory, in this order. */
  readonly direct: boolean;
  readonly order: readonly Range[];
}

/** The same with what else its speed hangs on: part of the key under which its measurement is kept. */
export interface LibraryProduct extends ProductForm {
  readonly details: string;
}

/** A store that keeps sums as they are, or rounded: where, and in which dtype. */
export interface OwnStore {
  readonly access: LinearAccess;
  readonly dtype: DType;
}

/** What is known of a contraction's factors and its store. */
export interface Factors {
  /** Both factors as memory holds them, in the contraction's order. */
  readonly stored: readonly [KNode, KNode];
  readonly dtype: DType;
  readonly own: OwnStore | null;
  /** What goes through memory where there is no such store: the sums, or the sums rounded to the factors' 16 bits where nothing else is made of them. */
  readonly apart: KNode;
}
