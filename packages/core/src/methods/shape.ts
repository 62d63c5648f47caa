/** Methods of Tensors: shapes: the same elements in another form, and repeated. Details, shapes and errors are told with the functions. */
import { broadcastTo, expand, repeat, repeatInterleave, tile } from '../ops/repeating.ts';
import {
  contiguous,
  flatten,
  moveAxis,
  permute,
  reshape,
  squeeze,
  transpose,
  unflatten,
  unsqueeze,
} from '../ops/shape.ts';
import type { Shape } from '../shape/view.ts';
import type { Tensor } from '../tensor/types.ts';

export interface ShapeMethods {
  /** The elements in row-major order under another shape. */
  reshape(shape: Shape): Tensor;
  /** Axes from `start` to `end` as one. */
  flatten(options?: { readonly start?: number; readonly end?: number }): Tensor;
  /** One axis as several. */
  unflatten(axis: number, sizes: Shape): Tensor;
  /** Axes in another order: axis i of the result is axis axes[i] of x. */
  permute(axes: readonly number[]): Tensor;
  /** Two axes exchanged; the last two if none are named. */
  transpose(axis1?: number, axis2?: number): Tensor;
  /** One axis, or several, moved to other positions; the others keep their order. */
  moveAxis(from: number | readonly number[], to: number | readonly number[]): Tensor;
  /** x stretched to a shape: axes of size 1, and missing leading axes, are repeated without a copy. */
  broadcastTo(shape: Shape): Tensor;
  /** Like broadcastTo; -1 keeps the size of an axis. */
  expand(shape: Shape): Tensor;
  /** Without axes of size 1: all of them, or those named. */
  squeeze(axis?: number | readonly number[]): Tensor;
  /** With an axis of size 1 put in, or several. */
  unsqueeze(axis: number | readonly number[]): Tensor;
  /** x repeated whole along each axis. */
  tile(repeats: readonly number[]): Tensor;
  /** The same as tile. */
  repeat(repeats: readonly number[]): Tensor;
  /** Every element repeated in place. */
  repeatInterleave(count: number | readonly number[], options?: { readonly axis?: number }): Tensor;
  /** The same values in memory of their own, in row-major order. For data that is read often through an awkward view. */
  contiguous(): Tensor;
}

export const shapeMethods: ShapeMethods & ThisType<Tensor> = {
  reshape(shape) {
    return reshape(this, shape);
  },
  flatten(options) {
    return flatten(this, options);
  },
  unflatten(axis, sizes) {
    return unflatten(this, axis, sizes);
  },
  permute(axes) {
    return permute(this, axes);
  },
  transpose(axis1, axis2) {
    return transpose(this, axis1, axis2);
  },
  moveAxis(from, to) {
    return moveAxis(this, from, to);
  },
  broadcastTo(shape) {
    return broadcastTo(this, shape);
  },
  expand(shape) {
    return expand(this, shape);
  },
  squeeze(axis) {
    return squeeze(this, axis);
  },
  unsqueeze(axis) {
    return unsqueeze(this, axis);
  },
  tile(repeats) {
    return tile(this, repeats);
  },
  repeat(repeats) {
    return repeat(this, repeats);
  },
  repeatInterleave(count, options) {
    return repeatInterleave(this, count, options);
  },
  contiguous() {
    return contiguous(this);
  },
};
