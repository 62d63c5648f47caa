/** Methods of Tensors: indexing with tensors. Details, shapes and errors are told with the functions. */
import {
  type IndexAxis,
  gather,
  indexAdd,
  indexSelect,
  maskedFill,
  scatterAdd,
  take,
  takeAlongAxis,
} from '../../ops/indexing.ts';
import type { Tensor } from '../types.ts';

export interface IndexingMethods {
  /** Slices of x at the indices: the axis is replaced by the shape of the indices. */
  take(indices: Tensor, axis?: IndexAxis): Tensor;
  /** The same as take, for one-dimensional indices. */
  indexSelect(indices: Tensor, axis?: IndexAxis): Tensor;
  /** One element of x per index, at the index's own position in all other axes. */
  takeAlongAxis(indices: Tensor, axis?: IndexAxis): Tensor;
  /** The same as takeAlongAxis, but other sizes of the indices may be smaller than those of x. */
  gather(indices: Tensor, axis?: IndexAxis): Tensor;
  /** x with the updates added at the indices, at their own position in all other axes; repeated indices add up. */
  scatterAdd(indices: Tensor, updates: Tensor, axis?: IndexAxis): Tensor;
  /** x with slices added at one-dimensional indices along an axis; repeated indices add up. */
  indexAdd(indices: Tensor, updates: Tensor, axis?: IndexAxis): Tensor;
  /** `value` where the mask is true, x elsewhere. */
  maskedFill(mask: Tensor, value: number): Tensor;
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
};
