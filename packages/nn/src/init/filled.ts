/**
 * Tensors of one value that are uploaded. `zeros` of the core package is a constant of the kernels that use it: it has no memory until it is assigned
 * to. A training whose state began with it would make one plan for its first step and another for all others.
 */
import { uploaded } from '@polygrad/core/engine';
import type { DType, Tensor } from '@polygrad/core/functions';

/** A tensor of one value in memory. */
export function filled(shape: readonly number[], value: number, dtype: DType = 'float32'): Tensor {
  const size = shape.reduce((product, extent) => product * extent, 1);
  const List = dtype === 'float64' ? Float64Array : Float32Array;
  return uploaded(new List(size).fill(value), shape, dtype);
}
