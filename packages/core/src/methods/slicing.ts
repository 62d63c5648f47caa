/** Methods of Tensors: parts of tensors, cuts and padding. Details, shapes and errors are told with the functions. */
import type { JoinAxis } from '../ops/joining.ts';
import { chunk, split, unbind } from '../ops/splitting.ts';
import { pad, type PadOptions, type PadWidths } from '../ops/padding.ts';
import { at, flip, narrow, roll, select, slice } from '../ops/slicing.ts';
import type { SliceSpec } from '../shape/slices.ts';
import type { Tensor } from '../tensor/types.ts';

export interface SlicingMethods {
  /** A part of a tensor, one specification per axis (missing ones mean the whole axis). */
  slice(specs: readonly SliceSpec[]): Tensor;
  /** The same as slice, with the specifications as arguments. */
  at(...specs: SliceSpec[]): Tensor;
  /** `length` elements of an axis from `start`. */
  narrow(axis: number, start: number, length: number): Tensor;
  /** One position of an axis; the axis disappears. */
  select(axis: number, index: number): Tensor;
  /** The order along axes reversed; along all if none are named. */
  flip(axis?: number | readonly number[]): Tensor;
  /** Elements moved along axes; what leaves at one end comes in at the other. */
  roll(shift: number | readonly number[], axis?: number | readonly number[]): Tensor;
  /** Elements put around a tensor; negative widths cut instead. */
  pad(widths: PadWidths, options?: PadOptions): Tensor;

  /** A tensor cut along an axis, in parts of `size` (the last may be smaller) or of the sizes listed. */
  split(size: number | readonly number[], axis?: JoinAxis): Tensor[];
  /** A tensor cut along an axis in at most `count` parts of equal size (the last may be smaller). */
  chunk(count: number, axis?: JoinAxis): Tensor[];
  /** The slices of a tensor along an axis, which disappears. */
  unbind(axis?: JoinAxis): Tensor[];
}

export const slicingMethods: SlicingMethods & ThisType<Tensor> = {
  slice(specs) {
    return slice(this, specs);
  },
  at(...specs) {
    return at(this, ...specs);
  },
  narrow(axis, start, length) {
    return narrow(this, axis, start, length);
  },
  select(axis, index) {
    return select(this, axis, index);
  },
  flip(axis) {
    return flip(this, axis);
  },
  roll(shift, axis) {
    return roll(this, shift, axis);
  },
  pad(widths, options) {
    return pad(this, widths, options);
  },
  split(size, axis) {
    return split(this, size, axis);
  },
  chunk(count, axis) {
    return chunk(this, count, axis);
  },
  unbind(axis) {
    return unbind(this, axis);
  },
};
