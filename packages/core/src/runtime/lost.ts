/** Values that lived on a device that is lost: whether another engine has a copy, and what is said where none has. */
import { DeviceLostError } from '../engine/errors.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { showShape } from '../shape/errors.ts';
import { storageIn } from '../planner/capture/copies.ts';

/** True if a leaf's value is gone. One that another engine has a copy of lives there from now on. */
export function isGone(leaf: Node): boolean {
  const { buffer: counted } = leaf.storage as NodeStorage;
  const buffer = counted as PoolBuffer;
  if (buffer.pool.lost === null || leaf.shape.includes(0)) return false;
  for (const { buffer: copy } of buffer.copies ?? []) {
    const there = copy.pool.lost === null ? storageIn(leaf, copy.pool) : null;
    if (there === null) continue;
    there.buffer.retain();
    leaf.storage = there;
    buffer.release();
    return false;
  }
  return true;
}

/** The error for whoever asks for a value that is gone. */
export function goneError({ shape, dtype, op, storage }: Node): DeviceLostError {
  const lost = ((storage as NodeStorage).buffer as PoolBuffer).pool.lost as DeviceLostError;
  const made = op === 'buffer' ? 'made from data' : `made by '${op}'`;
  return new DeviceLostError(
    lost.engine,
    lost.device,
    `${lost.reason}; ${dtype} ${showShape(shape)} ${made} lived only there`,
    { cause: lost },
  );
}
