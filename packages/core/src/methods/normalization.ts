/** Methods of Tensors: normalisations and dropout. Details, shapes and errors are told with the functions. */
import {
  groupNorm,
  type ImageNormOptions,
  instanceNorm,
  localResponseNorm,
  type LocalResponseNormOptions,
} from '../ops/image-normalization.ts';
import { batchNorm, type BatchNormOptions, layerNorm, type LayerNormOptions, rmsNorm } from '../ops/normalization.ts';
import { dropout } from '../ops/dropout.ts';
import type { RandomKey } from '../tensor/random-key.ts';
import type { Tensor } from '../tensor/types.ts';

export interface NormalizationMethods {
  /** Every channel with mean 0 and variance 1 over the batch. */
  batchNorm(options?: BatchNormOptions): Tensor;
  /** The last axes with mean 0 and variance 1. */
  layerNorm(options?: LayerNormOptions): Tensor;
  /** The last axes divided by the root of their mean square. */
  rmsNorm(options?: LayerNormOptions): Tensor;
  /** Groups of channels with mean 0 and variance 1. */
  groupNorm(options: ImageNormOptions & { readonly groups: number }): Tensor;
  /** Every channel of each image with mean 0 and variance 1. */
  instanceNorm(options?: ImageNormOptions): Tensor;
  /** Divided by what neighbouring channels have at the same place. */
  localResponseNorm(options: LocalResponseNormOptions): Tensor;
  /** Zeros at random, the rest larger by as much; the same tensor outside of training. */
  dropout(options?: { readonly p?: number; readonly training?: boolean; readonly key?: RandomKey | number }): Tensor;
}

export const normalizationMethods: NormalizationMethods & ThisType<Tensor> = {
  batchNorm(options) {
    return batchNorm(this, options);
  },
  layerNorm(options) {
    return layerNorm(this, options);
  },
  rmsNorm(options) {
    return rmsNorm(this, options);
  },
  groupNorm(options) {
    return groupNorm(this, options);
  },
  instanceNorm(options) {
    return instanceNorm(this, options);
  },
  localResponseNorm(options) {
    return localResponseNorm(this, options);
  },
  dropout(options) {
    return dropout(this, options);
  },
};
