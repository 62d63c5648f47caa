/**
 * Batching rules of indexing. Where the indices differ between the elements of a batch, the batch and the indexed axis become one axis, and
 * indices count along it.
 */
import { makeAgain } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import type { BatchContext, BatchRule } from '../../graph/rules.ts';
import { moved, toFront, whole } from './rule.ts';

/** Axis 0 and the axis at `axis` (counted without it) as one, in the place of the latter. */
function joined(x: Node, axis: number): Node {
  const [size, ...shape] = x.shape as [number, ...number[]];
  return p.reshape(p.permute(x, moved(x.shape.length, 0, axis)), [
    ...shape.slice(0, axis),
    size * (shape[axis] as number),
    ...shape.slice(axis + 1),
  ]);
}

/** Indices [size, ...] along an axis of `count` as indices along the joined axis. */
function shifted(index: Node, count: number): Node {
  const [size, ...rest] = index.shape as [number, ...number[]];
  const start = p.mul(p.iota(size), p.constant(count, 'int32'));
  return p.add(index, p.reshape(start, [size, ...rest.map(() => 1)]));
}

export const gatherBatch: BatchRule<'gather'> = ({ node, src, attr, sources }) => {
  const [x, index] = sources as [Node | null, Node | null];
  const { axis } = attr;
  if (index === null) return makeAgain(node, [x as Node, src[1] as Node], { axis: axis + 1 });
  if (x === null) return toFront(makeAgain(node, [src[0] as Node, index], { axis }), axis);
  const at = shifted(index, (src[0] as Node).shape[axis] as number);
  return toFront(makeAgain(node, [joined(x, axis), at], { axis }), axis);
};

/** Adding and the other scatters: the same indices, other combinations. */
export function scatterBatch<P extends 'scatterAdd' | 'scatter'>(c: BatchContext<P>): Node {
  const { src, attr, sources } = c;
  const { axis } = attr;
  const made = (nodes: readonly Node[], along: number): Node => makeAgain(c.node, nodes, { ...attr, axis: along });
  const base = whole(c, 0);
  const updates = whole(c, 2);
  const index = sources[1] ?? null;
  if (index === null) return made([base, src[1] as Node, updates], axis + 1);
  const count = (src[0] as Node).shape[axis] as number;
  const moving = p.permute(updates, moved(updates.shape.length, 0, axis));
  const result = made([joined(base, axis), shifted(index, count), moving], axis);
  const shape = (src[0] as Node).shape;
  return toFront(p.reshape(result, [...shape.slice(0, axis), c.size, ...shape.slice(axis)]), axis);
}
