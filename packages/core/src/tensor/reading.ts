/** Host data: uploaded, and values read back, the only operations of tensors that wait for the engine. */
import { ShapeError, showShape } from '../shape/errors.ts';
import { getElement } from '../shape/host.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import type { Node } from '../graph/node.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { readNode, readNodeSync } from '../runtime/reading.ts';
import { deviceOf as deviceOfNode } from '../runtime/runtime.ts';
import { nodeOf } from './handle.ts';
import { say } from '../shape/shown.ts';
import type { NestedValues, Tensor } from './types.ts';

export { uploadNode } from '../runtime/upload.ts';

export async function readData(t: Tensor): Promise<TypedArray> {
  return readNode(nodeOf(t, 'data'));
}

export function readDataSync(t: Tensor): TypedArray {
  return readNodeSync(nodeOf(t, 'dataSync'));
}

/** Elements as nested arrays; the element itself for shape []. */
function nest(data: TypedArray, shape: Shape, dtype: DType): NestedValues {
  let at = 0;
  const build = (axis: number): NestedValues => {
    if (axis === shape.length) return getElement(data, dtype, at++);
    return Array.from({ length: shape[axis] as number }, () => build(axis + 1));
  };
  return build(0);
}

export async function readArray(t: Tensor): Promise<NestedValues> {
  const { shape, dtype } = nodeOf(t, 'array');
  return nest(await readData(t), shape, dtype);
}

export function readArraySync(t: Tensor): NestedValues {
  const { shape, dtype } = nodeOf(t, 'arraySync');
  return nest(readDataSync(t), shape, dtype);
}

function onlyElement(op: string, node: Node): void {
  if (sizeOf(node.shape) !== 1) {
    throw new ShapeError(
      op,
      say`not one element: ${showShape(node.shape)} has ${sizeOf(node.shape)}; use data() or array()`,
      [node.shape],
    );
  }
}

/** The element as item() gives it. */
function element<T extends number | bigint>(data: TypedArray, dtype: DType): T {
  const value = getElement(data, dtype, 0);
  return (typeof value === 'boolean' ? Number(value) : value) as T;
}

export async function readItem<T extends number | bigint = number>(t: Tensor): Promise<T> {
  const node = nodeOf(t, 'item');
  onlyElement('item', node);
  const { dtype } = node;
  return element<T>(await readData(t), dtype);
}

export function readItemSync<T extends number | bigint = number>(t: Tensor): T {
  const node = nodeOf(t, 'itemSync');
  onlyElement('itemSync', node);
  const { dtype } = node;
  return element<T>(readDataSync(t), dtype);
}

export async function printTensor(t: Tensor): Promise<void> {
  const { shape, dtype } = nodeOf(t, 'print');
  const [data, { print }] = await Promise.all([readData(t), import('./printed.ts')]);
  print(data, shape, dtype);
}

export function deviceOf(t: Tensor): string {
  return deviceOfNode(nodeOf(t, 'device'));
}
