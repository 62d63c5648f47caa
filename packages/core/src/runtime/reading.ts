/** Copies of values in memory to the host, row-major, on whatever engine they are. */
import type { IEngine } from '../engine/engine.ts';
import { UnsupportedError } from '../engine/errors.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import { noticed } from '../engine/recovery.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { contiguous } from '../graph/primitives.ts';
import { release, retain } from '../graph/counting.ts';
import type { TypedArray } from '../shape/dtype.ts';
import { isRowMajor, sizeOf } from '../shape/view.ts';
import { stateOf } from './engine-state.ts';
import { fromDevice, storageBytes } from './host-data.ts';
import { missingCode, mostWaits, run } from './run.ts';

interface Read {
  readonly engine: IEngine;
  readonly binding: { readonly buffer: PoolBuffer['memory']; readonly offset: number; readonly bytes: number };
  /** Lets go of what the read holds. */
  readonly done: () => void;
}

/**
 * The elements of a node in memory. The read is in the device's order before this returns, unless a kernel that brings it to row-major
 * order must be compiled: then as soon as that is done, and nobody changes the node until then.
 */
export async function download(node: Node): Promise<TypedArray> {
  let read = prepareRead(node, true);
  if ('then' in read) {
    retain(node);
    try {
      for (let waits = 1; 'then' in read; read = prepareRead(node, waits++ < mostWaits)) await read;
    } finally {
      release(node);
    }
  }
  const { engine, binding, done } = read;
  try {
    const bytes = await engine.download(binding, new Uint8Array(binding.bytes));
    return fromDevice(engine, node.dtype, bytes, sizeOf(node.shape));
  } catch (error) {
    throw noticed(engine, error);
  } finally {
    done();
  }
}

/** The same at once. Throws UnsupportedError where the engine cannot. */
export function downloadSync(node: Node): TypedArray {
  const read = prepareRead(node, false);
  if ('then' in read) throw missingCode(read);
  const { engine, binding, done } = read;
  try {
    if (engine.downloadSync === undefined) {
      throw new UnsupportedError(
        'dataSync',
        `engine '${engine.name}' cannot read at once: its device answers later; use await t.data()`,
      );
    }
    const bytes = engine.downloadSync(binding, new Uint8Array(binding.bytes));
    return fromDevice(engine, node.dtype, bytes, sizeOf(node.shape));
  } catch (error) {
    throw noticed(engine, error);
  } finally {
    done();
  }
}

/**
 * Brings the value of a node in memory to row-major order, on the engine that has it, and holds it there. If `patient`, a promise of when to
 * try again where a kernel for that is still being compiled.
 */
function prepareRead(node: Node, patient: boolean): Read | Promise<void> {
  let source = node;
  if (!isRowMajor(node.shape, (node.storage as NodeStorage).view)) {
    source = contiguous(node);
    retain(source);
    try {
      const state = stateOf(((node.storage as NodeStorage).buffer as PoolBuffer).pool.engine);
      const done = run(state, [source], state.partial, patient ? 'kernels' : 'none');
      if (typeof done !== 'boolean') {
        release(source);
        return done;
      }
    } catch (error) {
      release(source);
      throw error;
    }
  }
  const { buffer, view } = source.storage as NodeStorage;
  const { pool, memory } = buffer as PoolBuffer;
  const element = storageBytes(pool.engine, node.dtype);
  buffer.retain();
  if (source !== node) release(source);
  return {
    engine: pool.engine,
    binding: { buffer: memory, offset: view.offset * element, bytes: sizeOf(node.shape) * element },
    done: () => buffer.release(),
  };
}
