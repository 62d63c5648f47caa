import type { Tensor, TensorLike } from './types.ts';
export interface TensorMethods {
  add(other: TensorLike): Tensor;
  mul(other: TensorLike): Tensor;
}
