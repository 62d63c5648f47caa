/**
 * Reductions, and statistics made of them. A reduction is one result from all elements along some axes.
 *
 * All take `axis` (one or several, default all) and `keepDims`, as options or the axes alone: `sum(x, 0)`,
 * `sum(x, [0, 1])`, `sum(x, { axis: 0, keepDims: true })`. Wrong axes throw ShapeError.
 */
import type { Node } from '../../graph/node.ts';
import { argReduce as argReduceNode, cast, constant, reduce, reshape, stopGradient } from '../../graph/primitives.ts';
import { beginOp, compose, opName } from '../../graph/scope.ts';
import { keepAxes, type Axes, readAxes } from '@polygrad/compiler/shape/axes';
import { isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { type OptionNames, shown } from '@polygrad/compiler/shape/options';
import { isList, say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, operand } from '../../tensor/operand.ts';
import type { AxisArgument, AxisOptions, Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, cast as castTo, div, mul, pow, square, sub } from '../elementwise/arithmetic.ts';
import { equal, isFinite as areFinite, isNaN as areNaN, logicalAnd, logicalNot } from '../elementwise/logic.ts';
import { inFloat32, sumDType, where } from '../elementwise/recording.ts';
import { exp, log, sqrt } from '../elementwise/transcendental.ts';

/** Puts axes of size 1 back if asked for. */
function withKept(reduced: Node, x: Node, { axes, keepDims }: Axes): Node {
  return keepDims ? reshape(reduced, keepAxes(x.shape, axes)) : reduced;
}

function reduced(
  op: string,
  kind: 'sum' | 'prod' | 'max' | 'min',
  x: TensorLike,
  argument: AxisArgument | undefined,
): Tensor {
  beginOp(op);
  let node = operand(x);
  const axes = readAxes(opName(op), argument, node.shape.length);
  if (kind === 'sum' || kind === 'prod') node = cast(node, sumDType(node.dtype));
  if (node.dtype === 'bool') {
    const bits = reduce(cast(node, 'int32'), kind, axes.axes);
    return wrap(withKept(cast(bits, 'bool'), node, axes));
  }
  return wrap(withKept(reduce(node, kind, axes.axes), node, axes));
}

/**
 * The sum of elements; 0 of none. bool and small integers are summed as int32 or uint32. Source: Array API `sum`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1
 *
 * @example
 * sum(tensor([[1, 2], [3, 4]]), { axis: 1 }); // [3, 7]
 */
export function sum(x: TensorLike, axis?: AxisArgument): Tensor {
  return reduced('sum', 'sum', x, axis);
}

/**
 * The product of elements; 1 of none. Its gradient is exact with any number of zeros. Source: Array API `prod`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1
 *
 * @example
 * prod(tensor([2, 3, 4])); // 24
 */
export function prod(x: TensorLike, axis?: AxisArgument): Tensor {
  return reduced('prod', 'prod', x, axis);
}

/**
 * The largest element; NaN if there is one. Equals share the gradient. Source: Array API `max`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; of the dtype of the input
 * @throws ShapeError for empty axes
 *
 * @example
 * max(tensor([[1, 5], [7, 3]]), { axis: 0 }); // [7, 5]
 */
export function max(x: TensorLike, axis?: AxisArgument): Tensor {
  return reduced('max', 'max', x, axis);
}

/**
 * The smallest element; NaN if there is one. Equals share the gradient. Source: Array API `min`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; of the dtype of the input
 * @throws ShapeError for empty axes
 *
 * @example
 * min(tensor([[1, 5], [7, 3]]), { axis: 0 }); // [1, 3]
 */
export function min(x: TensorLike, axis?: AxisArgument): Tensor {
  return reduced('min', 'min', x, axis);
}

function arg(op: string, kind: 'max' | 'min', x: TensorLike, argument: AxisArgument | undefined): Tensor {
  beginOp(op);
  let node = operand(x);
  const axes = readAxes(opName(op), argument, node.shape.length);
  if (node.dtype === 'bool') node = cast(node, 'int32');
  const position = axes.axes.length === 0 ? constant(0, 'int32', node.shape) : argReduceNode(node, kind, axes.axes);
  return wrap(withKept(position, node, axes));
}

/**
 * The position (int32) of the largest element along an axis, or in row-major order over several or all; the first of equals,
 * the first NaN if there is one. Source: Array API `argmax`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1
 * @throws ShapeError for empty axes
 *
 * @example
 * argMax(tensor([[1, 5], [7, 3]]), { axis: 1 }); // [1, 0]
 */
export function argMax(x: TensorLike, axis?: AxisArgument): Tensor {
  return arg('argMax', 'max', x, axis);
}

/**
 * The position (int32) of the smallest element; see argMax. Source: Array API `argmin`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1
 * @throws ShapeError for empty axes
 *
 * @example
 * argMin(tensor([[1, 5], [7, 3]]), { axis: 1 }); // [0, 1]
 */
export function argMin(x: TensorLike, axis?: AxisArgument): Tensor {
  return arg('argMin', 'min', x, axis);
}

/** Elements that are not 0, as int32 0 and 1. */
function truthBits(x: TensorLike): Node {
  return cast(cast(operand(x), 'bool'), 'int32');
}

/**
 * True if any element is (is not 0); false of none. Source: Array API `any`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; bool
 *
 * @example
 * any(tensor([0, 2])); // true
 */
export function any(x: TensorLike, axis?: AxisArgument): Tensor {
  return some('any', 'max', x, axis);
}

/**
 * True if all elements are (are not 0); true of none. Source: Array API `all`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; bool
 *
 * @example
 * all(tensor([0, 2])); // false
 */
export function all(x: TensorLike, axis?: AxisArgument): Tensor {
  return some('all', 'min', x, axis);
}

function some(op: string, kind: 'max' | 'min', x: TensorLike, argument: AxisArgument | undefined): Tensor {
  beginOp(op);
  const bits = truthBits(x);
  const axes = readAxes(opName(op), argument, bits.shape.length);
  if (axes.axes.some((axis) => bits.shape[axis] === 0)) {
    const left = reduce(bits, 'sum', axes.axes);
    return wrap(withKept(constant(kind === 'max' ? 0 : 1, 'bool', left.shape), bits, axes));
  }
  return wrap(withKept(cast(reduce(bits, kind, axes.axes), 'bool'), bits, axes));
}

/**
 * The number of elements that are not 0, int32. Source: Array API `count_nonzero`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1
 *
 * @example
 * countNonZero(tensor([0, 3, 4])); // 2
 */
export function countNonZero(x: TensorLike, axis?: AxisArgument): Tensor {
  beginOp('countNonZero');
  const bits = truthBits(x);
  const axes = readAxes(opName('countNonZero'), axis, bits.shape.length);
  return wrap(withKept(reduce(bits, 'sum', axes.axes), bits, axes));
}

// Statistics: reductions made of others. Integer operands become float32.

/** Options of variance and std. */
export interface VarianceOptions extends AxisOptions {
  /** Subtracted from the number of elements; 0 (default) for the population, 1 for the unbiased estimate. */
  readonly correction?: number;
}

function prepared<Options extends AxisOptions, const Text extends string>(
  op: string,
  x: TensorLike,
  argument: number | readonly number[] | Options | undefined,
  names?: OptionNames<Options, Text>,
): { t: Tensor; axes: Axes; count: number } {
  const t = wrap(floatOperand(x));
  const axes = readAxes(op, argument, t.ndim, names);
  return { t, axes, count: axes.axes.reduce((n, axis) => n * t.shape[axis]!, 1) };
}

/** Result of the final shape from one that kept the reduced axes. */
function dropKept(t: Tensor, { axes, keepDims }: Axes): Tensor {
  if (keepDims) return t;
  const node = nodeOf(t);
  return wrap(
    reshape(
      node,
      node.shape.filter((_, axis) => !axes.includes(axis)),
    ),
  );
}

/**
 * The mean; NaN of no elements. Source: Array API `mean`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; of the dtype of the input; integers become float32
 *
 * @example
 * mean(tensor([[1, 2], [3, 5]]), { axis: 1 }); // [1.5, 4]
 */
export function mean(x: TensorLike, axis?: AxisArgument): Tensor {
  return compose('mean', () =>
    inFloat32([wrap(floatOperand(x))], (wide) => {
      const { t, axes, count } = prepared('mean', wide, axis);
      const total = sum(t, { axis: axes.axes, keepDims: axes.keepDims });
      // Division by the count, not multiplication by its inverse: exact for sums that are multiples of it.
      return div(total, count);
    }),
  );
}

function varianceOf(op: string, x: TensorLike, argument: VarianceOptions | AxisArgument | undefined): Tensor {
  const { t, axes, count } = prepared(op, x, argument, 'axis keepDims? correction#');
  const correction =
    typeof argument === 'object' && !isList(argument) ? ((argument as VarianceOptions).correction ?? 0) : 0;
  const center = div(sum(t, { axis: axes.axes, keepDims: true }), count);
  const total = sum(square(sub(t, center)), { axis: axes.axes, keepDims: axes.keepDims });
  return div(total, Math.max(0, count - correction));
}

/**
 * The mean squared distance from the mean, computed in two passes. Source: Array API `var`.
 *
 * @param options axis (all), keepDims (false), correction (0)
 * @returns the shape of x without the axes; with keepDims they have size 1; of the dtype of the input; integers become float32
 *
 * @example
 * variance(tensor([1, 3])); // 1
 */
export function variance(x: TensorLike, options?: VarianceOptions | AxisArgument): Tensor {
  return compose('variance', () => inFloat32([wrap(floatOperand(x))], (wide) => varianceOf('variance', wide, options)));
}

/**
 * The square root of the variance. Source: Array API `std`. Its gradient where all elements are equal is 0.
 *
 * @param options axis (all), keepDims (false), correction (0)
 * @returns the shape of x without the axes; with keepDims they have size 1; of the dtype of the input; integers become float32
 *
 * @example
 * std(tensor([1, 3])); // 1
 */
export function std(x: TensorLike, options?: VarianceOptions | AxisArgument): Tensor {
  return compose('std', () =>
    inFloat32([wrap(floatOperand(x))], (wide) => rootOrZero(varianceOf('std', wide, options))),
  );
}

/** sqrt with the subgradient 0 at 0. */
function rootOrZero(x: Tensor): Tensor {
  const zero = equal(x, 0);
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

/**
 * log(sum(exp(x))) without overflow; -infinity, with gradient 0, of rows that are empty or all -infinity. Source: SciPy `logsumexp`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; of the dtype of the input; integers become float32
 *
 * @example
 * logSumExp(tensor([0, 0])); // 0.6931472
 */
export function logSumExp(x: TensorLike, axis?: AxisArgument): Tensor {
  return compose('logSumExp', () =>
    inFloat32([wrap(floatOperand(x))], (wide) => {
      const { t, axes } = prepared('logSumExp', wide, axis);
      if (axes.axes.some((i) => t.shape[i] === 0))
        return dropKept(log(sum(t, { axis: axes.axes, keepDims: true })), axes);
      const largest = max(t, { axis: axes.axes, keepDims: true });
      // Infinite maxima are not subtracted: infinity minus itself would be NaN.
      const shift = wrap(stopGradient(nodeOf(where(areFinite(largest), largest, 0))));
      const total = sum(exp(sub(t, shift)), { axis: axes.axes, keepDims: true });
      // Nothing but -infinity: nothing to share the gradient, so it is 0.
      const none = equal(total, 0);
      return dropKept(add(where(none, Number.NEGATIVE_INFINITY, log(where(none, 1, total))), shift), axes);
    }),
  );
}

/** Options of norm. */
export interface NormOptions extends AxisOptions {
  /** Order of the norm: 2 (default), 1, 0 (count of non-zeros), Infinity, -Infinity or any other number. */
  readonly p?: number;
}

/**
 * The p-norm of the elements as one vector. Source: Array API `linalg.vector_norm`. The gradient at 0 is 0.
 *
 * @param options axis (all), keepDims (false), p (2)
 * @returns the shape of x without the axes; with keepDims they have size 1; of the dtype of the input; integers become float32
 * @throws ArgumentError for an order that is no number
 *
 * @example
 * norm(tensor([3, 4])); // 5
 */
export function norm(x: TensorLike, options?: NormOptions | AxisArgument): Tensor {
  return compose('norm', () =>
    inFloat32([wrap(floatOperand(x))], (wide) => {
      const { t, axes } = prepared('norm', wide, options, 'axis keepDims? p#');
      const p = typeof options === 'object' && !isList(options) ? ((options as NormOptions).p ?? 2) : 2;
      const over = { axis: axes.axes, keepDims: axes.keepDims };
      if (typeof p !== 'number' || Number.isNaN(p))
        throw new ArgumentError('norm', say`bad order p: ${shown(p)}; must be a number`);
      switch (p) {
        case 1:
          return sum(abs(t), over);
        case 2:
          return rootOrZero(sum(square(t), over));
        case 0:
          return sum(where(t, 1, mul(t, 0)), over);
        case Number.POSITIVE_INFINITY:
          return max(abs(t), over);
        case Number.NEGATIVE_INFINITY:
          return min(abs(t), over);
        default: {
          const size = abs(t);
          // The slope of a power below 1 is infinite at 0: zeros are kept out of it.
          const none = equal(size, 0);
          const total = sum(where(none, 0, pow(where(none, 1, size), p)), over);
          // With p < 0 a single zero makes the norm 0, unless there is NaN beside it.
          const zero = p < 0 ? logicalAnd(any(none, over), equal(total, total)) : equal(total, 0);
          return where(zero, 0, pow(where(zero, 1, total), 1 / p));
        }
      }
    }),
  );
}

/**
 * The sum of the elements that are not NaN; of integers, which have none, their sum. Source: NumPy `nansum`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1
 *
 * @example
 * nanSum(tensor([1, NaN])); // 1
 */
export function nanSum(x: TensorLike, axis?: AxisArgument): Tensor {
  return compose('nanSum', () => {
    const given = operand(x);
    if (!isFloat(given.dtype)) return sum(wrap(given), axis);
    return inFloat32([wrap(given)], (wide) => {
      const { t, axes } = prepared('nanSum', wide, axis);
      return sum(where(areNaN(t), 0, t), { axis: axes.axes, keepDims: axes.keepDims });
    });
  });
}

/**
 * The mean of the elements that are not NaN. Source: NumPy `nanmean`.
 *
 * @param axis one axis, several, or { axis, keepDims }; all
 * @returns the shape of x without these axes; with keepDims they have size 1; of the dtype of the input; integers become float32
 *
 * @example
 * nanMean(tensor([1, NaN, 3])); // 2
 */
export function nanMean(x: TensorLike, axis?: AxisArgument): Tensor {
  return compose('nanMean', () =>
    inFloat32([wrap(floatOperand(x))], (wide) => {
      const { t, axes } = prepared('nanMean', wide, axis);
      const over = { axis: axes.axes, keepDims: axes.keepDims };
      const total = sum(where(areNaN(t), 0, t), over);
      return div(total, sum(castTo(logicalNot(areNaN(t)), t.dtype), over));
    }),
  );
}
