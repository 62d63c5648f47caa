/**
 * The ways a tensor's values can lie in memory. Each layout builds a tensor of the library whose logical values are those of the oracle array.
 * Kernels must follow its view: transposed, every second element of a larger buffer, reversed.
 */
import { type DType, type Tensor, flip, permute, scope, slice, tensor } from '@polygrad/core';
import { count, flip as flipArray, type NDArray, permute as permuteArray } from './oracle/ndarray.ts';

export type Layout = 'plain' | 'transposed' | 'strided' | 'flipped';

export const layouts: readonly Layout[] = ['plain', 'transposed', 'strided', 'flipped'];

/** True if the layout differs from 'plain' for this shape. */
export function layoutApplies(layout: Layout, shape: readonly number[]): boolean {
  if (layout === 'plain') return true;
  if (count(shape) < 2) return false;
  return layout === 'transposed' ? shape.length >= 2 : true;
}

/** A library tensor with the values of `a`. Float data is float32-rounded by the caller. */
export function makeTensor(a: NDArray, dtype: DType, layout: Layout = 'plain'): Tensor {
  return scope(() => arrange(a, dtype, layout));
}

function arrange(a: NDArray, dtype: DType, layout: Layout): Tensor {
  const axes = a.shape.map((_, i) => i);
  switch (layout) {
    case 'plain':
      return fromArray(a, dtype);
    case 'transposed': {
      const reversed = [...axes].reverse();
      return permute(fromArray(permuteArray(a, reversed), dtype), reversed);
    }
    case 'strided': {
      // Values interleaved with others that no kernel may touch the result with.
      const last = a.shape.length - 1;
      const wide = [...a.shape.slice(0, last), a.shape[last]! * 2];
      const filler = dtype === 'float32' || dtype === 'float64' ? Number.NaN : 1;
      const data = a.data.flatMap((x) => [x, filler]);
      return slice(
        fromArray({ shape: wide, data }, dtype),
        axes.map((axis) => (axis === last ? { step: 2 } : {})),
      );
    }
    case 'flipped':
      return flip(fromArray(flipArray(a, axes), dtype), axes);
    default:
      return layout satisfies never;
  }
}

function fromArray(a: NDArray, dtype: DType): Tensor {
  return tensor(a.data as number[], { dtype, shape: [...a.shape] });
}
