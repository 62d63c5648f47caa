/** Padding of an axis by its own elements (reflection, edge, other end): for `pad` and convolutions. Constant padding is the primitive `pad`. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { ShapeError } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';

/** The mirrored inside without or (symmetric) with the edge, the edge, the other end. */
export type FilledFrom = 'reflect' | 'symmetric' | 'replicate' | 'circular';

/** A node with `before` and `after` elements put around an axis; negative numbers cut. */
export function extended(op: string, node: Node, axis: number, before: number, after: number, mode: FilledFrom): Node {
  const n = node.shape[axis]!;
  // The part of the axis that stays. Reflections are about the edges of the whole axis and may take cut elements; 'circular' wraps what stays.
  const [first, end] = [Math.max(0, -before), n - Math.max(0, -after)];
  const most = { reflect: n - 1, symmetric: n, replicate: n > 0 ? Number.POSITIVE_INFINITY : 0, circular: end - first }[
    mode
  ];
  if (Math.max(before, after) > most) {
    throw new ShapeError(
      op,
      say`width too large for mode '${mode}': [${before}, ${after}] for axis ${axis} of size ${n}; at most ${Math.max(0, most)}`,
      [node.shape],
    );
  }
  const part = (start: number, stop: number, of: Node = node): Node =>
    p.slice(
      of,
      of.shape.map((_, i) => (i === axis ? start : 0)),
      of.shape.map((size, i) => (i === axis ? stop - start : size)),
      of.shape.map(() => 1),
    );
  // One end cuts more than the axis has, so it also cuts what is put at the other end.
  if (first > n) return part(first, n + after, extended(op, node, axis, 0, after, mode));
  if (end < 0) return part(0, end + before, extended(op, node, axis, before, 0, mode));
  const edge = (index: number, count: number): Node => {
    const one = part(index, index + 1);
    return p.expand(
      one,
      one.shape.map((size, i) => (i === axis ? count : size)),
    );
  };
  const pieces: Node[] = [];
  const inside = part(first, end);
  if (before > 0) {
    if (mode === 'replicate') pieces.push(edge(0, before));
    else if (mode === 'circular') pieces.push(part(end - before, end));
    else pieces.push(p.flip(mode === 'reflect' ? part(1, before + 1) : part(0, before), [axis]));
  }
  pieces.push(inside);
  if (after > 0) {
    if (mode === 'replicate') pieces.push(edge(n - 1, after));
    else if (mode === 'circular') pieces.push(part(first, first + after));
    else pieces.push(p.flip(mode === 'reflect' ? part(n - 1 - after, n - 1) : part(n - after, n), [axis]));
  }
  return p.concat(pieces, axis);
}
