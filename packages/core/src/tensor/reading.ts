/** Host data on its way in and out: uploading, and elements as nested arrays or one number. Reading itself is in handle.ts. */
import { ShapeError, showShape } from '../shape/errors.ts';
import { getElement } from '../shape/host.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import type { Node } from '../graph/node.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { say } from '../shape/shown.ts';
import type { NestedValues } from './types.ts';

export { uploadNode } from '../runtime/upload.ts';

/** Elements as nested arrays; the element itself for shape []. */
export function nest(
  data: TypedArray,
  { shape, dtype }: { readonly shape: Shape; readonly dtype: DType },
): NestedValues {
  let at = 0;
  const build = (axis: number): NestedValues => {
    if (axis === shape.length) return getElement(data, dtype, at++);
    return Array.from({ length: shape[axis]! }, () => build(axis + 1));
  };
  return build(0);
}

/** The node. Throws ShapeError unless it has one element. */
export function alone(op: string, node: Node): Node {
  if (sizeOf(node.shape) !== 1) {
    throw new ShapeError(
      op,
      say`not one element: ${showShape(node.shape)} has ${sizeOf(node.shape)}; use data() or array()`,
      [node.shape],
    );
  }
  return node;
}

/** The element as item() gives it. */
export function element<T extends number | bigint>(data: TypedArray, { dtype }: { readonly dtype: DType }): T {
  const value = getElement(data, dtype, 0);
  return (typeof value === 'boolean' ? Number(value) : value) as T;
}
