/**
 * Elements picked and put by index tensors.
 *
 * Indices are integers, in tensors or host arrays; negative ones count from the end. Those of host arrays are checked; those of tensors
 * that lie outside are moved to the nearest end (an engine cannot throw from inside a kernel). Gradients flow to the data, never to the
 * indices.
 */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { scatterAddPrimitive } from '../../primitives/indexing.ts';
import { DTypeError, ShapeError, showShape } from '../../shape/errors.ts';
import { sizeOf } from '../../shape/view.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import {
  alongAxis,
  axisOf,
  checkElementwise,
  checkSource,
  flatPositions,
  type IndexAxis,
  type IndexLike,
  indexNode,
  safeIndex,
  taken,
  updatesFor,
} from './index-argument.ts';
import { say } from '../../shape/shown.ts';

/**
 * Slices of x at the indices: the axis is replaced by the shape of the indices. Source: Array API `take`.
 *
 * @param indices integers of any shape
 * @param axis one axis, or { axis }; 0
 * @returns x.shape with the axis replaced by indices.shape
 *
 * @example
 * take(tensor([10, 20, 30]), tensor([2, 0], { dtype: 'int32' })); // [30, 10]
 */
export function take(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('take', () => wrap(taken('take', x, indices, axis)));
}

/**
 * The same as take, for one-dimensional indices. Source: PyTorch `index_select`.
 *
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), tensor([1], { dtype: 'int32' }), { axis: 0 }); // [[3, 4]]
 */
export function indexSelect(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('indexSelect', () => {
    const which = axisOf('indexSelect', axis, 0, nodeOf(x).shape.length);
    const list = wrap(indexNode('indexSelect', indices, nodeOf(x).shape[which]!));
    const { shape } = list;
    if (shape.length > 1)
      throw new ShapeError(
        'indexSelect',
        say`indices have shape ${showShape(shape)}: needs one axis; use take() for more`,
        [shape],
      );
    return wrap(taken('indexSelect', x, list, axis));
  });
}

function along(op: string, x: Tensor, indices: IndexLike, axis: IndexAxis | undefined): Node {
  const node = nodeOf(x);
  const rank = node.shape.length;
  const which = axisOf(op, axis, rank === 0 ? 0 : -1, Math.max(1, rank));
  const size = node.shape[which] ?? 1;
  const index = indexNode(op, indices, size);
  const fits = node.shape.every((n, i) => i === which || n === index.shape[i] || n === 1 || index.shape[i] === 1);
  if (index.shape.length !== rank || !fits) {
    throw new ShapeError(
      op,
      say`shapes do not fit: x ${showShape(node.shape)} and indices ${showShape(index.shape)}; sizes other than axis ${which} must be equal or 1`,
      [node.shape, index.shape],
    );
  }
  checkSource(op, node, which, index);
  // Without the axis both stretch to this.
  const lead = node.shape.map((n, i) => (n === 1 ? index.shape[i]! : n));
  const stretched = (to: number): number[] => lead.map((n, i) => (i === which ? to : n));
  const safe = p.broadcastTo(safeIndex(op, index, size), stretched(index.shape[which] ?? 1));
  return alongAxis(p.broadcastTo(node, stretched(size)), safe, which);
}

/**
 * One element of x per index, at the index's own position in all other axes. Source: Array API `take_along_axis`.
 *
 * @param indices integers of the rank of x; sizes other than the axis equal those of x, or one of both is 1 and stretches
 * @param axis one axis, or { axis }; -1
 * @returns the broadcast shape, along the axis as long as the indices
 *
 * @example
 * takeAlongAxis(tensor([[1, 2], [3, 4]]), tensor([[1], [0]], { dtype: 'int32' }), { axis: 1 }); // [[2], [3]]
 */
export function takeAlongAxis(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('takeAlongAxis', () => wrap(along('takeAlongAxis', x, indices, axis)));
}

/**
 * The same as takeAlongAxis, but other sizes of the indices may be smaller than those of x. Source: PyTorch `gather`.
 *
 * @param axis one axis, or { axis }
 * @returns the shape of the indices
 *
 * @example
 * gather(tensor([[1, 2], [3, 4]]), tensor([[1]], { dtype: 'int32' }), { axis: 1 }); // [[2]]
 */
export function gather(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('gather', () => {
    const node = nodeOf(x);
    const which = axisOf('gather', axis, -1, node.shape.length);
    const index = indexNode('gather', indices, node.shape[which]!);
    checkElementwise('gather', node, index, which);
    checkSource('gather', node, which, index);
    return wrap(alongAxis(node, safeIndex('gather', index, node.shape[which]!), which));
  });
}

/**
 * x with the updates added at the indices, at their own position in all other axes; repeated indices add up. Source: PyTorch `scatter_add`.
 *
 * @param indices integers of the rank of x, sizes other than the axis not larger than those of x
 * @param updates tensor of the shape of the indices
 * @param axis one axis, or { axis }; -1
 * @returns a new tensor of the shape of x
 *
 * @example
 * scatterAdd(zeros([3]), tensor([1, 1], { dtype: 'int32' }), tensor([5, 6])); // [0, 11, 0]
 */
export function scatterAdd(x: Tensor, indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('scatterAdd', () => {
    const node = nodeOf(x);
    const which = axisOf('scatterAdd', axis, -1, node.shape.length);
    const index = indexNode('scatterAdd', indices, node.shape[which]!);
    checkElementwise('scatterAdd', node, index, which);
    checkSource('scatterAdd', node, which, index);
    const values = updatesFor('scatterAdd', node, nodeOf(updates), index.shape);
    const positions = flatPositions(safeIndex('scatterAdd', index, node.shape[which]!), node.shape, which);
    const count = sizeOf(index.shape);
    const flat = p.reshape(node, [sizeOf(node.shape)]);
    const added = makeNode(scatterAddPrimitive, [flat, p.reshape(positions, [count]), p.reshape(values, [count])], {
      axis: 0,
    });
    return wrap(p.reshape(added, node.shape));
  });
}

/**
 * x with slices added at one-dimensional indices along an axis; repeated indices add up. Source: PyTorch `index_add`.
 *
 * @param indices integers [n]
 * @param updates tensor of the shape of x with the axis of size n
 * @param axis one axis, or { axis }; 0
 * @returns a new tensor of the shape of x
 *
 * @example
 * indexAdd(zeros([3]), tensor([1, 1], { dtype: 'int32' }), tensor([5, 6])); // [0, 11, 0]
 */
export function indexAdd(x: Tensor, indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('indexAdd', () => {
    const node = nodeOf(x);
    const which = axisOf('indexAdd', axis, 0, node.shape.length);
    const index = indexNode('indexAdd', indices, node.shape[which]!);
    if (index.shape.length !== 1)
      throw new ShapeError('indexAdd', say`indices have shape ${showShape(index.shape)}: needs one axis`, [
        index.shape,
      ]);
    checkSource('indexAdd', node, which, index);
    const shape = node.shape.map((n, i) => (i === which ? index.shape[0]! : n));
    const values = updatesFor('indexAdd', node, nodeOf(updates), shape);
    return wrap(
      makeNode(scatterAddPrimitive, [node, safeIndex('indexAdd', index, node.shape[which]!), values], {
        axis: which,
      }),
    );
  });
}

/**
 * `value` where the mask is true, x elsewhere. Source: PyTorch `masked_fill`.
 *
 * @param mask bool, broadcasts with x
 * @param value a number (true or false for bool), or a tensor of shape [] and the dtype of x
 * @returns the shape x and the mask broadcast to, in the dtype of x
 * @throws DTypeError unless the mask is bool and the value fits x; ShapeError for a value of more than one element
 *
 * @example
 * maskedFill(tensor([1, 2]), tensor([true, false]), 0); // [0, 2]
 */
export function maskedFill(x: Tensor, mask: Tensor, value: TensorLike): Tensor {
  return compose('maskedFill', () => {
    const node = nodeOf(x);
    const m = nodeOf(mask);
    if (m.dtype !== 'bool')
      throw new DTypeError('maskedFill', say`mask is ${m.dtype}: needs bool; compare or cast first`, [m.dtype]);
    return wrap(p.where(m, updatesFor('maskedFill', node, nodeOf(given(value, x)), []), node));
  });
}
