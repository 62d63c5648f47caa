/** Matrix products in their usual forms; all are one `dotGeneral` between movements. Integers are multiplied as integers. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/build.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { checkList, normalizeAxes, normalizeAxis } from '../../shape/axes.ts';
import { broadcastsTo } from '../../shape/view.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { promoteTypes } from '../../shape/promotion.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given, operands } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { widened } from '../elementwise/recording.ts';
import { say } from '../../shape/shown.ts';
import { matmulNode, range } from './matrix-product.ts';

/** Both tensors as nodes of their common dtype. */
function both(a: Tensor, b: Tensor): [Node, Node] {
  return operands(a, b);
}

/**
 * The matrix product. Source: Array API `matmul`: the last two axes are matrices, leading ones batches that broadcast; a
 * one-dimensional operand is a row on the left, a column on the right, and its axis disappears.
 *
 * @param a shape [..., m, k] or [k]
 * @param b shape [..., k, n] or [k]
 * @returns shape [..., m, n] without the axes of one-dimensional operands
 * @throws ShapeError where inner sizes differ or batches do not broadcast
 *
 * @example
 * matmul(tensor([[1, 2], [3, 4]]), tensor([[1, 0], [0, 1]])); // [[1, 2], [3, 4]]
 */
export function matmul(a: Tensor, b: Tensor): Tensor {
  beginOp('matmul');
  const [x, y] = both(a, b);
  return wrap(matmulNode('matmul', x, y));
}

export interface GemmOptions {
  /** Factor of the product. Default 1. */
  readonly alpha?: TensorLike;
  /** Factor of c. Default 1; with the number 0, c is not read. */
  readonly beta?: TensorLike;
  /** Added to the product; broadcasts to it. */
  readonly c?: TensorLike;
  /** Use the transpose of a, of b. */
  readonly transA?: boolean;
  readonly transB?: boolean;
}

/**
 * alpha * A B + beta * C, A and B transposed if asked for. Source: BLAS `gemm`.
 *
 * @param a shape [..., m, k], or [..., k, m] with transA
 * @param b shape [..., k, n], or [..., n, k] with transB
 * @param options alpha (1), beta (1), c (none; broadcasts to the result), transA and transB (false)
 * @returns shape [..., m, n]
 * @throws ShapeError where sizes do not fit
 *
 * @example
 * gemm(eye(2), eye(2), { alpha: 3, c: ones([2, 2]) }); // [[4, 1], [1, 4]]
 */
export function gemm(a: Tensor, b: Tensor, options: GemmOptions = {}): Tensor {
  checkNames('gemm', options, 'alpha beta c transA? transB?');
  return compose('gemm', () => {
    const [x, y] = both(a, b);
    const turned = (node: Node, turn: boolean | undefined): Node => {
      const rank = node.shape.length;
      if (rank < 2)
        throw new ShapeError('gemm', say`no matrix: ${showShape(node.shape)}; needs at least two axes`, [node.shape]);
      return turn ? p.permute(node, [...range(0, rank - 2), rank - 1, rank - 2]) : node;
    };
    let result = wrap(matmulNode('gemm', widened(turned(x, options.transA)), widened(turned(y, options.transB))));
    if (options.alpha !== undefined && options.alpha !== 1) result = mul(result, given(options.alpha, result));
    const { c } = options;
    const dtype = typeof c === 'object' ? promoteTypes('gemm', x.dtype, nodeOf(c).dtype) : x.dtype;
    return wrap(p.cast(nodeOf(plus('gemm', result, c, options.beta)), dtype));
  });
}

/** result + beta * c. As in BLAS, c is not read where beta is 0: its NaN and infinities do not count. */
function plus(op: string, result: Tensor, c: TensorLike | undefined, beta: TensorLike = 1): Tensor {
  if (c === undefined) return result;
  const addend = given(c, result);
  if (!broadcastsTo(addend.shape, result.shape))
    throw new ShapeError(
      op,
      say`addend does not fit: ${showShape(addend.shape)} for a product ${showShape(result.shape)}; it must broadcast to the product`,
      [addend.shape, result.shape],
    );
  if (beta === 0) return result;
  return add(result, beta === 1 ? addend : mul(addend, given(beta, result)));
}

/**
 * alpha * A x + beta * y, A transposed if asked for. Source: BLAS `gemv`.
 *
 * @param a shape [m, n]
 * @param x shape [n], or [m] with transA
 * @param options alpha (1), beta (1), y (none), transA (false)
 * @returns shape [m], or [n] with transA
 *
 * @example
 * gemv(tensor([[1, 2], [3, 4]]), tensor([1, 1])); // [3, 7]
 */
export function gemv(
  a: Tensor,
  x: Tensor,
  options: {
    readonly alpha?: TensorLike;
    readonly beta?: TensorLike;
    readonly y?: TensorLike;
    readonly transA?: boolean;
  } = {},
): Tensor {
  checkNames('gemv', options, 'alpha beta y transA?');
  return compose('gemv', () => {
    const [matrix, vector] = both(a, x);
    if (matrix.shape.length !== 2 || vector.shape.length !== 1) {
      throw new ShapeError(
        'gemv',
        say`not a matrix and a vector: ${showShape(matrix.shape)} and ${showShape(vector.shape)}`,
        [matrix.shape, vector.shape],
      );
    }
    let result = wrap(matmulNode('gemv', options.transA ? p.permute(matrix, [1, 0]) : matrix, vector));
    if (options.alpha !== undefined && options.alpha !== 1) result = mul(result, given(options.alpha, result));
    return plus('gemv', result, options.y, options.beta);
  });
}

/**
 * The dot product as NumPy defines it: of vectors a number, of matrices the matrix product, otherwise the sum over the last axis
 * of a and the second to last of b; a scalar multiplies. Source: NumPy `dot`.
 *
 * @example
 * dot(tensor([1, 2]), tensor([3, 4])); // 11
 */
export function dot(a: Tensor, b: Tensor): Tensor {
  return compose('dot', () => {
    const [x, y] = both(a, b);
    if (x.shape.length === 0 || y.shape.length === 0) return wrap(p.mul(x, y));
    const rhsAxis = y.shape.length === 1 ? 0 : y.shape.length - 2;
    return wrap(contract('dot', x, y, [x.shape.length - 1], [rhsAxis]));
  });
}

function contract(op: string, a: Node, b: Node, lhsContract: readonly number[], rhsContract: readonly number[]): Node {
  lhsContract.forEach((axis, i) => {
    const other = rhsContract[i]!;
    if (a.shape[axis] !== b.shape[other]) {
      throw new ShapeError(
        op,
        say`sizes differ: axis ${axis} of ${showShape(a.shape)} has ${a.shape[axis]}, axis ${other} of ${showShape(b.shape)} has ${b.shape[other]}; they must be equal`,
        [a.shape, b.shape],
      );
    }
  });
  return makeNode('dotGeneral', [a, b], { lhsBatch: [], rhsBatch: [], lhsContract, rhsContract });
}

/**
 * The sum of products over the last axes of both. Source: NumPy `inner`.
 *
 * @example
 * inner(tensor([1, 2]), tensor([3, 4])); // 11
 */
export function inner(a: Tensor, b: Tensor): Tensor {
  return compose('inner', () => {
    const [x, y] = both(a, b);
    if (x.shape.length === 0 || y.shape.length === 0) return wrap(p.mul(x, y));
    return wrap(contract('inner', x, y, [x.shape.length - 1], [y.shape.length - 1]));
  });
}

/**
 * The dot product of all elements in row-major order. Source: NumPy `vdot`.
 *
 * @example
 * vdot(tensor([[1, 2]]), tensor([[3], [4]])); // 11
 */
export function vdot(a: Tensor, b: Tensor): Tensor {
  return compose('vdot', () => {
    const [x, y] = both(a, b);
    return wrap(contract('vdot', p.reshape(x, [a.size]), p.reshape(y, [b.size]), [0], [0]));
  });
}

/**
 * All products of an element of a with one of b. Source: NumPy `outer`.
 *
 * @returns shape [a.size, b.size]
 *
 * @example
 * outer(tensor([1, 2]), tensor([3, 4])); // [[3, 4], [6, 8]]
 */
export function outer(a: Tensor, b: Tensor): Tensor {
  return compose('outer', () => {
    const [x, y] = both(a, b);
    return wrap(p.mul(p.reshape(x, [a.size, 1]), p.reshape(y, [1, b.size])));
  });
}

/**
 * The sum of products over chosen axes. Source: Array API `tensordot`.
 *
 * @param axes a number n: the last n axes of a with the first n of b; or two lists of axes that are paired in order. Default 2
 * @returns the other axes of a, then those of b
 * @throws ShapeError where paired sizes differ
 *
 * @example
 * tensordot(ones([2, 3]), ones([3, 4]), 1).shape; // [2, 4]
 */
export function tensordot(
  a: Tensor,
  b: Tensor,
  axes: number | readonly [readonly number[], readonly number[]] = 2,
): Tensor {
  return compose('tensordot', () => {
    const [x, y] = both(a, b);
    const [m, n] = [x.shape.length, y.shape.length];
    if (typeof axes !== 'number') {
      checkList('tensordot', 'axes', axes, '[[1], [0]]');
      for (const i of [0, 1]) checkList('tensordot', `axes of factor ${i}`, axes[i], '[0]');
    }
    if (typeof axes === 'number') {
      if (!Number.isInteger(axes) || axes < 0 || axes > Math.min(m, n)) {
        throw new ArgumentError(
          'tensordot',
          say`bad number of axes: ${axes} for shapes ${showShape(x.shape)} and ${showShape(y.shape)}; at most ${Math.min(m, n)}`,
        );
      }
      return wrap(contract('tensordot', x, y, range(m - axes, m), range(0, axes)));
    }
    if (axes[0].length !== axes[1].length)
      throw new ArgumentError(
        'tensordot',
        say`numbers of axes differ: ${axes[0].length} and ${axes[1].length}; pair them`,
      );
    // Sorted, they would lose their partners; what is wrong with them is the same.
    normalizeAxes('tensordot', axes[0], m);
    normalizeAxes('tensordot', axes[1], n);
    const [left, right] = [
      axes[0].map((axis) => normalizeAxis('tensordot', axis, m)),
      axes[1].map((axis) => normalizeAxis('tensordot', axis, n)),
    ];
    return wrap(contract('tensordot', x, y, left, right));
  });
}
