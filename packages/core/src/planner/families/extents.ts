/**
 * Extents that the planner makes, in a graph at a capacity: one that a sum made a multiple of it is no size. The numbers of a cone are
 * none (families.ts), but nodes that take the place of others have shapes of their own: joints, padding, windows.
 */
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import type { Shape } from '../../shape/view.ts';
import { type PlanNode, SizesRefused } from '../capture/plan-graph.ts';

/** Throws for a node with sized axes other than those of its sources, in places where a sum is not. */
export function checkExtents(
  capacity: number,
  op: PrimitiveName,
  attr: unknown,
  src: readonly PlanNode[],
  shape: Shape,
): void {
  if (op === 'reshape' || op === 'expand' || src.length === 0) return;
  shape.forEach((n, axis) => {
    if (n === 0 || n % capacity !== 0) return;
    if (!src.some((s) => s.shape.includes(n)) || isSum(op, attr, src[0]!.shape, shape, axis))
      throw new SizesRefused(`${op} of shape [${shape}]`);
  });
}

/** True if the length of an axis is a sum, or begins with one. */
function isSum(op: PrimitiveName, attr: unknown, from: Shape, shape: Shape, axis: number): boolean {
  switch (op) {
    case 'concat':
      return axis === (attr as Attrs['concat']).axis;
    case 'pad':
      return from[axis] !== shape[axis];
    case 'slice':
      return from[axis]! % shape[axis]! !== 0;
    case 'conv':
      return axis > 1;
    case 'window':
      return axis >= from.length - (attr as Attrs['window']).size.length;
    case 'fold':
      return axis >= shape.length - (attr as Attrs['fold']).size.length;
    default:
      return false;
  }
}
