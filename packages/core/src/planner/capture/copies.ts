/** Copies of leaves that transfers (runtime/multi-engine.ts) have left on other engines. */
import type { BufferPool, PoolBuffer } from '../../engine/pool.ts';
import type { Node, NodeStorage } from '../../graph/node.ts';
import { viewBase, viewSpan } from './extent.ts';

/** Where a leaf's value is in this pool's engine, or null if it is not there. */
export function storageIn(node: Node, pool: BufferPool): NodeStorage | null {
  const storage = node.storage as NodeStorage;
  const buffer = storage.buffer as PoolBuffer;
  if (buffer.pool === pool || node.shape.includes(0)) return storage;
  if (buffer.copies === null) return null;
  const { strides, offset } = storage.view;
  const from = viewBase(node.shape, strides, offset);
  const to = from + viewSpan(node.shape, strides);
  const copy = buffer.copies.find((c) => c.buffer.pool === pool && pool.lost === null && c.from <= from && c.to >= to);
  return copy === undefined ? null : { buffer: copy.buffer, view: { strides, offset: offset - copy.from } };
}
