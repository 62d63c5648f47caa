/** Triangles of matrices, and one-hot rows. They are computed where they are used and need no memory. */
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { checkCount, checkShape } from '../../shape/axes.ts';
import { type DType, isInteger } from '../../shape/dtype.ts';
import { DTypeError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { say } from '../../shape/shown.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { NamedDType, PlainDType, Tensor } from '../../tensor/types.ts';
import { checkDiagonal, offsets } from './matrix-diagonals.ts';

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
    if (!isInteger(node.dtype))
      throw new DTypeError('oneHot', say`index dtype is ${node.dtype}: needs integers; convert with cast()`, [
        node.dtype,
      ]);
    checkCount('oneHot', 'number of classes', classes);
    checkShape('oneHot', [...node.shape, classes]);
    const index = p.insertAxes(p.cast(node, 'int32'), [node.shape.length]);
    return wrap(p.cast(p.eq(index, p.iota(classes)), options.dtype ?? 'float32'));
  });
}
