/** Methods of Tensors: products of vectors, matrices and tensors. Details, shapes and errors are told with the functions. */
import { type GemmOptions, dot, gemm, gemv, inner, matmul, outer, tensordot, vdot } from '../ops/matmul.ts';
import { bilinear, cross, kron } from '../ops/products.ts';
import type { OneAxis } from '../ops/softmax.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

export interface ProductMethods {
  /** The matrix product. */
  matmul(b: Tensor): Tensor;
  /** alpha * A B + beta * C, A and B transposed if asked for. */
  gemm(b: Tensor, options?: GemmOptions): Tensor;
  /** alpha * A x + beta * y, A transposed if asked for. */
  gemv(
    x: Tensor,
    options?: {
      readonly alpha?: TensorLike;
      readonly beta?: TensorLike;
      readonly y?: TensorLike;
      readonly transA?: boolean;
    },
  ): Tensor;
  /** The dot product as NumPy defines it: of vectors a number, of matrices the matrix product, otherwise the sum over the last axis of a and the second to last of b; a scalar multiplies. */
  dot(b: Tensor): Tensor;
  /** The sum of products over the last axes of both. */
  inner(b: Tensor): Tensor;
  /** The dot product of all elements in row-major order. */
  vdot(b: Tensor): Tensor;
  /** All products of an element of a with one of b. */
  outer(b: Tensor): Tensor;
  /** The sum of products over chosen axes. */
  tensordot(b: Tensor, axes?: number | readonly [readonly number[], readonly number[]]): Tensor;
  /** The Kronecker product: every element times all of b. */
  kron(b: Tensor): Tensor;
  /** The cross product of vectors in space, along an axis (-1). */
  cross(b: Tensor, axis?: OneAxis): Tensor;
  /** x W x2 for each matrix W of a stack, plus a bias. */
  bilinear(x2: Tensor, weight: Tensor, bias?: Tensor): Tensor;
}

export const productMethods: ProductMethods & ThisType<Tensor> = {
  matmul(b) {
    return matmul(this, b);
  },
  gemm(b, options) {
    return gemm(this, b, options);
  },
  gemv(x, options) {
    return gemv(this, x, options);
  },
  dot(b) {
    return dot(this, b);
  },
  inner(b) {
    return inner(this, b);
  },
  vdot(b) {
    return vdot(this, b);
  },
  outer(b) {
    return outer(this, b);
  },
  tensordot(b, axes) {
    return tensordot(this, b, axes);
  },
  kron(b) {
    return kron(this, b);
  },
  cross(b, axis) {
    return cross(this, b, axis);
  },
  bilinear(x2, weight, bias) {
    return bilinear(this, x2, weight, bias);
  },
};
