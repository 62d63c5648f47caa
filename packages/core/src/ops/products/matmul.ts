/**
 * Matrix products in their usual forms, and Kronecker, cross and bilinear products. Matrix products are one `dotGeneral` between movements, so they get
 * the kernels of contractions. Integers are multiplied as integers.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { checkList, normalizeAxes, normalizeAxis, readAxis } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { promoteTypes } from '@polygrad/compiler/shape/promotion';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import { broadcastShapes, broadcastsTo } from '@polygrad/compiler/shape/broadcast';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given, operands } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { widened } from '../elementwise/recording.ts';
import type { OneAxis } from '../normalization/normalization.ts';
import { matmulNode, range } from './matrices.ts';

/**
 * The matrix product. Source: Array API `matmul`: the last two axes are matrices, leading ones batches that broadcast; a
 * one-dimensional operand is a row on the left, a column on the right, and its axis disappears.
 *
 * @param a shape [..., m, k] or [k]
 * @param b shape [..., k, n] or [k]
 * @returns shape [..., m, n] without the axes of one-dimensional operands, of the common dtype, which is not bool
 * @throws ShapeError where inner sizes differ or batches do not broadcast
 *
 * @example
 * matmul(tensor([[1, 2], [3, 4]]), tensor([[1, 0], [0, 1]])); // [[1, 2], [3, 4]]
 */
export function matmul(a: Tensor, b: Tensor): Tensor {
  beginOp('matmul');
  const [x, y] = operands(a, b);
  return wrap(matmulNode('matmul', x, y));
}

/** Options of `gemm`. */
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
 * @returns shape [..., m, n], of the common dtype, which is not bool
 * @throws ShapeError where sizes do not fit
 *
 * @example
 * gemm(eye(2), eye(2), { alpha: 3, c: ones([2, 2]) }); // [[4, 1], [1, 4]]
 */
export function gemm(a: Tensor, b: Tensor, options: GemmOptions = {}): Tensor {
  checkNames('gemm', options, 'alpha beta c transA? transB?');
  return compose('gemm', () => {
    const [x, y] = operands(a, b);
    const matrix = (node: Node, transpose: boolean | undefined): Node => {
      const rank = node.shape.length;
      if (rank < 2)
        throw new ShapeError('gemm', say`no matrix: ${showShape(node.shape)}; needs at least two axes`, [node.shape]);
      return transpose ? p.permute(node, [...range(0, rank - 2), rank - 1, rank - 2]) : node;
    };
    const product = matmulNode('gemm', widened(matrix(x, options.transA)), widened(matrix(y, options.transB)));
    return scaled('gemm', product, x.dtype, options, options.c);
  });
}

/** alpha * product + beta * c, rounded once to what factors of `dtype` and c promote to. */
function scaled(
  op: string,
  product: Node,
  dtype: DType,
  { alpha = 1, beta }: { readonly alpha?: TensorLike; readonly beta?: TensorLike },
  c: TensorLike | undefined,
): Tensor {
  const whole = wrap(product);
  const result = alpha === 1 ? whole : mul(whole, given(alpha, whole));
  const rounded = typeof c === 'object' ? promoteTypes(op, dtype, nodeOf(c).dtype) : dtype;
  return wrap(p.cast(nodeOf(plus(op, result, c, beta)), rounded));
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
 * @returns shape [m], or [n] with transA, of the common dtype, which is not bool
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
    const [matrix, vector] = operands(a, x);
    if (matrix.shape.length !== 2 || vector.shape.length !== 1) {
      throw new ShapeError(
        'gemv',
        say`not a matrix and a vector: ${showShape(matrix.shape)} and ${showShape(vector.shape)}`,
        [matrix.shape, vector.shape],
      );
    }
    const turned = options.transA ? p.permute(matrix, [1, 0]) : matrix;
    return scaled('gemv', matmulNode('gemv', widened(turned), widened(vector)), matrix.dtype, options, options.y);
  });
}

/**
 * The dot product as NumPy defines it: of vectors a number, of matrices the matrix product, otherwise the sum over the last axis
 * of a and the second to last of b; a scalar multiplies. Source: NumPy `dot`.
 *
 * @returns of the common dtype, which is not bool
 *
 * @example
 * dot(tensor([1, 2]), tensor([3, 4])); // 11
 */
export function dot(a: Tensor, b: Tensor): Tensor {
  return compose('dot', () => {
    const [x, y] = operands(a, b);
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
 * @returns of the common dtype, which is not bool
 *
 * @example
 * inner(tensor([1, 2]), tensor([3, 4])); // 11
 */
export function inner(a: Tensor, b: Tensor): Tensor {
  return compose('inner', () => {
    const [x, y] = operands(a, b);
    if (x.shape.length === 0 || y.shape.length === 0) return wrap(p.mul(x, y));
    return wrap(contract('inner', x, y, [x.shape.length - 1], [y.shape.length - 1]));
  });
}

/**
 * The dot product of all elements in row-major order. Source: NumPy `vdot`.
 *
 * @returns of the common dtype, which is not bool
 *
 * @example
 * vdot(tensor([[1, 2]]), tensor([[3], [4]])); // 11
 */
export function vdot(a: Tensor, b: Tensor): Tensor {
  return compose('vdot', () => {
    const [x, y] = operands(a, b);
    return wrap(contract('vdot', p.reshape(x, [a.size]), p.reshape(y, [b.size]), [0], [0]));
  });
}

/**
 * All products of an element of a with one of b. Source: NumPy `outer`.
 *
 * @returns shape [a.size, b.size], of the common dtype, which is not bool
 *
 * @example
 * outer(tensor([1, 2]), tensor([3, 4])); // [[3, 4], [6, 8]]
 */
export function outer(a: Tensor, b: Tensor): Tensor {
  return compose('outer', () => {
    const [x, y] = operands(a, b);
    return wrap(p.mul(p.reshape(x, [a.size, 1]), p.reshape(y, [1, b.size])));
  });
}

/**
 * The sum of products over chosen axes. Source: Array API `tensordot`.
 *
 * @param axes a number n: the last n axes of a with the first n of b; or two lists of axes that are paired in order. Default 2
 * @returns the other axes of a, then those of b, of the common dtype, which is not bool
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
    const [x, y] = operands(a, b);
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
    // Only for their errors: they return sorted axes, which would lose their partners.
    normalizeAxes('tensordot', axes[0], m);
    normalizeAxes('tensordot', axes[1], n);
    const [left, right] = [
      axes[0].map((axis) => normalizeAxis('tensordot', axis, m)),
      axes[1].map((axis) => normalizeAxis('tensordot', axis, n)),
    ];
    return wrap(contract('tensordot', x, y, left, right));
  });
}

// Products other than the matrix product: Kronecker, cross and bilinear.

/**
 * The Kronecker product: every element of a times all of b. Source: NumPy `kron`.
 *
 * @param a any shape; the tensor with fewer axes gets leading ones
 * @returns the product of the sizes, axis by axis, of the common dtype, which is not bool
 *
 * @example
 * kron(tensor([1, 10]), tensor([[1, 2]])); // [[1, 2, 10, 20]]
 */
export function kron(a: Tensor, b: Tensor): Tensor {
  return compose('kron', () => {
    const [x, y] = operands(a, b);
    const rank = Math.max(x.shape.length, y.shape.length);
    const full = (node: Node): number[] => [...new Array<number>(rank - node.shape.length).fill(1), ...node.shape];
    const [m, n] = [full(x), full(y)];
    const outer = p.reshape(
      x,
      m.flatMap((size) => [size, 1]),
    );
    const inner = p.reshape(
      y,
      n.flatMap((size) => [1, size]),
    );
    return wrap(
      p.reshape(
        p.mul(outer, inner),
        m.map((size, i) => size * n[i]!),
      ),
    );
  });
}

/**
 * The cross product of vectors in space. Source: Array API `linalg.cross`.
 *
 * @param a, b shapes that broadcast, with 3 elements along the axis
 * @param axis one axis of the result, or { axis }; -1
 * @returns of the common dtype, which is not bool
 * @throws ShapeError unless both have size 3 along the axis
 *
 * @example
 * cross(tensor([1, 0, 0]), tensor([0, 1, 0])); // [0, 0, 1]
 */
export function cross(a: Tensor, b: Tensor, axis?: OneAxis): Tensor {
  return compose('cross', () => {
    const [x, y] = operands(a, b);
    const shape = broadcastShapes('cross', x.shape, y.shape);
    const at = readAxis('cross', axis, -1, shape.length);
    const back = shape.length - at;
    for (const node of [x, y]) {
      if (node.shape[node.shape.length - back] !== 3)
        throw new ShapeError(
          'cross',
          say`no vectors in space: axis ${at - shape.length} of ${showShape(node.shape)} has size ${node.shape[node.shape.length - back] ?? 'none'}, not 3; choose the axis`,
          [x.shape, y.shape],
        );
    }
    // Component i of the result from components i + 1 and i + 2.
    const component = (node: Node, i: number): Node => {
      const which = node.shape.length - back;
      const part = p.slice(
        node,
        node.shape.map((_, axisOf) => (axisOf === which ? i % 3 : 0)),
        node.shape.map((size, axisOf) => (axisOf === which ? 1 : size)),
        node.shape.map(() => 1),
      );
      return widened(part);
    };
    const parts = [0, 1, 2].map((i) => {
      const difference = p.sub(
        p.mul(component(x, i + 1), component(y, i + 2)),
        p.mul(component(x, i + 2), component(y, i + 1)),
      );
      return p.cast(difference, x.dtype);
    });
    return wrap(p.concat(parts, at));
  });
}

/**
 * x1 W x2 for each matrix W of a stack, plus a bias. Source: PyTorch `torch.nn.functional.bilinear`.
 *
 * @param x1 shape [..., m]
 * @param x2 shape [..., n], the same leading axes
 * @param weight shape [o, m, n]
 * @param bias shape [o], or none
 * @returns shape [..., o], of the common dtype, which is not bool
 * @throws ShapeError where sizes do not fit
 *
 * @example
 * bilinear(tensor([1, 2]), tensor([3]), tensor([[[10], [100]]])); // [630]
 */
export function bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  return compose('bilinear', () => {
    const [left, right] = operands(x1, x2);
    const w = operands(wrap(left), weight)[1];
    const [o, m, n] = w.shape as readonly [number, number, number];
    const lead = left.shape.slice(0, -1);
    const fits =
      w.shape.length === 3 &&
      left.shape.length > 0 &&
      left.shape.at(-1) === m &&
      right.shape.at(-1) === n &&
      sameShape(lead, right.shape.slice(0, -1));
    if (!fits)
      throw new ShapeError(
        'bilinear',
        say`shapes do not fit: ${showShape(left.shape)}, ${showShape(right.shape)} and weight ${showShape(w.shape)}; needs [..., m], [..., n] and [o, m, n]`,
        [left.shape, right.shape, w.shape],
      );
    const rows = lead.reduce((total, size) => total * size, 1);
    const half = makeNode('dotGeneral', [p.reshape(left, [rows, m]), w], {
      lhsBatch: [],
      rhsBatch: [],
      lhsContract: [1],
      rhsContract: [1],
    });
    const whole = makeNode('dotGeneral', [half, p.reshape(right, [rows, n])], {
      lhsBatch: [0],
      rhsBatch: [0],
      lhsContract: [2],
      rhsContract: [1],
    });
    const result = p.reshape(whole, [...lead, o]);
    if (bias === undefined) return wrap(result);
    const b = nodeOf(bias);
    if (!sameShape(b.shape, [o]))
      throw new ShapeError('bilinear', say`bias has shape ${showShape(b.shape)}: needs [${o}], one per output`, [
        b.shape,
      ]);
    const [sum, addend] = operands(wrap(result), bias);
    return wrap(p.add(sum, addend));
  });
}
