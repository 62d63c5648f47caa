/** Methods of Tensors: attention and tables of vectors. Details, shapes and errors are told with the functions. */
import { type AttentionOptions, scaledDotProductAttention } from '../ops/attention.ts';
import { type EmbeddingBagOptions, type EmbeddingOptions, embedding, embeddingBag } from '../ops/embedding.ts';
import { type RotaryOptions, rotaryEmbedding } from '../ops/rotary.ts';
import type { Tensor } from '../tensor/types.ts';

export interface AttentionMethods {
  /** Sums of the values, weighted by how well their keys fit this query. */
  scaledDotProductAttention(key: Tensor, value: Tensor, options?: AttentionOptions): Tensor;
  /** Pairs of features turned by angles that grow with the position. */
  rotaryEmbedding(options?: RotaryOptions): Tensor;
  /** The rows of a table at these indices. */
  embedding(weight: Tensor, options?: EmbeddingOptions): Tensor;
  /** Sums, means or maxima of rows of a table, one for each bag of these indices. */
  embeddingBag(weight: Tensor, options?: EmbeddingBagOptions): Tensor;
}

export const attentionMethods: AttentionMethods & ThisType<Tensor> = {
  scaledDotProductAttention(key, value, options) {
    return scaledDotProductAttention(this, key, value, options);
  },
  rotaryEmbedding(options) {
    return rotaryEmbedding(this, options);
  },
  embedding(weight, options) {
    return embedding(this, weight, options);
  },
  embeddingBag(weight, options) {
    return embeddingBag(this, weight, options);
  },
};
