/**
 * What a program computes, where that is a product of matrices and nothing else: enough for a library of the device to run in its
 * place. The program stays the definition, and is what runs where there is no such library.
 */
import type { DType } from '../shape/dtype.ts';

/** Matrices in memory, row-major. Offset, stride and distance count elements. */
export interface MatrixOperand {
  /** PARAM slot of the program. */
  readonly slot: number;
  /** The first element. */
  readonly offset: number;
  /** From one row to the next as they lie in memory. */
  readonly stride: number;
  /** From one matrix of the batch to the next. */
  readonly distance: number;
  /** Rows in memory are columns of the matrix. */
  readonly transposed: boolean;
}

/** c = a b for `batch` pairs: a is m x k, b is k x n, and c, which is overwritten, m x n and never transposed. */
export interface MatrixProduct {
  readonly dtype: DType;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: number;
  readonly a: MatrixOperand;
  readonly b: MatrixOperand;
  readonly c: MatrixOperand;
}
