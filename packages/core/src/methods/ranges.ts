/** Methods of Tensors: triangles, diagonals and one-hot vectors. Details, shapes and errors are told with the functions. */
import { diagonal, trace } from '../ops/diagonals.ts';
import { oneHot, tril, triu } from '../ops/triangles.ts';
import type { DType } from '../shape/dtype.ts';
import type { Tensor } from '../tensor/types.ts';

export interface RangeMethods {
  /** The lower triangles of the matrices in the last two axes, zeros above. */
  tril(options?: { readonly diagonal?: number }): Tensor;
  /** The upper triangles of the matrices in the last two axes, zeros below. */
  triu(options?: { readonly diagonal?: number }): Tensor;
  /** The diagonal of the matrices in two axes, as the last axis. */
  diagonal(options?: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number }): Tensor;
  /** The sum of a matrix's diagonal; of all matrices in the last two axes. */
  trace(options?: { readonly offset?: number }): Tensor;
  /** For each class number a vector with a one there and zeros elsewhere. */
  oneHot(classes: number, options?: { readonly dtype?: DType }): Tensor;
}

export const rangeMethods: RangeMethods & ThisType<Tensor> = {
  tril(options) {
    return tril(this, options);
  },
  triu(options) {
    return triu(this, options);
  },
  diagonal(options) {
    return diagonal(this, options);
  },
  trace(options) {
    return trace(this, options);
  },
  oneHot(classes, options) {
    return oneHot(this, classes, options);
  },
};
