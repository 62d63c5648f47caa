/** Elements repeated: broadcasting to a shape, tiling, repeating in place. Stretched axes take no memory of their own. */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { gatherPrimitive } from '../../primitives/indexing.ts';
import { checkCount, checkList, checkShape, mostAxes, mostOnHost, normalizeAxis } from '../../shape/axes.ts';
import { broadcastsTo, type Shape, sizeOf } from '../../shape/view.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { indexNode } from '../indexing/index-argument.ts';
import { say } from '../../shape/shown.ts';

/**
 * x stretched to a shape: axes of size 1, and missing leading axes, are repeated without a copy. Source: Array API `broadcast_to`.
 *
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
  checkShape(op, shape);
  if (!broadcastsTo(node.shape, shape)) {
    throw new ShapeError(
      op,
      say`shapes do not broadcast: ${showShape(node.shape)} to ${showShape(shape)}; sizes must be equal or 1, counted from the last axis`,
      [node.shape, shape],
    );
  }
  return p.broadcastTo(node, [...shape]);
}

/**
 * Like broadcastTo; -1 keeps the size of an axis. Source: PyTorch `Tensor.expand`.
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
 * @param options axis; without it x is flattened first
 * @throws ArgumentError for counts that are no non-negative integers, or not one per position
 *
 * @example
 * repeatInterleave(tensor([1, 2]), 2); // [1, 1, 2, 2]
 */
export function repeatInterleave(
  x: Tensor,
  count: number | readonly number[],
  options: { readonly axis?: number } = {},
): Tensor {
  checkNames('repeatInterleave', options, 'axis');
  if (typeof count !== 'number') return compose('repeatInterleave', () => repeatEach(x, count, options.axis));
  beginOp('repeatInterleave');
  let node = nodeOf(x);
  if (options.axis === undefined) node = p.reshape(node, [sizeOf(node.shape)]);
  const axis = normalizeAxis('repeatInterleave', options.axis ?? 0, node.shape.length);
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
