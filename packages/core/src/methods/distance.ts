/** Methods of Tensors: lengths, angles and distances of vectors. Details, shapes and errors are told with the functions. */
import { type NormalizeOptions, cdist, cosineSimilarity, normalize } from '../ops/distance.ts';
import { rbfKernel } from '../ops/rbf.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface DistanceMethods {
  /** The cosine of the angle between vectors along an axis. */
  cosineSimilarity(b: Tensor, options?: { readonly axis?: number; readonly eps?: number }): Tensor;
  /** Vectors along an axis divided by their lengths. */
  normalize(options?: NormalizeOptions): Tensor;
  /** Distances between all pairs of rows. */
  cdist(b: Tensor, options?: { readonly p?: number }): Tensor;
  /** exp(-gamma d^2) of the distances between all pairs of rows. */
  rbfKernel(y: Tensor, options?: { readonly gamma?: TensorLike }): Tensor;
}

export const distanceMethods: DistanceMethods & ThisType<Tensor> = {
  cosineSimilarity(b, options) {
    return cosineSimilarity(this, b, options);
  },
  normalize(options) {
    return normalize(this, options);
  },
  cdist(b, options) {
    return cdist(this, b, options);
  },
  rbfKernel(y, options) {
    return rbfKernel(this, y, options);
  },
};
