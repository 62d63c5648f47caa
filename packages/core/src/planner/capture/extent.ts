/** Which elements of a buffer a strided view touches. */
import type { BufferPool, PoolBuffer } from '../../engine/pool.ts';
import type { Node, NodeStorage } from '../../graph/node.ts';

/** First element of the buffer that a view of this shape touches. */
export function viewBase(shape: readonly number[], strides: readonly number[], offset: number): number {
  let base = offset;
  for (let axis = 0; axis < shape.length; axis++) {
    const stride = strides[axis]!;
    if (stride < 0) base += stride * (shape[axis]! - 1);
  }
  return base;
}

/** Elements from the first to the last one that a view of this shape touches; 0 for shapes without elements. */
export function viewSpan(shape: readonly number[], strides: readonly number[]): number {
  let span = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    const n = shape[axis]!;
    if (n === 0) return 0;
    span += Math.abs(strides[axis]!) * (n - 1);
  }
  return span;
}

// Copies of leaves that transfers (runtime/multi-engine.ts) have left on other engines.

/** Where a leaf's value is in this pool's engine, or null if it is not there. */
export function storageIn(node: Node, pool: BufferPool): NodeStorage | null {
  const storage = node.storage!;
  const buffer = storage.buffer as PoolBuffer;
  if (buffer.pool === pool || node.shape.includes(0)) return storage;
  if (buffer.copies === null) return null;
  const { strides, offset } = storage.view;
  const from = viewBase(node.shape, strides, offset);
  const to = from + viewSpan(node.shape, strides);
  const copy = buffer.copies.find((c) => c.buffer.pool === pool && pool.lost === null && c.from <= from && c.to >= to);
  return copy === undefined ? null : { buffer: copy.buffer, view: { strides, offset: offset - copy.from } };
}
