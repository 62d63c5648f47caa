/** Diagonals of matrices: read, summed, and made into matrices; triangles, one-hot rows and quarter turns. */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { checkCount, checkList, checkShape, normalizeAxis } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { NamedDType, PlainDType, Tensor } from '../../tensor/types.ts';
import { saturated } from '../elementwise/recording.ts';
import { checkIntegers } from '../indexing/index-argument.ts';
import { sum } from '../reduction/reduction.ts';
import { checkDiagonal, diagonalNode, offsets } from '../products/matrices.ts';

/** Matrices [..., n + |offset|, n + |offset|] with the last axis of x on a diagonal. */
function onDiagonal(x: Node, offset: number): Node {
  const rank = x.shape.length;
  const away = Math.abs(offset);
  const size = x.shape[rank - 1]! + away;
  const widths = (n: number): number[] => x.shape.map((_, axis) => (axis === rank - 1 ? n : 0));
  // One entry per row. Rows that the diagonal does not meet get one too, which is not used.
  const perRow = p.pad(x, widths(offset < 0 ? away : 0), widths(offset > 0 ? away : 0));
  const on = p.eq(offsets(size, size), p.constant(offset, 'int32'));
  return p.where(on, p.insertAxes(perRow, [rank]), p.like(x, 0));
}

/**
 * A vector as the diagonal of a matrix of zeros, or the diagonal of a matrix as a vector. Source: NumPy `diag`.
 *
 * @param x shape [n] or [m, n]
 * @param options offset (0; positive above the main diagonal)
 * @returns shape [n + |offset|, n + |offset|] for a vector, the diagonal for a matrix, the dtype of x
 * @throws ShapeError for other numbers of axes
 *
 * @example
 * diag(tensor([1, 2])); // [[1, 0], [0, 2]]
 * diag(tensor([[1, 2], [3, 4]])); // [1, 4]
 */
export function diag(x: Tensor, options: { readonly offset?: number } = {}): Tensor {
  checkNames('diag', options, 'offset#');
  return compose('diag', () => {
    const node = nodeOf(x);
    const offset = checkDiagonal('diag', 'offset', options.offset ?? 0);
    if (node.shape.length === 1) return wrap(onDiagonal(node, offset));
    if (node.shape.length === 2) return wrap(diagonalNode('diag', node, offset, 0, 1));
    throw new ShapeError(
      'diag',
      say`neither vector nor matrix: shape ${showShape(node.shape)} has ${node.shape.length} axes, needs 1 or 2; use diagEmbed() or diagonal()`,
      [node.shape],
    );
  });
}

/**
 * The last axis as the diagonals of matrices of zeros: the reverse of diagonal(). Source: PyTorch `diag_embed`.
 *
 * @param x shape [..., n]
 * @param options offset (0; positive above), axis1 -2 and axis2 -1: where the axes of the matrices go, counted in the result
 * @returns one axis more than x; the two of the matrices have size n + |offset|; the dtype of x
 * @throws ShapeError for scalars and for axes that are equal or out of range
 *
 * @example
 * diagEmbed(tensor([1, 2]), { offset: 1 }); // [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
 */
export function diagEmbed(
  x: Tensor,
  options: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number } = {},
): Tensor {
  checkNames('diagEmbed', options, 'offset# axis1# axis2#');
  return compose('diagEmbed', () => {
    const node = nodeOf(x);
    const rank = node.shape.length + 1;
    if (rank === 1) throw new ShapeError('diagEmbed', 'no diagonal: a scalar has no axes; needs at least 1', [[]]);
    const a = normalizeAxis('diagEmbed', options.axis1 ?? -2, rank);
    const b = normalizeAxis('diagEmbed', options.axis2 ?? -1, rank);
    if (a === b)
      throw new ShapeError(
        'diagEmbed',
        say`axes are equal: ${options.axis1 ?? -2} and ${options.axis2 ?? -1}; name two`,
      );
    // Rows are along axis1; the other axes keep their order.
    const order = new Array<number>(rank).fill(-1);
    order[a] = rank - 2;
    order[b] = rank - 1;
    let next = 0;
    const axes = order.map((axis) => (axis < 0 ? next++ : axis));
    return wrap(p.permute(onDiagonal(node, checkDiagonal('diagEmbed', 'offset', options.offset ?? 0)), axes));
  });
}

/**
 * The plane of two axes turned by quarters, from the first axis towards the second. Source: NumPy `rot90`.
 *
 * @param turns number of quarter turns, 1; negative ones go the other way
 * @param axes the two axes of the plane, [0, 1]
 * @returns the two sizes exchanged by odd turns, the dtype of x
 * @throws ShapeError for axes that are equal or out of range, ArgumentError for parts of a turn
 *
 * @example
 * rot90(tensor([[1, 2], [3, 4]])); // [[2, 4], [1, 3]]
 */
export function rot90(x: Tensor, turns: number = 1, axes: readonly [number, number] = [0, 1]): Tensor {
  beginOp('rot90');
  const node = nodeOf(x);
  const rank = node.shape.length;
  if (!Number.isInteger(turns))
    throw new ArgumentError('rot90', say`bad number of turns: ${turns}; must be an integer`);
  checkList('rot90', 'axes', axes, '[0, 1]');
  if (axes.length !== 2)
    throw new ArgumentError('rot90', say`wrong number of axes: ${showShape(axes)}; name the two of the plane`);
  const [a, b] = [normalizeAxis('rot90', axes[0], rank), normalizeAxis('rot90', axes[1], rank)];
  if (a === b) throw new ShapeError('rot90', say`axes are equal: ${axes[0]} and ${axes[1]}; name two`, [node.shape]);
  const swapped = node.shape.map((_, i) => (i === a ? b : i === b ? a : i));
  switch (((turns % 4) + 4) % 4) {
    case 1:
      return wrap(p.permute(p.flip(node, [b]), swapped));
    case 2:
      return wrap(p.flip(node, [a, b]));
    case 3:
      return wrap(p.flip(p.permute(node, swapped), [b]));
    default:
      return wrap(node);
  }
}

/**
 * The diagonal of the matrices in two axes, as the last axis. Source: NumPy `diagonal`.
 *
 * @param options offset (0; positive above), axis1 -2, axis2 -1
 * @returns one axis less, the dtype of x
 * @throws ShapeError for axes that are equal or out of range
 *
 * @example
 * diagonal(tensor([[1, 2], [3, 4]])); // [1, 4]
 */
export function diagonal(
  x: Tensor,
  options: { readonly offset?: number; readonly axis1?: number; readonly axis2?: number } = {},
): Tensor {
  checkNames('diagonal', options, 'offset# axis1# axis2#');
  return compose('diagonal', () =>
    wrap(diagonalNode('diagonal', nodeOf(x), options.offset ?? 0, options.axis1 ?? -2, options.axis2 ?? -1)),
  );
}

/**
 * The sum of a matrix's diagonal; of all matrices in the last two axes. Source: Array API `linalg.trace`.
 *
 * @param options offset, 0
 * @returns two axes less; the dtype of a sum, as of `sum`
 * @throws ShapeError for fewer than two axes
 *
 * @example
 * trace(tensor([[1, 2], [3, 4]])); // 5
 */
export function trace(x: Tensor, options: { readonly offset?: number } = {}): Tensor {
  checkNames('trace', options, 'offset#');
  return compose('trace', () => {
    const line = diagonalNode('trace', nodeOf(x), options.offset ?? 0, -2, -1);
    return sum(wrap(line), -1);
  });
}

// Triangles of matrices, and one-hot rows. They are computed where they are used and need no memory.

function triangle(op: string, x: Tensor, diagonal: number, lower: boolean): Tensor {
  return compose(op, () => {
    const node = nodeOf(x);
    const rank = node.shape.length;
    if (rank < 2)
      throw new ShapeError(op, say`too few axes: ${showShape(node.shape)}; needs at least a matrix`, [node.shape]);
    const distance = offsets(node.shape[rank - 2]!, node.shape[rank - 1]!);
    const limit = p.constant(checkDiagonal(op, 'diagonal', diagonal), 'int32');
    const keep = lower ? p.le(distance, limit) : p.le(limit, distance);
    return wrap(p.where(keep, node, p.like(node, 0)));
  });
}

/**
 * The lower triangles of the matrices in the last two axes, zeros above. Source: Array API `tril`.
 *
 * @param options diagonal up to which elements stay, 0
 * @returns the shape and dtype of x
 * @throws ShapeError for fewer than two axes
 *
 * @example
 * tril(ones([2, 2])); // [[1, 0], [1, 1]]
 */
export function tril(x: Tensor, options: { readonly diagonal?: number } = {}): Tensor {
  checkNames('tril', options, 'diagonal#');
  return triangle('tril', x, options.diagonal ?? 0, true);
}

/**
 * The upper triangles of the matrices in the last two axes, zeros below. Source: Array API `triu`.
 *
 * @param options diagonal from which elements stay, 0
 * @returns the shape and dtype of x
 * @throws ShapeError for fewer than two axes
 *
 * @example
 * triu(ones([2, 2])); // [[1, 1], [0, 1]]
 */
export function triu(x: Tensor, options: { readonly diagonal?: number } = {}): Tensor {
  checkNames('triu', options, 'diagonal#');
  return triangle('triu', x, options.diagonal ?? 0, false);
}

/**
 * Rows with a 1 at the index and 0 elsewhere; all zeros for indices outside. Source: PyTorch `one_hot`.
 *
 * @param indices integers of any shape
 * @param classes length of a row
 * @param options dtype (float32)
 * @returns shape [...indices.shape, classes]
 *
 * @example
 * oneHot(tensor([1], { dtype: 'int32' }), 3); // [[0, 1, 0]]
 */
export function oneHot<const D extends DType = PlainDType>(
  indices: Tensor,
  classes: number,
  options?: { readonly dtype?: D },
): Tensor<NamedDType<D>>;
export function oneHot(indices: Tensor, classes: number, options: { readonly dtype?: DType } = {}): Tensor {
  checkNames('oneHot', options, 'dtype%');
  return compose('oneHot', () => {
    const node = nodeOf(indices);
    checkIntegers('oneHot', node, 'indices', 'indices, classes');
    checkCount('oneHot', 'number of classes', classes);
    checkShape('oneHot', [...node.shape, classes]);
    const index = p.insertAxes(saturated(node), [node.shape.length]);
    return wrap(p.cast(p.eq(index, p.iota(classes)), options.dtype ?? 'float32'));
  });
}
