/** Methods of Tensors: triangles and diagonals. Details, shapes and errors are told with the functions. */
import { diagonal, trace, tril, triu } from '../../ops/ranges.ts';
import type { Tensor } from '../types.ts';

export interface RangeMethods {
  /** The lower triangles of the matrices in the last two axes, zeros above. */
  tril(options?: { readonly diagonal?: number }): Tensor;
  /** The upper triangles of the matrices in the last two axes, zeros below. */
  triu(options?: { readonly diagonal?: number }): Tensor;
  /** The diagonal of the matrices in two axes, as the last axis. */
  diagonal(options?: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number }): Tensor;
  /** The sum of a matrix's diagonal; of all matrices in the last two axes. */
  trace(options?: { readonly offset?: number }): Tensor;
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
};
