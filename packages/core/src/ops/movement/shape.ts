/**
 * Other shapes for the same elements: reshape and axis order. No element is computed, and for tensors that are in
 * memory already none is copied where strides can express the result.
 */
import * as p from '../../graph/primitives.ts';
import { beginOp } from '../../graph/scope.ts';
import { checkList, normalizeAxes, normalizeAxis, resolveShape } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { say } from '../../shape/shown.ts';
import type { Tensor } from '../../tensor/types.ts';

/**
 * The elements in row-major order under another shape. Source: Array API `reshape`.
 *
 * @param shape sizes; one may be -1 and is worked out
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
 * @param options start 0, end -1
 *
 * @example
 * flatten(zeros([2, 3, 4]), { start: 1 }).shape; // [2, 12]
 */
export function flatten(x: Tensor, options: { readonly start?: number; readonly end?: number } = {}): Tensor {
  checkNames('flatten', options, 'start# end#');
  beginOp('flatten');
  const node = nodeOf(x);
  const { shape } = node;
  if (shape.length === 0) return wrap(p.reshape(node, [1]));
  const start = normalizeAxis('flatten', options.start ?? 0, shape.length);
  const end = normalizeAxis('flatten', options.end ?? -1, shape.length);
  if (end < start) throw new ArgumentError('flatten', say`start comes after end: ${start} and ${end}; swap them`);
  return wrap(
    p.reshape(node, [...shape.slice(0, start), sizeOf(shape.slice(start, end + 1)), ...shape.slice(end + 1)]),
  );
}

/**
 * One axis as several. Source: PyTorch `unflatten`.
 *
 * @param sizes sizes of the new axes; one may be -1
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
 * Two axes exchanged; the last two if none are named. Source: PyTorch `transpose`.
 *
 * @example
 * transpose(zeros([5, 2, 3])).shape; // [5, 3, 2]
 */
export function transpose(x: Tensor, axis1: number = -2, axis2: number = -1): Tensor {
  beginOp('transpose');
  const node = nodeOf(x);
  const rank = node.shape.length;
  if (rank < 2 && axis1 === -2 && axis2 === -1) return wrap(node);
  const [a, b] = [normalizeAxis('transpose', axis1, rank), normalizeAxis('transpose', axis2, rank)];
  const order = node.shape.map((_, i) => (i === a ? b : i === b ? a : i));
  return wrap(p.permute(node, order));
}

/**
 * One axis, or several, moved to other positions; the others keep their order. Source: Array API `moveaxis`.
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
 * @throws ShapeError if a named axis has another size
 *
 * @example
 * squeeze(zeros([1, 3, 1])).shape; // [3]
 */
export function squeeze(x: Tensor, axis?: number | readonly number[]): Tensor {
  beginOp('squeeze');
  const node = nodeOf(x);
  const { shape } = node;
  if (axis === undefined)
    return wrap(
      p.reshape(
        node,
        shape.filter((n) => n !== 1),
      ),
    );
  const axes = normalizeAxes('squeeze', axis, shape.length);
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
 * @param axis position in the result
 *
 * @example
 * unsqueeze(zeros([3]), 0).shape; // [1, 3]
 */
export function unsqueeze(x: Tensor, axis: number | readonly number[]): Tensor {
  beginOp('unsqueeze');
  const node = nodeOf(x);
  if (typeof axis !== 'number') checkList('unsqueeze', 'axes', axis, '[0, 1]');
  const count = typeof axis === 'number' ? 1 : axis.length;
  return wrap(p.insertAxes(node, normalizeAxes('unsqueeze', axis, node.shape.length + count)));
}

/**
 * The same values in memory of their own, in row-major order. For data that is read often through an awkward view. Source: PyTorch
 * `contiguous`.
 *
 * @example
 * contiguous(transpose(zeros([100, 100])));
 */
export function contiguous(x: Tensor): Tensor {
  beginOp('contiguous');
  return wrap(p.contiguous(nodeOf(x)));
}
