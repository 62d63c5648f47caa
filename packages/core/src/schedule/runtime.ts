/**
 * What the rest of the library calls: flushes, reading and uploading, statistics. Connects recorder, plans and engine.
 *
 * A flush finds or makes the plan of what is pending and submits it once; it never waits for the device. Nothing here is
 * re-entrant, and nothing needs to be: engines call nobody back.
 */
import type { IEngine } from '../engine/engine.ts';
import { PolygradError, UnsupportedError } from '../engine/errors.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import { getEngine } from '../engine/registry.ts';
import { bufferNode } from '../graph/build.ts';
import { type Node, nextMark, type NodeStorage } from '../graph/node.ts';
import { contiguous } from '../graph/primitives.ts';
import { finishFlush, pendingHandles, release, retain, setFlushHooks } from '../graph/recorder.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { hostArray } from '../shape/host.ts';
import { isRowMajor, rowMajorStrides, type Shape, sizeOf } from '../shape/view.ts';
import { Cone, type ConeOptions } from './cone.ts';
import { type EngineState, stateOf } from './engine-state.ts';
import { execute } from './execute.ts';
import { fromDevice, storageBytes, toDevice } from './host-data.ts';
import { makePlan } from './plan.ts';

/** Counts since the program started, for one engine; `bytes` is what buffers hold now. */
export interface ScheduleStats {
  readonly flushes: number;
  readonly planHits: number;
  readonly planMisses: number;
  /** Plans held now. */
  readonly plans: number;
  /** Kernels dispatched. */
  readonly kernels: number;
  readonly bytes: number;
}

/** Flushes that may wait in the device before `throttle` waits for them. */
const mostInFlight = 16;
/** Misses after which each further one is reported to the debug log. */
const suspiciousMisses = 64;

const cone = new Cone();
let log: ((message: string) => void) | null = null;

setFlushHooks({
  onLimit: flush,
  onScopeEnd: flush,
  executed: () => {
    const engine = getEngine();
    return { dtypes: engine.caps.dtypes, engine: engine.name };
  },
});

/** Reports why memory was not reused, new plans after many, and the like; null stops it. For finding slow programs. */
export function setScheduleLog(next: ((message: string) => void) | null): void {
  log = next;
}

/** Realises every pending handle's node and submits the work. What nobody holds any more is not computed. */
export function flush(): void {
  const mark = nextMark();
  const wanted: Node[] = [];
  for (const handle of pendingHandles) {
    const { node } = handle;
    if (handle.disposed || node.storage !== null || node.mark === mark) continue;
    node.mark = mark;
    wanted.push(node);
  }
  if (wanted.length > 0) {
    const state = stateOf(getEngine());
    run(state, wanted, state.global);
  }
  finishFlush();
}

/** Realises these nodes; everything else that is pending stays so, except results too dear to compute again. */
export function flushNodes(nodes: readonly Node[]): void {
  const wanted = [...new Set(nodes)].filter((node) => node.storage === null);
  if (wanted.length === 0) return;
  const state = stateOf(getEngine());
  run(state, wanted, state.partial);
}

function run(state: EngineState, wanted: readonly Node[], options: ConeOptions): void {
  state.flushes++;
  try {
    cone.collect(wanted, options);
    const { hash, key } = cone;
    let plan = state.plans.find(hash, key);
    if (plan === undefined) {
      state.planMisses++;
      if (state.planMisses > suspiciousMisses)
        log?.(
          `[plan] miss ${state.planMisses} after ${state.planHits} hits, ${cone.count} nodes: do shapes change at every step?`,
        );
      plan = makePlan(cone, {
        engine: state.engine,
        kernels: state.kernelCache,
        elementBytes: state.elementBytes,
        log: log ?? undefined,
      });
      state.plans.add(hash, key, plan);
    } else state.planHits++;
    execute(plan, cone, state.pool, state.elementBytes);
    state.kernels += plan.dispatches.length;
    state.inFlight++;
    state.pool.age();
  } finally {
    cone.clear();
  }
}

/** Resolves at once, or when the device has caught up if much work is waiting. Loops that never read call it every step. */
export function throttle(): Promise<void> {
  const state = stateOf(getEngine());
  if (state.inFlight < mostInFlight) return Promise.resolve();
  state.idling ??= state.engine.idle().finally(() => {
    state.inFlight = 0;
    state.idling = null;
  });
  return state.idling;
}

/** The node's elements in row-major order in a new host array; computes them first if need be. */
export async function readNode(node: Node): Promise<TypedArray> {
  const size = sizeOf(node.shape);
  if (size === 0) return hostArray(node.dtype, 0);
  const { engine, binding, done } = prepareRead(node, size);
  try {
    const bytes = await engine.download(binding, new Uint8Array(binding.bytes));
    return fromDevice(engine, node.dtype, bytes, size);
  } finally {
    done();
  }
}

/**
 * The same without waiting for a task turn.
 *
 * @throws UnsupportedError where the engine cannot
 */
export function readNodeSync(node: Node): TypedArray {
  const size = sizeOf(node.shape);
  if (size === 0) return hostArray(node.dtype, 0);
  const { engine, binding, done } = prepareRead(node, size);
  try {
    if (engine.downloadSync === undefined) {
      throw new UnsupportedError(
        'dataSync',
        `engine '${engine.name}' cannot read at once: its device answers later; use await t.data()`,
      );
    }
    return fromDevice(engine, node.dtype, engine.downloadSync(binding, new Uint8Array(binding.bytes)), size);
  } finally {
    done();
  }
}

interface Read {
  readonly engine: IEngine;
  readonly binding: { readonly buffer: PoolBuffer['memory']; readonly offset: number; readonly bytes: number };
  /** Lets go of what the read holds. */
  readonly done: () => void;
}

/** Brings the node's value to memory in row-major order and holds it there. */
function prepareRead(node: Node, size: number): Read {
  flushNodes([node]);
  let source = node;
  if (!isRowMajor(node.shape, (node.storage as NodeStorage).view)) {
    source = contiguous(node);
    retain(source);
    try {
      flushNodes([source]);
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
    binding: { buffer: memory, offset: view.offset * element, bytes: size * element },
    done: () => buffer.release(),
  };
}

/** A new leaf with a copy of host data. */
export function uploadNode(data: TypedArray, shape: Shape, dtype: DType): Node {
  const { pool, engine } = stateOf(getEngine());
  const size = sizeOf(shape);
  const buffer = allocForUpload(pool, size * storageBytes(engine, dtype));
  try {
    if (size > 0)
      engine.upload(
        { buffer: buffer.memory, offset: 0, bytes: size * storageBytes(engine, dtype) },
        toDevice(engine, dtype, data),
      );
  } catch (error) {
    buffer.release();
    throw error;
  }
  return bufferNode({ buffer, view: { strides: rowMajorStrides(shape), offset: 0 } }, shape, dtype);
}

/** Memory for new data; when there is none, pending work is done first, so that what it needs can go. */
function allocForUpload(pool: BufferPool, bytes: number): PoolBuffer {
  try {
    return pool.alloc(bytes);
  } catch (error) {
    if (!(error instanceof PolygradError) || error.code !== 'OUT_OF_MEMORY' || pendingHandles.length === 0) throw error;
    flush();
    pool.trim(0);
    return pool.alloc(bytes);
  }
}

/** Name of the engine that holds, or would hold, the node's value. */
export function deviceOf(node: Node): string {
  return node.storage === null ? getEngine().name : (node.storage.buffer as PoolBuffer).pool.engine.name;
}

/** Counts of flushes, plans and kernels on an engine (the current one unless given). */
export function stats(engine: IEngine = getEngine()): ScheduleStats {
  const { flushes, planHits, planMisses, kernels, plans, pool } = stateOf(engine);
  return { flushes, planHits, planMisses, plans: plans.size, kernels, bytes: pool.memory().bytes };
}

/** Forgets all plans of an engine and lets its compiled kernels go. */
export function clearPlans(engine: IEngine = getEngine()): void {
  stateOf(engine).plans.clear();
}
