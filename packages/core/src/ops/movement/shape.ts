/**
 * Other shapes for the same elements, and elements repeated. Nothing is computed for them. Tensors that are in memory already are not copied where
 * strides can express the result.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { gatherPrimitive } from '../../primitives/indexing.ts';
import {
  checkCount,
  checkList,
  checkShape,
  givenAxes,
  mostAxes,
  mostOnHost,
  normalizeAxes,
  normalizeAxis,
  optionsOf,
  resolveShape,
} from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { isList, say, shownList } from '@polygrad/compiler/shape/shown';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { broadcastsTo } from '@polygrad/compiler/shape/broadcast';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { AxesArgument, Tensor } from '../../tensor/types.ts';
import { indexNode } from '../indexing/index-argument.ts';

/**
 * The elements in row-major order under another shape. Source: Array API `reshape`.
 *
 * @param shape sizes; one may be -1 and is worked out
 * @returns the given shape, the dtype of x
 * @throws ShapeError if the number of elements differs
 *
 * @example
 * reshape(arange(6), [2, -1]); // [[0, 1, 2], [3, 4, 5]]
 */
export function reshape(x: Tensor, shape: Shape): Tensor {
  beginOp('reshape');
  const node = nodeOf(x);
  return wrap(p.reshape(node, resolveShape('reshape', node.shape, shape)));
}

/**
 * Axes from `start` to `end` as one. Source: PyTorch `flatten`.
 *
 * @param options start 0, end -1; a number is the start
 * @returns fewer axes, the dtype of x
 * @throws ShapeError for axes outside the shape, ArgumentError where the end comes before the start
 *
 * @example
 * flatten(zeros([2, 3, 4]), { start: 1 }).shape; // [2, 12]
 * flatten(zeros([2, 3, 4]), 1).shape; // [2, 12]
 */
export function flatten(x: Tensor, options: number | { readonly start?: number; readonly end?: number } = {}): Tensor {
  const ends = typeof options === 'number' ? { start: options } : options;
  checkNames<{ readonly start?: number; readonly end?: number }, 'start# end#'>('flatten', ends, 'start# end#');
  beginOp('flatten');
  const node = nodeOf(x);
  const { shape } = node;
  if (shape.length === 0) return wrap(p.reshape(node, [1]));
  const start = normalizeAxis('flatten', ends.start ?? 0, shape.length);
  const end = normalizeAxis('flatten', ends.end ?? -1, shape.length);
  if (end < start) throw new ArgumentError('flatten', say`start comes after end: ${start} and ${end}; swap them`);
  return wrap(
    p.reshape(node, [...shape.slice(0, start), sizeOf(shape.slice(start, end + 1)), ...shape.slice(end + 1)]),
  );
}

/**
 * One axis as several. Source: PyTorch `unflatten`.
 *
 * @param sizes sizes of the new axes; one may be -1
 * @returns more axes, the dtype of x
 * @throws ShapeError where the product of the sizes is not that of the axis
 *
 * @example
 * unflatten(zeros([2, 12]), 1, [3, 4]).shape; // [2, 3, 4]
 */
export function unflatten(x: Tensor, axis: number, sizes: Shape): Tensor {
  beginOp('unflatten');
  const node = nodeOf(x);
  const { shape } = node;
  const at = normalizeAxis('unflatten', axis, shape.length);
  const middle = resolveShape('unflatten', [shape[at]!], sizes);
  return wrap(p.reshape(node, [...shape.slice(0, at), ...middle, ...shape.slice(at + 1)]));
}

/**
 * Axes in another order: axis i of the result is axis axes[i] of x. Source: Array API `permute_dims`.
 *
 * @returns the axes of x in that order, the dtype of x
 * @throws ShapeError unless `axes` names every axis once
 *
 * @example
 * permute(zeros([2, 3, 4]), [2, 0, 1]).shape; // [4, 2, 3]
 */
export function permute(x: Tensor, axes: readonly number[]): Tensor {
  beginOp('permute');
  const node = nodeOf(x);
  const rank = node.shape.length;
  checkList('permute', 'axes', axes, '[1, 0]');
  const order = axes.map((axis) => normalizeAxis('permute', axis, rank));
  const known = normalizeAxes('permute', order, rank);
  if (known.length !== rank) {
    throw new ShapeError(
      'permute',
      say`wrong number of axes: ${showShape(axes)} for shape ${showShape(node.shape)}; name each of the ${rank} axes once`,
      [node.shape],
    );
  }
  return wrap(p.permute(node, order));
}

/**
 * Two axes exchanged; the last two if none are named. `permute` orders all axes by a list. Source: PyTorch `transpose`.
 *
 * @returns the shape of x with two sizes exchanged, the dtype of x
 * @throws ShapeError for axes outside the shape; ArgumentError for a list of axes
 *
 * @example
 * transpose(zeros([5, 2, 3])).shape; // [5, 3, 2]
 */
export function transpose(x: Tensor, axis1: number = -2, axis2: number = -1): Tensor {
  beginOp('transpose');
  const node = nodeOf(x);
  const rank = node.shape.length;
  // NumPy's and TensorFlow's transpose takes an order of all axes.
  if (isList(axis1))
    throw new ArgumentError('transpose', say`it exchanges two axes and got ${shownList(axis1)}; use permute(x, axes)`);
  if (rank < 2 && axis1 === -2 && axis2 === -1) return wrap(node);
  const [a, b] = [normalizeAxis('transpose', axis1, rank), normalizeAxis('transpose', axis2, rank)];
  const order = node.shape.map((_, i) => (i === a ? b : i === b ? a : i));
  return wrap(p.permute(node, order));
}

/**
 * One axis, or several, moved to other positions; the others keep their order. Source: Array API `moveaxis`.
 *
 * @returns the axes of x in another order, the dtype of x
 * @throws ShapeError for axes outside the shape, ArgumentError for more of one than of the other
 *
 * @example
 * moveAxis(zeros([2, 3, 4]), 0, -1).shape; // [3, 4, 2]
 */
export function moveAxis(x: Tensor, from: number | readonly number[], to: number | readonly number[]): Tensor {
  beginOp('moveAxis');
  const node = nodeOf(x);
  const rank = node.shape.length;
  const placesOf = (what: string, given: number | readonly number[]): number[] => {
    const list = typeof given === 'number' ? [given] : given;
    checkList('moveAxis', what, list, '[0, 1]');
    return list.map((axis) => normalizeAxis('moveAxis', axis, rank));
  };
  const sources = placesOf('axes', from);
  const targets = placesOf('destinations', to);
  if (
    sources.length !== targets.length ||
    new Set(sources).size !== sources.length ||
    new Set(targets).size !== targets.length
  ) {
    throw new ArgumentError(
      'moveAxis',
      say`axes do not match: from ${showShape(sources)} to ${showShape(targets)}; give equally many, each once`,
    );
  }
  const order = new Array<number>(rank).fill(-1);
  targets.forEach((target, i) => {
    order[target] = sources[i]!;
  });
  const rest = node.shape.map((_, i) => i).filter((axis) => !sources.includes(axis));
  return wrap(
    p.permute(
      node,
      order.map((axis) => (axis < 0 ? rest.shift()! : axis)),
    ),
  );
}

/**
 * Without axes of size 1: all of them, or those named. Source: Array API `squeeze`.
 *
 * @param axis one axis or several, or { axis }
 * @returns fewer axes, the dtype of x
 * @throws ShapeError if a named axis has another size
 *
 * @example
 * squeeze(zeros([1, 3, 1])).shape; // [3]
 */
export function squeeze(x: Tensor, axis?: AxesArgument): Tensor {
  beginOp('squeeze');
  const named = givenAxes('squeeze', axis);
  const node = nodeOf(x);
  const { shape } = node;
  if (named === undefined)
    return wrap(
      p.reshape(
        node,
        shape.filter((n) => n !== 1),
      ),
    );
  const axes = normalizeAxes('squeeze', named, shape.length);
  for (const at of axes) {
    if (shape[at] !== 1)
      throw new ShapeError(
        'squeeze',
        say`axis ${at} has size ${shape[at]} in shape ${showShape(shape)}; only axes of size 1 can go`,
        [shape],
      );
  }
  return wrap(
    p.reshape(
      node,
      shape.filter((_, i) => !axes.includes(i)),
    ),
  );
}

/**
 * With an axis of size 1 put in, or several. Source: Array API `expand_dims`.
 *
 * @param axis position in the result, or several, or { axis }
 * @returns more axes, the dtype of x
 * @throws ShapeError for positions outside the result, and for one named twice
 *
 * @example
 * unsqueeze(zeros([3]), 0).shape; // [1, 3]
 */
export function unsqueeze(x: Tensor, axis: AxesArgument): Tensor {
  beginOp('unsqueeze');
  const named = givenAxes('unsqueeze', axis);
  const node = nodeOf(x);
  if (typeof named !== 'number') checkList('unsqueeze', 'axes', named, '[0, 1]');
  const count = typeof named === 'number' ? 1 : named!.length;
  return wrap(p.insertAxes(node, normalizeAxes('unsqueeze', named, node.shape.length + count)));
}

/**
 * A copy of the values in row-major order. For data that is read often through an awkward view. Source: PyTorch
 * `contiguous`.
 *
 * @returns the shape and dtype of x
 *
 * @example
 * contiguous(transpose(zeros([100, 100])));
 */
export function contiguous(x: Tensor): Tensor {
  beginOp('contiguous');
  return wrap(p.contiguous(nodeOf(x)));
}

// Elements repeated: broadcasting to a shape, tiling, repeating in place. Stretched axes take no memory.

/**
 * x stretched to a shape: axes of size 1, and missing leading axes, are repeated without a copy. Source: Array API `broadcast_to`.
 *
 * @returns the given shape, the dtype of x
 * @throws ShapeError where the shapes do not fit
 *
 * @example
 * broadcastTo(tensor([1, 2]), [3, 2]); // [[1, 2], [1, 2], [1, 2]]
 */
export function broadcastTo(x: Tensor, shape: Shape): Tensor {
  beginOp('broadcastTo');
  return wrap(stretched('broadcastTo', x, shape));
}

function stretched(op: string, x: Tensor, shape: Shape): Node {
  const node = nodeOf(x);
  const sizes = checkShape(op, shape);
  if (!broadcastsTo(node.shape, sizes)) {
    throw new ShapeError(
      op,
      say`shapes do not broadcast: ${showShape(node.shape)} to ${showShape(shape)}; sizes must be equal or 1, counted from the last axis`,
      [node.shape, shape],
    );
  }
  return p.broadcastTo(node, sizes);
}

/**
 * Like broadcastTo; -1 keeps the size of an axis. Source: PyTorch `Tensor.expand`.
 *
 * @returns the given shape, the dtype of x
 * @throws ShapeError where the shapes do not fit
 *
 * @example
 * expand(zeros([3, 1]), [-1, 4]).shape; // [3, 4]
 */
export function expand(x: Tensor, shape: Shape): Tensor {
  beginOp('expand');
  const from = nodeOf(x).shape;
  checkList('expand', 'shape', shape, '[2, -1]', mostAxes);
  const missing = shape.length - from.length;
  return wrap(
    stretched(
      'expand',
      x,
      shape.map((n, i) => (n === -1 ? (from[i - missing] ?? -1) : n)),
    ),
  );
}

/**
 * x repeated whole along each axis. Source: NumPy `tile`.
 *
 * @param repeats how often, per axis; missing leading entries are 1
 * @returns each size times its number, the dtype of x
 *
 * @example
 * tile(tensor([1, 2]), [2]); // [1, 2, 1, 2]
 */
export function tile(x: Tensor, repeats: readonly number[]): Tensor {
  return tiled('tile', x, repeats);
}

function tiled(op: string, x: Tensor, repeats: readonly number[]): Tensor {
  beginOp(op);
  const node = nodeOf(x);
  checkList(op, 'repeats', repeats, '[2, 1]', mostAxes);
  const rank = Math.max(node.shape.length, repeats.length);
  const shape = [...new Array<number>(rank - node.shape.length).fill(1), ...node.shape];
  const times = [...new Array<number>(rank - repeats.length).fill(1), ...repeats];
  for (const n of times)
    if (!Number.isInteger(n) || n < 0)
      throw new ArgumentError(op, say`bad number of repeats: ${n}; must be a non-negative integer`);
  const split = shape.flatMap((n) => [1, n]);
  const stretchedShape = shape.flatMap((n, i) => [times[i]!, n]);
  const result = shape.map((n, i) => n * times[i]!);
  checkShape(op, result);
  return wrap(p.reshape(p.expand(p.reshape(node, split), stretchedShape), result));
}

/**
 * The same as tile. Source: PyTorch `Tensor.repeat`.
 *
 * @returns each size times its number, the dtype of x
 *
 * @example
 * repeat(tensor([1, 2]), [2]); // [1, 2, 1, 2]
 */
export function repeat(x: Tensor, repeats: readonly number[]): Tensor {
  return tiled('repeat', x, repeats);
}

/**
 * Every element repeated in place. Source: Array API `repeat`, PyTorch `repeat_interleave`.
 *
 * @param count how often; or how often each position of the axis
 * @param options an axis, or { axis }; without it x is flattened first
 * @throws ArgumentError for counts that are no non-negative integers, or not one per position
 *
 * @example
 * repeatInterleave(tensor([1, 2]), 2); // [1, 1, 2, 2]
 */
export function repeatInterleave(
  x: Tensor,
  count: number | readonly number[],
  options: number | { readonly axis?: number } = {},
): Tensor {
  const chosen = optionsOf(options);
  checkNames('repeatInterleave', chosen, 'axis');
  if (typeof count !== 'number') return compose('repeatInterleave', () => repeatEach(x, count, chosen.axis));
  beginOp('repeatInterleave');
  let node = nodeOf(x);
  if (chosen.axis === undefined) node = p.reshape(node, [sizeOf(node.shape)]);
  const axis = normalizeAxis('repeatInterleave', chosen.axis ?? 0, node.shape.length);
  if (!Number.isInteger(count) || count < 0)
    throw new ArgumentError('repeatInterleave', say`bad count: ${count}; must be a non-negative integer`);
  const { shape } = node;
  checkShape(
    'repeatInterleave',
    shape.map((n, i) => (i === axis ? n * count : n)),
  );
  const wide = p.insertAxes(node, [axis + 1]);
  const stretchedShape = wide.shape.map((n, i) => (i === axis + 1 ? count : n));
  return wrap(
    p.reshape(
      p.expand(wide, stretchedShape),
      shape.map((n, i) => (i === axis ? n * count : n)),
    ),
  );
}

/** Each position of an axis as often as its own count says. */
function repeatEach(x: Tensor, counts: readonly number[], given: number | undefined): Tensor {
  let node = nodeOf(x);
  if (given === undefined) node = p.reshape(node, [sizeOf(node.shape)]);
  const axis = normalizeAxis('repeatInterleave', given ?? 0, node.shape.length);
  const n = node.shape[axis]!;
  checkList('repeatInterleave', 'counts', counts, '[1, 2]', mostOnHost);
  if (counts.length !== n)
    throw new ArgumentError(
      'repeatInterleave',
      say`wrong number of counts: ${counts.length} for size ${n}; give one each`,
    );
  let total = 0;
  for (const count of counts) total += checkCount('repeatInterleave', 'count', count);
  checkCount('repeatInterleave', 'sum of counts', total, 0, mostOnHost);
  const positions = new Int32Array(total);
  let at = 0;
  counts.forEach((count, i) => {
    positions.fill(i, at, at + count);
    at += count;
  });
  const index = indexNode('repeatInterleave', positions as unknown as readonly number[], n);
  return wrap(makeNode(gatherPrimitive, [node, index], { axis }));
}
