/** Methods of Tensors: indexing with tensors. Details, shapes and errors are told with the functions. */
import type { IndexAxis, IndexLike } from '../ops/index-argument.ts';
import { gather, indexAdd, indexSelect, maskedFill, scatterAdd, take, takeAlongAxis } from '../ops/indexing.ts';
import {
  type ScatterReduceOptions,
  type ScatterReduction,
  gatherNd,
  indexCopy,
  indexFill,
  scatter,
  scatterReduce,
} from '../ops/scattering.ts';
import { maskedSelect, nonZero } from '../ops/selecting.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface IndexingMethods {
  /** Slices of x at the indices: the axis is replaced by the shape of the indices. */
  take(indices: IndexLike, axis?: IndexAxis): Tensor;
  /** The same as take, for one-dimensional indices. */
  indexSelect(indices: IndexLike, axis?: IndexAxis): Tensor;
  /** One element of x per index, at the index's own position in all other axes. */
  takeAlongAxis(indices: IndexLike, axis?: IndexAxis): Tensor;
  /** The same as takeAlongAxis, but other sizes of the indices may be smaller than those of x. */
  gather(indices: IndexLike, axis?: IndexAxis): Tensor;
  /** x with the updates added at the indices, at their own position in all other axes; repeated indices add up. */
  scatterAdd(indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor;
  /** x with slices added at one-dimensional indices along an axis; repeated indices add up. */
  indexAdd(indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor;
  /** `value` where the mask is true, x elsewhere. */
  maskedFill(mask: Tensor, value: TensorLike): Tensor;
  /** x with the updates at the indices, at their own position in all other axes; the last of several for one place. */
  scatter(indices: IndexLike, updates: Tensor | number, axis?: IndexAxis): Tensor;
  /** x with the updates combined into it at the indices, at their own position in all other axes. */
  scatterReduce(
    indices: IndexLike,
    updates: Tensor | number,
    reduce: ScatterReduction,
    options?: ScatterReduceOptions,
  ): Tensor;
  /** x with whole slices replaced at one-dimensional indices along an axis; the last of several for one place. */
  indexCopy(indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor;
  /** x with whole slices at one-dimensional indices along an axis set to a number. */
  indexFill(indices: IndexLike, value: Tensor | number, axis?: IndexAxis): Tensor;
  /** Elements or slices of x at coordinates: each row of the last axis of the indices names a place along the first axes of x. */
  gatherNd(indices: IndexLike): Tensor;
  /** Coordinates of the elements that are not 0, in row-major order. Asynchronous, because their number depends on data. */
  nonZero(): Promise<Tensor>;
  /** The elements where the mask is true, in row-major order. Asynchronous, because their number depends on data. */
  maskedSelect(mask: Tensor): Promise<Tensor>;
}

export const indexingMethods: IndexingMethods & ThisType<Tensor> = {
  take(indices, axis) {
    return take(this, indices, axis);
  },
  indexSelect(indices, axis) {
    return indexSelect(this, indices, axis);
  },
  takeAlongAxis(indices, axis) {
    return takeAlongAxis(this, indices, axis);
  },
  gather(indices, axis) {
    return gather(this, indices, axis);
  },
  scatterAdd(indices, updates, axis) {
    return scatterAdd(this, indices, updates, axis);
  },
  indexAdd(indices, updates, axis) {
    return indexAdd(this, indices, updates, axis);
  },
  maskedFill(mask, value) {
    return maskedFill(this, mask, value);
  },
  scatter(indices, updates, axis) {
    return scatter(this, indices, updates, axis);
  },
  scatterReduce(indices, updates, reduce, options) {
    return scatterReduce(this, indices, updates, reduce, options);
  },
  indexCopy(indices, updates, axis) {
    return indexCopy(this, indices, updates, axis);
  },
  indexFill(indices, value, axis) {
    return indexFill(this, indices, value, axis);
  },
  gatherNd(indices) {
    return gatherNd(this, indices);
  },
  nonZero() {
    return nonZero(this);
  },
  maskedSelect(mask) {
    return maskedSelect(this, mask);
  },
};
