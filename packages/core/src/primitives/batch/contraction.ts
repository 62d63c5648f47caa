/**
 * Batching rules of contractions: a batch in both operands is one more batch axis of a product, or more groups of a convolution; a
 * batch in one of them is one more free axis, or more images or features.
 */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import type { BatchRule } from '../../graph/rules.ts';
import { behind, moved, toFront } from './rule.ts';

export const dotGeneralBatch: BatchRule<'dotGeneral'> = ({ src, attr, sources }) => {
  const [lhs, rhs] = sources as [Node | null, Node | null];
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attr;
  if (lhs !== null && rhs !== null) {
    return makeNode('dotGeneral', [lhs, rhs], {
      lhsBatch: [0, ...behind(lhsBatch)],
      rhsBatch: [0, ...behind(rhsBatch)],
      lhsContract: behind(lhsContract),
      rhsContract: behind(rhsContract),
    });
  }
  if (lhs !== null) {
    const product = makeNode('dotGeneral', [lhs, src[1] as Node], {
      lhsBatch: behind(lhsBatch),
      rhsBatch,
      lhsContract: behind(lhsContract),
      rhsContract,
    });
    return toFront(product, lhsBatch.length);
  }
  const product = makeNode('dotGeneral', [src[0] as Node, rhs as Node], {
    lhsBatch,
    rhsBatch: behind(rhsBatch),
    lhsContract,
    rhsContract: behind(rhsContract),
  });
  const lhsFree = (src[0] as Node).shape.length - lhsBatch.length - lhsContract.length;
  return toFront(product, lhsBatch.length + lhsFree);
};

/** Axis 0 merged into axis `axis` (counted without axis 0), between its `groups` and what is inside a group. */
function mergeInto(x: Node, axis: number, groups: number): Node {
  const [size, ...shape] = x.shape as [number, ...number[]];
  const n = shape[axis] as number;
  if (groups === 1) {
    const next = p.permute(x, moved(x.shape.length, 0, axis));
    return p.reshape(next, [...shape.slice(0, axis), size * n, ...shape.slice(axis + 1)]);
  }
  const split = p.reshape(x, [size, ...shape.slice(0, axis), groups, n / groups, ...shape.slice(axis + 1)]);
  const next = p.permute(split, moved(split.shape.length, 0, axis + 1));
  return p.reshape(next, [...shape.slice(0, axis), size * n, ...shape.slice(axis + 1)]);
}

/** The reverse. */
function splitFrom(x: Node, axis: number, size: number, groups: number): Node {
  const n = (x.shape[axis] as number) / size;
  const split = p.reshape(x, [...x.shape.slice(0, axis), groups, size, n / groups, ...x.shape.slice(axis + 1)]);
  const front = toFront(split, axis + 1);
  return p.reshape(front, [size, ...x.shape.slice(0, axis), n, ...x.shape.slice(axis + 1)]);
}

export const convBatch: BatchRule<'conv'> = (c) => {
  const { node, src, attr, sources, size } = c;
  const [lhs, rhs] = sources as [Node | null, Node | null];
  const { groups, batchGroups } = attr;
  if (size === 0) return p.constant(0, node.dtype, [0, ...node.shape]);
  if (lhs !== null && rhs !== null) {
    if (batchGroups > 1) {
      const result = makeNode('conv', [mergeInto(lhs, 0, 1), mergeInto(rhs, 0, 1)], {
        ...attr,
        batchGroups: batchGroups * size,
      });
      return splitFrom(result, 1, size, 1);
    }
    const result = makeNode('conv', [mergeInto(lhs, 1, 1), mergeInto(rhs, 0, 1)], { ...attr, groups: groups * size });
    return splitFrom(result, 1, size, 1);
  }
  if (lhs !== null) {
    // More images; those of one group of the batch stay together.
    const result = makeNode('conv', [mergeInto(lhs, 0, batchGroups), src[1] as Node], attr);
    return splitFrom(result, 0, size, 1);
  }
  // More features, inside each group.
  const parts = Math.max(groups, batchGroups);
  const result = makeNode('conv', [src[0] as Node, mergeInto(rhs as Node, 0, parts)], attr);
  return splitFrom(result, 1, size, parts);
};
