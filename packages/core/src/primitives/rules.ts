/** What the rules of many primitives are made of. For batches, a node is made again for a whole batch: axis 0 of its sources and of its result. */
import type { Attrs, PrimitiveName } from '../graph/attrs.ts';
import { makeAgain } from '../graph/build.ts';
import type { BatchContext, InferRule, TangentContext } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';

export const dtypeOfFirst = (src: readonly Node[]): Node['dtype'] => src[0]!.dtype;

export const inferSame: InferRule<PrimitiveName> = { shape: (src) => src[0]!.shape, dtype: dtypeOfFirst };

/** The tangent of primitives that are linear in their first source and have no other. */
export function linear<P extends PrimitiveName>({ node, attr, tangents }: TangentContext<P>): Node {
  return makeAgain(node, [tangents[0]!], attr);
}

/** The source with the batch in front, stretched over it if all elements share it. */
export function whole(c: BatchContext<PrimitiveName>, i: number): Node {
  const source = c.src[i]!;
  return c.sources[i] ?? p.broadcastTo(source, [c.size, ...source.shape]);
}

/** All sources with the batch in front. */
export function everySource(c: BatchContext<PrimitiveName>): Node[] {
  return c.src.map((_, i) => whole(c, i));
}

/** For primitives with one source, given the attributes that leave the first axis alone. */
export function again<P extends PrimitiveName>(c: BatchContext<P>, attr: Attrs[P] = c.attr): Node {
  return makeAgain(c.node, [whole(c, 0)], attr);
}

/** Axes one further back. */
export const behind = (axes: readonly number[]): number[] => axes.map((axis) => axis + 1);

/** The order of axes that moves one axis of `rank` to another place. */
export function moved(rank: number, from: number, to: number): number[] {
  const axes = Array.from({ length: rank }, (_, i) => i).filter((axis) => axis !== from);
  axes.splice(to, 0, from);
  return axes;
}

/** One axis moved to the front. */
export function toFront(x: Node, axis: number): Node {
  return p.permute(x, moved(x.shape.length, axis, 0));
}

/** Operands align at the trailing axes, so smaller ones get axes of size 1 behind the batch; shared ones fit as they are. */
export function elementwiseBatch<P extends PrimitiveName>(c: BatchContext<P>): Node {
  const rank = c.node.shape.length;
  const sources = c.sources.map((source, i) => {
    if (source === null) return c.src[i]!;
    const [, ...shape] = source.shape;
    return p.reshape(source, [c.size, ...new Array<number>(rank - shape.length).fill(1), ...shape]);
  });
  return makeAgain(c.node, sources, c.attr);
}
