/** Host data becomes leaves: on the engine that holds the dtype, or on one with room and a working device. */
import type { IEngine } from '../engine/engine.ts';
import { DeviceLostError, OutOfMemoryError } from '../engine/errors.ts';
import { type BufferPool, type PoolBuffer, storageBytes, toDevice } from '../engine/pool.ts';
import { noticed } from '../engine/registry.ts';
import { cpuEngine, engines, getEngine } from '../engine/registry.ts';
import { noteRange } from '../graph/known-range.ts';
import { bufferNode } from '../graph/primitives.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import type { DType, TypedArray } from '@polygrad/compiler/shape/dtype';
import { rowMajorStrides, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { recover } from './late.ts';
import { stateOf } from './run.ts';
import { runs } from './state.ts';
import { engineFor } from './placement.ts';

/** A new leaf with a copy of host data, on the engine that holds its dtype. */
export function uploadNode(data: TypedArray, shape: Shape, dtype: DType): Node {
  const leaf = bufferNode(upload(data, shape, dtype, makeRoom), shape, dtype);
  noteRange(leaf, data);
  graph.observer?.upload(leaf, data);
  return leaf;
}

/** Flushes pending work, so that memory it needs is freed. */
function makeRoom(pool: BufferPool): void {
  if (graph.pending.length > 0) graph.flush(false);
  pool.trim(0);
}

/** Memory with a copy of host data. Calls `makeRoom` if there is none left. */
export function upload(
  data: TypedArray,
  shape: Shape,
  dtype: DType,
  makeRoom: (pool: BufferPool) => void,
): NodeStorage {
  const on = (engine: IEngine): NodeStorage => place(stateOf(engine).pool, data, shape, dtype, makeRoom);
  const engine = working(dtype);
  try {
    return on(engine);
  } catch (error) {
    noticed(engine, error);
    if (error instanceof DeviceLostError) return on(working(dtype));
    const cpu = cpuEngine();
    const other = error instanceof OutOfMemoryError && engines.policy.outOfMemory === 'cpu' && cpu !== engine;
    if (!other || cpu === null || 'then' in cpu) throw error;
    return on(cpu);
  }
}

/** The engine for a dtype; while a lost one is being replaced, the CPU engine. */
function working(dtype: DType): IEngine {
  const underway = recover();
  if (underway === null) return engineFor('tensor', dtype);
  const cpu = cpuEngine();
  if (cpu !== null && !('then' in cpu)) return cpu;
  const lost = stateOf(getEngine()).pool.lost!;
  throw new DeviceLostError(
    lost.engine,
    lost.device,
    `${lost.reason}; another engine is starting, await idle() first`,
    {
      cause: lost,
    },
  );
}

function place(
  pool: BufferPool,
  data: TypedArray,
  shape: Shape,
  dtype: DType,
  makeRoom: (pool: BufferPool) => void,
): NodeStorage {
  const { engine } = pool;
  const bytes = sizeOf(shape) * storageBytes(engine, dtype);
  let buffer: PoolBuffer;
  try {
    buffer = pool.alloc(bytes);
  } catch (error) {
    if (!(error instanceof OutOfMemoryError)) throw error;
    makeRoom(pool);
    buffer = pool.alloc(bytes);
  }
  try {
    if (bytes > 0) runs.upload(engine, { buffer: buffer.memory, offset: 0, bytes }, toDevice(engine, dtype, data));
  } catch (error) {
    buffer.release();
    throw error;
  }
  return { buffer, view: { strides: rowMajorStrides(shape), offset: 0 } };
}
