/** Methods of Tensors: losses, of the prediction. Details, shapes and errors are told with the functions. */
import { type ClassLossOptions, crossEntropy, type CrossEntropyOptions, nllLoss } from '../ops/class-loss.ts';
import {
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  gaussianNllLoss,
  type GaussianNllOptions,
  huberLoss,
  klDiv,
  l1Loss,
  type LossOptions,
  mseLoss,
  smoothL1Loss,
} from '../ops/loss.ts';
import type { Reduction } from '../ops/loss-forms.ts';
import {
  cosineEmbeddingLoss,
  hingeLoss,
  type MarginOptions,
  tripletMarginLoss,
  type TripletOptions,
} from '../ops/margin-loss.ts';
import type { Tensor } from '../tensor/types.ts';

export interface LossMethods {
  /** The mean square of the difference. */
  mseLoss(target: Tensor, options?: LossOptions): Tensor;
  /** The mean magnitude of the difference. */
  l1Loss(target: Tensor, options?: LossOptions): Tensor;
  /** A square near the target, the magnitude further off. */
  smoothL1Loss(target: Tensor, options?: LossOptions & { readonly beta?: number }): Tensor;
  /** A square near the target, a line further off. */
  huberLoss(target: Tensor, options?: LossOptions & { readonly delta?: number }): Tensor;
  /** The cross-entropy of logits with class numbers or probabilities. */
  crossEntropy(target: Tensor, options?: CrossEntropyOptions): Tensor;
  /** The negative logarithm of the probability of the class, of log probabilities. */
  nllLoss(target: Tensor, options?: ClassLossOptions): Tensor;
  /** The cross-entropy of probabilities of two classes. */
  binaryCrossEntropy(target: Tensor, options?: LossOptions & { readonly weight?: Tensor }): Tensor;
  /** The same of logits. */
  binaryCrossEntropyWithLogits(
    target: Tensor,
    options?: LossOptions & { readonly weight?: Tensor; readonly posWeight?: Tensor | number },
  ): Tensor;
  /** The Kullback-Leibler divergence from the target, of log probabilities. */
  klDiv(
    target: Tensor,
    options?: { readonly reduction?: Reduction | 'batchMean'; readonly logTarget?: boolean },
  ): Tensor;
  /** The negative log likelihood of the target under normal distributions. */
  gaussianNllLoss(target: Tensor, variance: Tensor, options?: GaussianNllOptions): Tensor;
  /** The hinge loss of scores with targets of -1 and 1. */
  hingeLoss(target: Tensor, options?: MarginOptions): Tensor;
  /** Vectors towards each other where the target is 1, apart where it is -1. */
  cosineEmbeddingLoss(b: Tensor, target: Tensor, options?: MarginOptions): Tensor;
  /** Closer to the positive than to the negative by a margin. */
  tripletMarginLoss(positive: Tensor, negative: Tensor, options?: TripletOptions): Tensor;
}

export const lossMethods: LossMethods & ThisType<Tensor> = {
  mseLoss(target, options) {
    return mseLoss(this, target, options);
  },
  l1Loss(target, options) {
    return l1Loss(this, target, options);
  },
  smoothL1Loss(target, options) {
    return smoothL1Loss(this, target, options);
  },
  huberLoss(target, options) {
    return huberLoss(this, target, options);
  },
  crossEntropy(target, options) {
    return crossEntropy(this, target, options);
  },
  nllLoss(target, options) {
    return nllLoss(this, target, options);
  },
  binaryCrossEntropy(target, options) {
    return binaryCrossEntropy(this, target, options);
  },
  binaryCrossEntropyWithLogits(target, options) {
    return binaryCrossEntropyWithLogits(this, target, options);
  },
  klDiv(target, options) {
    return klDiv(this, target, options);
  },
  gaussianNllLoss(target, variance, options) {
    return gaussianNllLoss(this, target, variance, options);
  },
  hingeLoss(target, options) {
    return hingeLoss(this, target, options);
  },
  cosineEmbeddingLoss(b, target, options) {
    return cosineEmbeddingLoss(this, b, target, options);
  },
  tripletMarginLoss(positive, negative, options) {
    return tripletMarginLoss(this, positive, negative, options);
  },
};
