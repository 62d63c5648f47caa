/**
 * What the rest of the library calls: flushes, reading and uploading, statistics. Connects recorder, plans and engines.
 *
 * A flush finds or makes the plan of what is pending and submits it once; it never waits for the device. What needs data of
 * another engine that cannot be read at once stays pending and goes on by itself (waiting.ts). Nothing here is re-entrant, and
 * nothing needs to be: engines call nobody back.
 */
import type { IEngine } from '../engine/engine.ts';
import { PolygradError, UnsupportedError } from '../engine/errors.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import { getEngine } from '../engine/registry.ts';
import { bufferNode } from '../graph/build.ts';
import { type Node, nextMark, type NodeStorage } from '../graph/node.ts';
import { contiguous } from '../graph/primitives.ts';
import { finishFlush, pendingHandles, release, retain, setFlushHooks } from '../graph/recorder.ts';
import { isRehearsing } from '../graph/rehearsal.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { hostArray } from '../shape/host.ts';
import { isRowMajor, rowMajorStrides, type Shape, sizeOf } from '../shape/view.ts';
import { stateOf } from './engine-state.ts';
import { fromDevice, storageBytes, toDevice } from './host-data.ts';
import { advance, engineFor, placeOfNode } from './placement.ts';
import { run } from './run.ts';
import { isWaiting, resume, settle, wait } from './waiting.ts';

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
/** What a flush does instead while a function is rehearsed (warmup.ts). */
let rehearsedFlush: () => void = () => undefined;
setFlushHooks({
  onLimit: () => {
    if (!isRehearsing()) flush();
  },
  onScopeEnd: flush,
});

/** Connects warmup.ts. */
export function setRehearsedFlush(next: () => void): void {
  rehearsedFlush = next;
}

/** Realises every pending handle's node and submits the work. What nobody holds any more is not computed. */
export function flush(): void {
  if (isRehearsing()) {
    rehearsedFlush();
    return;
  }
  if (isWaiting()) resume();
  const mark = nextMark();
  const wanted: Node[] = [];
  for (const handle of pendingHandles) {
    const { node } = handle;
    if (handle.disposed || node.storage !== null || node.mark === mark) continue;
    node.mark = mark;
    wanted.push(node);
  }
  if (wanted.length > 0) {
    const arrival = advance(wanted, 'global');
    if (arrival !== null) waitFor(wanted, arrival);
  }
  finishFlush();
}

function waitFor(wanted: readonly Node[], arrival: Promise<void>): void {
  // Counts as work in flight, so that loops come to a halt in throttle() when nothing else does it.
  stateOf(getEngine()).inFlight++;
  wait(
    wanted.filter((node) => node.storage === null),
    arrival,
  );
}

/**
 * Realises these nodes; everything else that is pending stays so, except results too dear to compute again. Nodes that must wait for
 * another engine are realised when its data has arrived.
 */
export function flushNodes(nodes: readonly Node[]): void {
  const wanted = [...new Set(nodes)].filter((node) => node.storage === null);
  if (wanted.length === 0) return;
  if (isWaiting()) resume();
  const arrival = advance(wanted, 'partial');
  if (arrival !== null) waitFor(wanted, arrival);
}

/** Resolves at once, or when the device has caught up if much work is waiting. Loops that never read call it every step. */
export function throttle(): Promise<void> {
  const state = stateOf(getEngine());
  if (state.inFlight < mostInFlight) return Promise.resolve();
  state.idling ??= idle().finally(() => {
    state.inFlight = 0;
    state.idling = null;
  });
  return state.idling;
}

/**
 * Resolves when everything submitted so far is done, transfers between engines and what waits for them included. Operations that are
 * only recorded are not started: call flush() first.
 *
 * @example
 * flush();
 * await idle(); // nothing runs any more: a good moment to look at a clock
 */
export async function idle(): Promise<void> {
  const engine = getEngine();
  await settle();
  await engine.idle();
}

/** The node's elements in row-major order in a new host array; computes them first if need be. */
export async function readNode(node: Node): Promise<TypedArray> {
  const size = sizeOf(node.shape);
  if (size === 0) return hostArray(node.dtype, 0);
  const arrival = attempt(node);
  if (arrival === null) return download(node, size);
  retain(node);
  try {
    for (let next: Promise<void> | null = arrival; next !== null; next = attempt(node)) await next;
    return await download(node, size);
  } finally {
    release(node);
  }
}

async function download(node: Node, size: number): Promise<TypedArray> {
  const { engine, binding, done } = prepareRead(node, size);
  try {
    const bytes = await engine.download(binding, new Uint8Array(binding.bytes));
    return fromDevice(engine, node.dtype, bytes, size);
  } finally {
    done();
  }
}

/** Computes a node as far as that is possible now; null if it is in memory. */
function attempt(node: Node): Promise<void> | null {
  if (node.storage !== null) return null;
  if (isWaiting()) resume();
  return node.storage === null ? advance([node], 'partial') : null;
}

/**
 * The same without waiting for a task turn.
 *
 * @throws UnsupportedError where the engine cannot
 */
export function readNodeSync(node: Node): TypedArray {
  const size = sizeOf(node.shape);
  if (size === 0) return hostArray(node.dtype, 0);
  if (attempt(node) !== null) {
    throw new UnsupportedError(
      'dataSync',
      `a value on engine '${placeOfNode(node)}' needs data of another engine, which answers later; use await t.data()`,
    );
  }
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

/** Brings the value of a node in memory to row-major order, on the engine that has it, and holds it there. */
function prepareRead(node: Node, size: number): Read {
  let source = node;
  if (!isRowMajor(node.shape, (node.storage as NodeStorage).view)) {
    source = contiguous(node);
    retain(source);
    try {
      const state = stateOf(((node.storage as NodeStorage).buffer as PoolBuffer).pool.engine);
      run(state, [source], state.partial);
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

/** A new leaf with a copy of host data, on the engine that holds its dtype. */
export function uploadNode(data: TypedArray, shape: Shape, dtype: DType): Node {
  const { pool, engine } = stateOf(engineFor('tensor', dtype));
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
  return node.storage === null ? placeOfNode(node) : (node.storage.buffer as PoolBuffer).pool.engine.name;
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
