/** Matrices as nodes: their product, as one `dotGeneral`, and their diagonals. */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';

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

// Diagonals of matrices as nodes, and how far elements lie from the main one.

export function checkDiagonal(op: string, name: string, diagonal: number): number {
  if (!Number.isInteger(diagonal)) throw new ArgumentError(op, say`bad ${name}: ${diagonal}; must be an integer`);
  return diagonal;
}

/** Column minus row of a matrix of the given sizes, int32. */
export function offsets(rows: number, columns: number): Node {
  return p.sub(p.iota(columns), p.insertAxes(p.iota(rows), [1]));
}

/** The diagonal of axes a and b as the last axis: every (columns + 1)-th element of the flattened matrix. */
export function diagonalNode(op: string, x: Node, offset: number, axis1: number, axis2: number): Node {
  const rank = x.shape.length;
  const a = axis1 < 0 ? axis1 + rank : axis1;
  const b = axis2 < 0 ? axis2 + rank : axis2;
  if (rank < 2 || a === b || x.shape[a] === undefined || x.shape[b] === undefined) {
    throw new ShapeError(
      op,
      say`no matrix: axes ${axis1} and ${axis2} of shape ${showShape(x.shape)}; needs two different axes`,
      [x.shape],
    );
  }
  checkDiagonal(op, 'offset', offset);
  const lead = x.shape.map((_, i) => i).filter((i) => i !== a && i !== b);
  const matrix = p.permute(x, [...lead, a, b]);
  const [rows, columns] = [x.shape[a], x.shape[b]];
  const count = Math.max(0, Math.min(rows + Math.min(offset, 0), columns - Math.max(offset, 0)));
  const sizes = lead.map((i) => x.shape[i]!);
  const flat = p.reshape(matrix, [...sizes, rows * columns]);
  const first = offset >= 0 ? offset : -offset * columns;
  const at = (value: number, other: number): number[] => [...sizes.map(() => other), value];
  return p.slice(flat, at(count === 0 ? 0 : first, 0), [...sizes, count], at(columns + 1, 1));
}
