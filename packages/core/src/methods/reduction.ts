/** Methods of Tensors: reductions and statistics. Details, shapes and errors are told with the functions. */
import { all, any, argMax, argMin, countNonZero, max, min, prod, sum } from '../ops/reduction.ts';
import {
  type NormOptions,
  type VarianceOptions,
  logSumExp,
  mean,
  nanMean,
  nanSum,
  norm,
  std,
  variance,
} from '../ops/statistics.ts';
import type { AxisArgument, Tensor } from '../tensor/types.ts';

export interface ReductionMethods {
  /** The sum of elements; 0 of none. bool and small integers are summed as int32 or uint32. */
  sum(axis?: AxisArgument): Tensor;
  /** The product of elements; 1 of none. Its gradient is exact with any number of zeros. */
  prod(axis?: AxisArgument): Tensor;
  /** The largest element; NaN if there is one. Equals share the gradient. */
  max(axis?: AxisArgument): Tensor;
  /** The smallest element; NaN if there is one. Equals share the gradient. */
  min(axis?: AxisArgument): Tensor;
  /** The position (int32) of the largest element along an axis, or in row-major order over several or all; the first of equals, the first NaN if there is one. */
  argMax(axis?: AxisArgument): Tensor;
  /** The position (int32) of the smallest element; see argMax. */
  argMin(axis?: AxisArgument): Tensor;
  /** True if any element is (is not 0); false of none. */
  any(axis?: AxisArgument): Tensor;
  /** True if all elements are (are not 0); true of none. */
  all(axis?: AxisArgument): Tensor;
  /** The number of elements that are not 0, int32. */
  countNonZero(axis?: AxisArgument): Tensor;

  /** The mean; NaN of no elements. */
  mean(axis?: AxisArgument): Tensor;
  /** The mean squared distance from the mean, computed in two passes. */
  variance(options?: VarianceOptions | AxisArgument): Tensor;
  /** The square root of the variance. */
  std(options?: VarianceOptions | AxisArgument): Tensor;
  /** log(sum(exp(x))) without overflow; -infinity of rows that are all -infinity. */
  logSumExp(axis?: AxisArgument): Tensor;
  /** The p-norm of the elements as one vector. */
  norm(options?: NormOptions | AxisArgument): Tensor;
  /** The sum of the elements that are not NaN. */
  nanSum(axis?: AxisArgument): Tensor;
  /** The mean of the elements that are not NaN. */
  nanMean(axis?: AxisArgument): Tensor;
}

export const reductionMethods: ReductionMethods & ThisType<Tensor> = {
  sum(axis) {
    return sum(this, axis);
  },
  prod(axis) {
    return prod(this, axis);
  },
  max(axis) {
    return max(this, axis);
  },
  min(axis) {
    return min(this, axis);
  },
  argMax(axis) {
    return argMax(this, axis);
  },
  argMin(axis) {
    return argMin(this, axis);
  },
  any(axis) {
    return any(this, axis);
  },
  all(axis) {
    return all(this, axis);
  },
  countNonZero(axis) {
    return countNonZero(this, axis);
  },
  mean(axis) {
    return mean(this, axis);
  },
  variance(options) {
    return variance(this, options);
  },
  std(options) {
    return std(this, options);
  },
  logSumExp(axis) {
    return logSumExp(this, axis);
  },
  norm(options) {
    return norm(this, options);
  },
  nanSum(axis) {
    return nanSum(this, axis);
  },
  nanMean(axis) {
    return nanMean(this, axis);
  },
};
