/**
 * What the rest of the library calls: flushes, reading and uploading, statistics. Connects recorder, plans and engines.
 *
 * A flush finds or makes the plan of what is pending and submits it once; it never waits for the device. What needs data of
 * another engine that cannot be read at once stays pending and goes on by itself (queue.ts). Nothing here is re-entrant, and
 * nothing needs to be: engines call nobody back.
 */
import type { IEngine } from '../engine/engine.ts';
import { OutOfMemoryError, UnsupportedError } from '../engine/errors.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import { noticed, recover } from '../engine/recovery.ts';
import { checkEngine, getEngine } from '../engine/registry.ts';
import { bufferNode } from '../graph/build.ts';
import { type Node, nextMark } from '../graph/node.ts';
import { release, retain } from '../graph/counting.ts';
import { finishFlush } from '../graph/recorder.ts';
import { graph } from '../graph/state.ts';
import { transactions } from '../graph/transactions.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import { hostArray } from '../shape/host.ts';
import { type Shape, sizeOf } from '../shape/view.ts';
import { beginRead, stateOf, takeForOld } from './engine-state.ts';
import { goneError, isGone } from './lost.ts';
import { placeOfNode } from './holding.ts';
import { FlushQueue, type Failure } from './queue.ts';
import { realise } from './realise.ts';
import { download, downloadSync } from './reading.ts';
import { restoreLost, shadow } from './shadow.ts';
import { mostWaits, type Patience } from './run.ts';
import { turn } from './turn.ts';
import { upload } from './upload.ts';

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

/** Flushes that are not finished. */
export const queue: FlushQueue = new FlushQueue(transactions);

/** Flushes that may wait in the device before `throttle` waits for them. */
const mostInFlight = 16;
graph.flush = flushPending;

/** What recording asks for: `GraphState.flush`. */
function flushPending(atLimit: boolean): void {
  if (!atLimit || transactions.rehearsal === null) flush();
}

/**
 * Realises every pending handle's node and submits the work. What nobody holds any more is not computed. What cannot be computed is told
 * once, here, and to whoever reads it; everything else is computed (queue.ts). Where the device says late that it has no memory, the
 * next flush tells (queue.ts).
 *
 * @example
 * const y = ones([2]).add(1);
 * flush(); // the engine has got the work; y.data() waits for it
 */
export function flush(): void {
  const { rehearsal } = transactions;
  if (rehearsal !== null) {
    rehearsal.plan?.(pendingNodes());
    return;
  }
  queue.advance();
  const wanted = pendingNodes();
  let failure: Failure | null = null;
  if (wanted.length > 0) failure = queue.add(wanted);
  else transactions.commit(transactions.current);
  finishFlush();
  failure ??= queue.takeLate();
  if (failure !== null) throw failure.error;
  shadow();
}

const none: readonly Node[] = [];

/** What a flush computes. */
function pendingNodes(): readonly Node[] {
  const mark = nextMark();
  let wanted: Node[] | null = null;
  for (const { node, disposed } of graph.pending) {
    if (disposed || node.storage !== null || node.mark === mark) continue;
    node.mark = mark;
    // Often there is one: its list is no longer than that.
    if (wanted === null) wanted = [node];
    else wanted.push(node);
  }
  return wanted ?? none;
}

/**
 * Resolves at once, or when the device has caught up if much work is waiting. Now and then it lets timers, messages and signals have
 * their turn, as reads do. Loops that never read call it every step.
 *
 * @example
 * for (let step = 0; step < 3; step++) {
 *   scope(() => void ones([2]).add(step));
 *   await throttle();
 * }
 */
export function throttle(): Promise<void> {
  const state = stateOf(getEngine());
  if (state.inFlight < mostInFlight) return turn() ?? Promise.resolve();
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
  await queue.settle();
  const failure = queue.takeLate();
  if (failure !== null) throw failure.error;
  if (stateOf(getEngine()).pool.lost !== null) await recover();
  const engine = getEngine();
  try {
    await engine.idle();
  } catch (error) {
    throw noticed(engine, error);
  }
}

/**
 * The node's elements in row-major order in a new host array; computes them first if need be. Where kernels must be compiled for that,
 * the program goes on meanwhile.
 */
export async function readNode(node: Node): Promise<TypedArray> {
  const size = sizeOf(node.shape);
  if (size === 0) return hostArray(node.dtype, 0);
  const before = beginRead();
  const arrival = tried(node, before, 'kernels');
  if (arrival === null) return inTurn(node);
  retain(node);
  try {
    let waits = 1;
    for (
      let next: Promise<void> | null = arrival;
      next !== null;
      next = tried(node, before, waits++ < mostWaits ? 'kernels' : 'none')
    )
      await next;
    return await inTurn(node);
  } finally {
    release(node);
  }
}

/** The elements of a node in memory, after a turn of the event loop where one is due. */
async function inTurn(node: Node): Promise<TypedArray> {
  const data = await download(node);
  await turn();
  return data;
}

/**
 * The same as `attempt` for a reader; `before` is the newest node of the read before. Where it fails, what is pending beside the node is not
 * left to fail again.
 */
function tried(node: Node, before: number, patience: Patience = 'none'): Promise<void> | null {
  try {
    takeForOld(before);
    return attempt(node, patience);
  } catch (error) {
    // What is kept for later reads may be what there is no room for.
    if (error instanceof OutOfMemoryError && before > 0) return tried(node, 0, patience);
    // What a flush said of it that was put off says more.
    const late = error instanceof OutOfMemoryError ? queue.takeLate() : null;
    throw queue.giveUp(node, late === null ? error : late.error);
  } finally {
    takeForOld(0);
  }
}

/**
 * Computes a node as far as that is possible now; null if it is in memory. Throws DeviceLostError if it was and is gone.
 */
function attempt(node: Node, patience: Patience): Promise<void> | null {
  if (node.storage !== null) {
    if ((node.storage.buffer as PoolBuffer).pool.lost === null || !isGone(node)) return null;
    // What is protected comes back with another engine.
    const underway = recover();
    if (underway !== null) return underway;
    restoreLost();
    if (isGone(node)) throw goneError(node);
    return null;
  }
  queue.advance(patience === 'none' ? patience : 'memory');
  if (queue.isPutOff) return queue.settlePutOff();
  return node.storage === null ? realise([node], { told: true, patience, transaction: transactions.current }) : null;
}

/**
 * The same without waiting for a task turn.
 *
 * @throws UnsupportedError where the engine cannot
 */
export function readNodeSync(node: Node): TypedArray {
  const size = sizeOf(node.shape);
  if (size === 0) return hostArray(node.dtype, 0);
  if (tried(node, beginRead()) !== null) {
    throw new UnsupportedError(
      'dataSync',
      `a value on engine '${placeOfNode(node)}' needs data of another engine, which answers later; use await t.data()`,
    );
  }
  return downloadSync(node);
}

/** A new leaf with a copy of host data, on the engine that holds its dtype. */
export function uploadNode(data: TypedArray, shape: Shape, dtype: DType): Node {
  return bufferNode(upload(data, shape, dtype, makeRoom), shape, dtype);
}

/** Pending work is done, so that what it needs can go. */
function makeRoom(pool: BufferPool): void {
  if (graph.pending.length > 0) flush();
  pool.trim(0);
}

/** Name of the engine that holds, or would hold, the node's value. */
export function deviceOf(node: Node): string {
  return node.storage === null ? placeOfNode(node) : (node.storage.buffer as PoolBuffer).pool.engine.name;
}

/**
 * Counts of flushes, plans and kernels on an engine (the current one unless given).
 *
 * @example
 * flush();
 * const before = stats();
 * // ... a training step; stats() again says how many kernels it ran
 */
export function stats(engine: IEngine = getEngine()): ScheduleStats {
  checkEngine('stats', engine);
  const { flushes, planHits, planMisses, kernels, plans, pool } = stateOf(engine);
  return { flushes, planHits, planMisses, plans: plans.size, kernels, bytes: pool.memory().bytes };
}

/**
 * Forgets all plans of an engine and lets its compiled kernels go.
 *
 * @example
 * clearPlans();
 */
export function clearPlans(engine: IEngine = getEngine()): void {
  checkEngine('clearPlans', engine);
  stateOf(engine).plans.clear();
}
