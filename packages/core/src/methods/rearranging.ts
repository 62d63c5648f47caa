/** Methods of Tensors: diagonals, turns, patches and pixels. Details, shapes and errors are told with the functions. */
import type { PerAxis } from '../ops/image.ts';
import { diag, diagEmbed, rot90 } from '../ops/diagonals.ts';
import { type PatchOptions, fold, pixelShuffle, pixelUnshuffle, unfold } from '../ops/patches.ts';
import type { Tensor } from '../tensor/types.ts';

export interface RearrangingMethods {
  /** A vector as the diagonal of a matrix, or the diagonal of a matrix. */
  diag(options?: { readonly offset?: number }): Tensor;
  /** The last axis as the diagonals of matrices of zeros. */
  diagEmbed(options?: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number }): Tensor;
  /** The plane of two axes turned by quarters. */
  rot90(turns?: number, axes?: readonly [number, number]): Tensor;
  /** The patches of images as columns. */
  unfold(kernelSize: PerAxis, options?: PatchOptions): Tensor;
  /** Columns of patches put back and summed: the transpose of unfold. */
  fold(outputSize: PerAxis, kernelSize: PerAxis, options?: PatchOptions): Tensor;
  /** Channels as pixels. */
  pixelShuffle(factor: number): Tensor;
  /** Pixels as channels. */
  pixelUnshuffle(factor: number): Tensor;
}

export const rearrangingMethods: RearrangingMethods & ThisType<Tensor> = {
  diag(options) {
    return diag(this, options);
  },
  diagEmbed(options) {
    return diagEmbed(this, options);
  },
  rot90(turns, axes) {
    return rot90(this, turns, axes);
  },
  unfold(kernelSize, options) {
    return unfold(this, kernelSize, options);
  },
  fold(outputSize, kernelSize, options) {
    return fold(this, outputSize, kernelSize, options);
  },
  pixelShuffle(factor) {
    return pixelShuffle(this, factor);
  },
  pixelUnshuffle(factor) {
    return pixelUnshuffle(this, factor);
  },
};
