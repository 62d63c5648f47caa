/** Values that are there for the taking: neither computed nor read from a device. For consoles, which must change nothing. */
import type { PoolBuffer } from '../engine/pool.ts';
import { isOp, type Node } from '../graph/node.ts';
import type { TypedArray } from '../shape/dtype.ts';
import { hostArrays, setElement } from '../shape/host.ts';
import { type Shape, sizeOf, type View } from '../shape/view.ts';
import { fromDevice, storageBytes } from './host-data.ts';

/** Most bytes that are copied for a few elements far apart. */
const mostBytes = 1 << 20;

/** Where each element lies, row-major, counted in elements of the buffer. */
function places(shape: Shape, { strides, offset }: View): number[] {
  let found = [offset];
  for (const [axis, extent] of shape.entries())
    found = found.flatMap((at) => Array.from({ length: extent }, (_, i) => at + i * (strides[axis] as number)));
  return found;
}

/** The elements of a node, row-major; null where they would have to be computed, waited for, or fetched from a device. */
export function peek(node: Node): TypedArray | null {
  const size = sizeOf(node.shape);
  if (size === 0) return new hostArrays[node.dtype](0);
  if (node.storage === null) {
    if (!isOp(node, 'constant')) return null;
    const values = new hostArrays[node.dtype](size);
    for (let i = 0; i < size; i++) setElement(values, node.dtype, i, node.attr.value);
    return values;
  }
  const { pool, memory } = node.storage.buffer as PoolBuffer;
  const { engine } = pool;
  if (engine.downloadSync === undefined || engine.inHostMemory !== true) return null;
  try {
    const at = places(node.shape, node.storage.view);
    const [least, most] = [Math.min(...at), Math.max(...at)];
    const element = storageBytes(engine, node.dtype);
    const bytes = (most - least + 1) * element;
    if (bytes > mostBytes) return null;
    const binding = { buffer: memory, offset: least * element, bytes };
    const all = fromDevice(engine, node.dtype, engine.downloadSync(binding, new Uint8Array(bytes)), most - least + 1);
    const values = new hostArrays[node.dtype](size) as Int32Array;
    for (const [i, place] of at.entries()) values[i] = (all as Int32Array)[place - least] as number;
    return values;
  } catch {
    // An engine that is gone has no values.
    return null;
  }
}
