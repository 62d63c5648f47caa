/** The order of elements along an axis as nodes: their positions, and the elements there. */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { argSortPrimitive } from '../../primitives/order.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { alongAxis } from '../indexing/index-argument.ts';

/** A dtype that keys are made of, in which the order is the same. */
function sortable(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (bytes >= 4) return dtype;
  return kind === 'float' ? 'float32' : kind === 'int' ? 'int32' : 'uint32';
}

/** Positions of the first `count` elements in order along an axis; a scalar is one element. */
export function orderOf(x: Node, axis: number, descending: boolean, count: number = x.shape[axis] ?? 1): Node {
  if (x.shape.length === 0) return p.constant(0, 'int32');
  return makeNode(argSortPrimitive, [p.cast(p.stopGradient(x), sortable(x.dtype))], { axis, descending, count });
}

/** The elements at positions along an axis. */
export function elementsAt(x: Node, order: Node, axis: number): Node {
  return x.shape.length === 0 ? p.identity(x) : alongAxis(x, order, axis);
}
