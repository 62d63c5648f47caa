/** The matrix product of two nodes, as one `dotGeneral`. */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { broadcastShapes } from '../../shape/view.ts';
import { ShapeError, showShape } from '../../shape/errors.ts';
import { say } from '../../shape/shown.ts';

/** The integers from `from` up to, but without, `to`. */
export const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** NumPy's matmul on nodes. */
export function matmulNode(op: string, a: Node, b: Node): Node {
  const [m, n] = [a.shape.length, b.shape.length];
  if (m === 0 || n === 0)
    throw new ShapeError(op, say`scalars are no matrices: ${showShape(a.shape)} and ${showShape(b.shape)}; use mul()`, [
      a.shape,
      b.shape,
    ]);
  const lhsAxis = m - 1;
  const rhsAxis = n === 1 ? 0 : n - 2;
  if (a.shape[lhsAxis] !== b.shape[rhsAxis]) {
    throw new ShapeError(
      op,
      say`inner sizes differ: ${a.shape[lhsAxis]} in ${showShape(a.shape)} and ${b.shape[rhsAxis]} in ${showShape(b.shape)}; the last axis of the first and the ${n === 1 ? 'only' : 'second to last'} axis of the second must be equal`,
      [a.shape, b.shape],
    );
  }
  // Without batches on the right, all leading axes on the left are rows of one product.
  if (n <= 2)
    return makeNode('dotGeneral', [a, b], {
      lhsBatch: [],
      rhsBatch: [],
      lhsContract: [lhsAxis],
      rhsContract: [rhsAxis],
    });
  const batch = broadcastShapes(op, a.shape.slice(0, Math.max(0, m - 2)), b.shape.slice(0, n - 2));
  const axes = range(0, batch.length);
  const left = p.broadcastTo(a, [...batch, ...a.shape.slice(Math.max(0, m - 2))]);
  const right = p.broadcastTo(b, [...batch, ...b.shape.slice(n - 2)]);
  return makeNode('dotGeneral', [left, right], {
    lhsBatch: axes,
    rhsBatch: axes,
    lhsContract: [left.shape.length - 1],
    rhsContract: [right.shape.length - 2],
  });
}
