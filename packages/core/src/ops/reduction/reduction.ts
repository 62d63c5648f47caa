/**
 * Reductions: one result from all elements along some axes.
 *
 * All take `axis` (one or several, default all) and `keepDims`, as options or the axes alone: `sum(x, 0)`,
 * `sum(x, [0, 1])`, `sum(x, { axis: 0, keepDims: true })`. Wrong axes throw ShapeError.
 */
import type { Node } from '../../graph/node.ts';
import { argReduce as argReduceNode, cast, constant, eq, not, reduce, reshape } from '../../graph/primitives.ts';
import { beginOp, opName } from '../../graph/scope.ts';
import { keepAxes } from '../../shape/axes.ts';
import { ShapeError, showShape } from '../../shape/errors.ts';
import { wrap } from '../../tensor/handle.ts';
import { operand } from '../../tensor/operand.ts';
import type { AxisArgument, Tensor, TensorLike } from '../../tensor/types.ts';
import { type Axes, readAxes } from './axis-argument.ts';
import { say } from '../../shape/shown.ts';
import { sumDType } from '../elementwise/recording.ts';

/** Puts axes of size 1 back if asked for. */
function withKept(reduced: Node, x: Node, { axes, keepDims }: Axes): Node {
  return keepDims ? reshape(reduced, keepAxes(x.shape, axes)) : reduced;
}

function checkNotEmpty(op: string, x: Node, axes: readonly number[]): void {
  for (const axis of axes) {
    if (x.shape[axis] === 0) {
      throw new ShapeError(
        op,
        say`reduction over nothing: axis ${axis} of shape ${showShape(x.shape)} is empty (0 elements) and ${op} of nothing has no value; check the size first`,
        [x.shape],
      );
    }
  }
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
  else checkNotEmpty(opName(op), node, axes.axes);
  if (node.dtype === 'bool') {
    const bits = reduce(cast(node, 'int32'), kind, axes.axes);
    return wrap(withKept(cast(bits, 'bool'), node, axes));
  }
  return wrap(withKept(reduce(node, kind, axes.axes), node, axes));
}

/**
 * The sum of elements; 0 of none. bool and small integers are summed as int32 or uint32. Source: Array API `sum`.
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
 * @example
 * prod(tensor([2, 3, 4])); // 24
 */
export function prod(x: TensorLike, axis?: AxisArgument): Tensor {
  return reduced('prod', 'prod', x, axis);
}

/**
 * The largest element; NaN if there is one. Equals share the gradient. Source: Array API `max`.
 *
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
  checkNotEmpty(opName(op), node, axes.axes);
  if (node.dtype === 'bool') node = cast(node, 'int32');
  const position = axes.axes.length === 0 ? constant(0, 'int32', node.shape) : argReduceNode(node, kind, axes.axes);
  return wrap(withKept(position, node, axes));
}

/**
 * The position (int32) of the largest element along an axis, or in row-major order over several or all; the first of equals,
 * the first NaN if there is one. Source: Array API `argmax`.
 *
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
  const node = operand(x);
  return cast(node.dtype === 'bool' ? node : not(eq(node, constant(0, node.dtype))), 'int32');
}

/**
 * True if any element is (is not 0); false of none. Source: Array API `any`.
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
 * @example
 * countNonZero(tensor([0, 3, 4])); // 2
 */
export function countNonZero(x: TensorLike, axis?: AxisArgument): Tensor {
  beginOp('countNonZero');
  const bits = truthBits(x);
  const axes = readAxes(opName('countNonZero'), axis, bits.shape.length);
  return wrap(withKept(reduce(bits, 'sum', axes.axes), bits, axes));
}
