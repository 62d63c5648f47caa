/** Elements put at coordinates into zeros, and places of coordinates. */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { scatterAddPrimitive } from '../../primitives/indexing.ts';
import { checkShape } from '../../shape/axes.ts';
import { ShapeError, showShape } from '../../shape/errors.ts';
import { say } from '../../shape/shown.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { checkSource, type IndexLike, indexNode, safeIndex, updatesFor } from './index-argument.ts';

/** Row-major position, in the leading axes of `shape`, of each row of coordinates [..., d]; and d. */
export function coordinates(op: string, indices: IndexLike, shape: Shape): { places: Node; depth: number } {
  const index = indexNode(op, indices, null);
  const rank = index.shape.length;
  const depth = rank === 0 ? 0 : index.shape[rank - 1]!;
  if (depth < 1 || depth > shape.length)
    throw new ShapeError(
      op,
      say`coordinates have shape ${showShape(index.shape)}: the last axis must have from 1 to ${shape.length} entries for shape ${showShape(shape)}`,
      [index.shape, shape],
    );
  const lead = index.shape.slice(0, -1);
  let places: Node | null = null;
  for (let k = 0; k < depth; k++) {
    const column = p.slice(
      index,
      index.shape.map((_, i) => (i === rank - 1 ? k : 0)),
      [...lead, 1],
      index.shape.map(() => 1),
    );
    const n = shape[k]!;
    const at = safeIndex(op, p.reshape(column, lead), n);
    places = places === null ? at : p.add(p.mul(places, p.constant(n, 'int32')), at);
  }
  return { places: places!, depth };
}

/**
 * Zeros of a shape with the updates added at coordinates; repeated ones add up. Source: TensorFlow `scatter_nd`.
 *
 * @param indices integers of shape [..., d], d from 1 to the rank of the result
 * @param updates tensor of shape [..., ...shape.slice(d)]
 * @param shape shape of the result
 * @returns a tensor of that shape and the dtype of the updates
 * @throws ShapeError where the shapes do not fit; ArgumentError for a bad shape
 *
 * @example
 * scatterNd([[1], [3], [1]], tensor([5, 6, 7]), [4]); // [0, 12, 0, 6]
 */
export function scatterNd(indices: IndexLike, updates: Tensor, shape: Shape): Tensor {
  return compose('scatterNd', () => {
    checkShape('scatterNd', shape);
    const { places, depth } = coordinates('scatterNd', indices, shape);
    const values = nodeOf(updates);
    const rest = shape.slice(depth);
    const base = p.constant(0, values.dtype, [sizeOf(shape.slice(0, depth)), ...rest]);
    const fitted = updatesFor('scatterNd', base, values, [...places.shape, ...rest]);
    checkSource('scatterNd', base, 0, places);
    return wrap(p.reshape(makeNode(scatterAddPrimitive, [base, places, fitted], { axis: 0 }), [...shape]));
  });
}
