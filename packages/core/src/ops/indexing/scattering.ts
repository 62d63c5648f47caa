/**
 * Elements put at places named by index tensors, and elements named by several coordinates.
 *
 * Indices are as in indexing.ts: integers, negative ones from the end; outside, those from the host throw, and computed ones are moved to the nearest end.
 * Where places repeat, the last update wins unless updates are combined. Gradients flow to x and to the updates.
 */
import { optionsOf } from '@polygrad/compiler/shape/axes';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { gatherPrimitive, scatterAddPrimitive, scatterPrimitive } from '../../primitives/indexing.ts';
import { type DType, dtypeInfo, isFloat, neutral, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import {
  axisOf,
  checkElementwise,
  checkSource,
  coordinates,
  flatPositions,
  type IndexAxis,
  type IndexLike,
  indexNode,
  safeIndex,
  updatesFor,
} from './index-argument.ts';
import { say } from '@polygrad/compiler/shape/shown';

/** How updates meet what is at their place. 'amax' and 'amin' are PyTorch's names of 'max' and 'min'. */
export type ScatterReduction = 'sum' | 'prod' | 'mean' | 'max' | 'min' | 'amax' | 'amin';

/** Options of scatterReduce. */
export interface ScatterReduceOptions {
  /** The axis the indices go along; the last one if left out. */
  readonly axis?: number;
  /** Combine with the elements of x (default); false: only updates, where there are any. */
  readonly includeSelf?: boolean;
}

/** Base, places and updates of an elementwise scatter, all flat. */
interface Flat {
  readonly node: Node;
  readonly base: Node;
  readonly places: Node;
  readonly updates: Node;
}

function flattened(op: string, x: Tensor, indices: IndexLike, updates: Tensor | number, axis: number): Flat {
  const node = nodeOf(x);
  const index = indexNode(op, indices, node.shape[axis]!);
  checkElementwise(op, node, index, axis);
  checkSource(op, node, axis, index);
  const values = updatesFor(op, node, nodeOf(given(updates, x)), index.shape);
  const positions = flatPositions(safeIndex(op, index, node.shape[axis]!), node.shape, axis);
  const count = sizeOf(index.shape);
  return {
    node,
    base: p.reshape(node, [sizeOf(node.shape)]),
    places: p.reshape(positions, [count]),
    updates: p.reshape(values, [count]),
  };
}

/**
 * x with the updates at the indices, at their own position in all other axes; the last of several for one place. Source: PyTorch `scatter`.
 *
 * @param indices integers of the rank of x, sizes other than the axis not larger than those of x
 * @param updates tensor of the shape of the indices and the dtype of x, or a number
 * @param axis one axis, or { axis }; -1
 * @returns a new tensor of the shape of x
 * @throws ShapeError, DTypeError where arguments do not fit; ArgumentError for host indices out of range
 *
 * @example
 * scatter(zeros([3]), [1, 2], tensor([5, 6])); // [0, 5, 6]
 */
export function scatter(x: Tensor, indices: IndexLike, updates: Tensor | number, axis?: IndexAxis): Tensor {
  return compose('scatter', () => {
    const which = axisOf('scatter', axis, -1, nodeOf(x).shape.length);
    const { node, base, places, updates: values } = flattened('scatter', x, indices, updates, which);
    return wrap(p.reshape(makeNode(scatterPrimitive, [base, places, values], { axis: 0, op: 'set' }), node.shape));
  });
}

type Combination = 'sum' | 'prod' | 'max' | 'min';

const combinations: Readonly<Record<ScatterReduction, Combination>> = {
  sum: 'sum',
  mean: 'sum',
  prod: 'prod',
  max: 'max',
  min: 'min',
  amax: 'max',
  amin: 'min',
};

/** A scatter in which updates of one place are combined, in 32 bits at least. */
function combined({ base, places, updates }: Flat, kind: Combination, self: Node): Node {
  const { kind: family, bytes } = dtypeInfo[base.dtype];
  const dtype: DType = bytes >= 4 ? base.dtype : family === 'float' ? 'float32' : family === 'int' ? 'int32' : 'uint32';
  const src = [p.cast(self, dtype), places, p.cast(updates, dtype)];
  const result =
    kind === 'sum'
      ? makeNode(scatterAddPrimitive, src, { axis: 0 })
      : makeNode(scatterPrimitive, src, { axis: 0, op: kind });
  return p.cast(result, base.dtype);
}

/**
 * x with the updates combined into it at the indices, at their own position in all other axes. The gradient of 'prod' is exact with any
 * number of zeros; equal winners of 'max' and 'min' share theirs. Source: PyTorch `scatter_reduce`.
 *
 * @param indices integers of the rank of x, sizes other than the axis not larger than those of x
 * @param updates tensor of the shape of the indices and the dtype of x, or a number
 * @param reduce 'sum', 'prod', 'mean' (floats), 'max' or 'min'
 * @param options an axis, or axis (-1), includeSelf (true)
 * @returns a new tensor of the shape of x
 * @throws ArgumentError for an unknown reduction; ShapeError, DTypeError where arguments do not fit
 *
 * @example
 * scatterReduce(ones([3]), [1, 1], tensor([5, 6]), 'prod'); // [1, 30, 1]
 */
export function scatterReduce(
  x: Tensor,
  indices: IndexLike,
  updates: Tensor | number,
  reduce: ScatterReduction,
  options: number | ScatterReduceOptions = {},
): Tensor {
  const chosen = optionsOf(options);
  checkNames('scatterReduce', chosen, 'axis includeSelf?');
  return compose('scatterReduce', () => {
    const { includeSelf = true } = chosen;
    if (typeof reduce !== 'string' || !Object.hasOwn(combinations, reduce))
      throw new ArgumentError(
        'scatterReduce',
        say`unknown reduction: ${shown(reduce)}; must be sum, prod, mean, max or min`,
      );
    const which = axisOf('scatterReduce', chosen.axis, -1, nodeOf(x).shape.length);
    const flat = flattened('scatterReduce', x, indices, updates, which);
    const { node, base, places } = flat;
    if (node.dtype === 'bool' || (reduce === 'mean' && !isFloat(node.dtype)))
      throw new DTypeError('scatterReduce', say`dtype not accepted for ${reduce}: ${node.dtype}; convert with cast()`, [
        node.dtype,
      ]);
    const kind = combinations[reduce];
    const hits = (): Node => {
      const none = p.constant(0, 'int32', base.shape);
      return makeNode(scatterAddPrimitive, [none, places, p.constant(1, 'int32', places.shape)], { axis: 0 });
    };
    if (includeSelf && reduce !== 'mean') return wrap(p.reshape(combined(flat, kind, base), node.shape));
    const count = hits();
    const touched = p.lt(p.constant(0, 'int32'), count);
    const self = includeSelf ? base : p.where(touched, p.constant(neutral(kind, base.dtype), base.dtype), base);
    let result = combined(flat, kind, self);
    if (reduce === 'mean') {
      const terms = includeSelf
        ? p.add(count, p.constant(1, 'int32'))
        : p.binary('maximum', count, p.constant(1, 'int32'));
      result = p.div(result, p.cast(terms, result.dtype));
    }
    return wrap(p.reshape(result, node.shape));
  });
}

/**
 * x with whole slices replaced at one-dimensional indices along an axis; the last of several for one place. Source: PyTorch `index_copy`.
 *
 * @param indices integers [n]
 * @param updates tensor of the shape of x with the axis of size n, and its dtype
 * @param axis one axis, or { axis }; 0
 * @returns a new tensor of the shape of x
 * @throws ShapeError, DTypeError where arguments do not fit; ArgumentError for host indices out of range
 *
 * @example
 * indexCopy(zeros([3]), [2, 0], tensor([5, 6])); // [6, 0, 5]
 */
export function indexCopy(x: Tensor, indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('indexCopy', () => replaced('indexCopy', x, indices, updates, axis));
}

/**
 * x with whole slices at one-dimensional indices along an axis set to a number. Source: PyTorch `index_fill`.
 *
 * @param indices integers [n]
 * @param value a number, or a tensor of shape []
 * @param axis one axis, or { axis }; 0
 * @returns a new tensor of the shape of x
 * @throws ShapeError, DTypeError where arguments do not fit; ArgumentError for host indices out of range
 *
 * @example
 * indexFill(ones([3]), [2, 0], 7); // [7, 1, 7]
 */
export function indexFill(x: Tensor, indices: IndexLike, value: Tensor | number, axis?: IndexAxis): Tensor {
  return compose('indexFill', () => {
    if (typeof value === 'object' && nodeOf(value).shape.length > 0)
      throw new ShapeError(
        'indexFill',
        say`value has shape ${showShape(value.shape)}: needs one element; use indexCopy() for slices`,
        [value.shape],
      );
    return replaced('indexFill', x, indices, value, axis);
  });
}

function replaced(
  op: string,
  x: Tensor,
  indices: IndexLike,
  updates: Tensor | number,
  axis: IndexAxis | undefined,
): Tensor {
  const node = nodeOf(x);
  const which = axisOf(op, axis, 0, node.shape.length);
  const index = indexNode(op, indices, node.shape[which]!);
  if (index.shape.length !== 1)
    throw new ShapeError(op, say`indices have shape ${showShape(index.shape)}: needs one axis`, [index.shape]);
  checkSource(op, node, which, index);
  const shape = node.shape.map((n, i) => (i === which ? index.shape[0]! : n));
  const values = updatesFor(op, node, nodeOf(given(updates, x)), shape);
  const places = safeIndex(op, index, node.shape[which]!);
  return wrap(makeNode(scatterPrimitive, [node, places, values], { axis: which, op: 'set' }));
}

/**
 * Elements or slices of x at coordinates: each row of the last axis of the indices names a place along the first axes of x. Source:
 * TensorFlow `gather_nd`.
 *
 * @param indices integers of shape [..., d], d from 1 to the rank of x
 * @returns shape [..., ...x.shape.slice(d)]
 * @throws ShapeError where the shapes do not fit
 *
 * @example
 * gatherNd(tensor([[1, 2], [3, 4]]), [[1, 0], [0, 1]]); // [3, 2]
 */
export function gatherNd(x: Tensor, indices: IndexLike): Tensor {
  return compose('gatherNd', () => {
    const node = nodeOf(x);
    const { places, depth } = coordinates('gatherNd', indices, node.shape);
    const rest = node.shape.slice(depth);
    const flat = p.reshape(node, [sizeOf(node.shape.slice(0, depth)), ...rest]);
    checkSource('gatherNd', flat, 0, places);
    return wrap(makeNode(gatherPrimitive, [flat, places], { axis: 0 }));
  });
}
