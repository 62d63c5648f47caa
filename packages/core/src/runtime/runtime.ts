/**
 * The runtime: all state that changes while a program records and runs, and the functions on it besides reading (reading.ts)
 * and uploading (upload.ts): flushes, waiting, statistics.
 *
 * A flush finds or makes the plan of what is pending and submits it once; it never waits for the device. Work that needs data of
 * another engine that cannot be read at once stays pending and continues later (queue.ts). Nothing here is re-entrant, and
 * nothing needs to be, because engines make no callbacks.
 */
import type { IEngine, Logger } from '../engine/engine.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import { DeviceLostError } from '../engine/errors.ts';
import { noticed } from '../engine/registry.ts';
import {
  checkEngine,
  currentEngine,
  type Engines,
  engines,
  getEngine,
  newEngines,
  useEngines,
} from '../engine/registry.ts';
import { type Node, nextMark } from '../graph/node.ts';
import { finishFlush } from '../graph/recorder.ts';
import { GraphState, graph, leastBytes, useGraph } from '../graph/state.ts';
import { TransactionLog, transactions, useTransactions } from '../graph/transactions.ts';
import { Copies, copies, useCopies } from './copies.ts';
import { inTime, recover } from './late.ts';
import { newFamilies } from '#families';
import { codeOnItsWay, forgetPlans, loops, planOf, stateOf } from './run.ts';
import { RunState, runs, useRuns, type EngineState } from './state.ts';
import { placeOfNode } from './placement.ts';
import type { CaptureOptions } from '../planner/capture/captured-graph.ts';
import type { Failure } from './flush-entry.ts';
import { FlushQueue, queue, useQueue } from './queue.ts';
import { download, turn } from './reading.ts';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFunction, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';

/** Counts since the program started, for one engine; `bytes` is what buffers hold now. */
export interface ScheduleStats {
  readonly flushes: number;
  readonly planHits: number;
  readonly planMisses: number;
  /** Plans made, for one size or a class of sizes. A miss without a new plan was bound to the plan of its class. */
  readonly plansMade: number;
  /** Plans loaded that an earlier process made (`usePlanCache`). */
  readonly plansLoaded: number;
  /** Plans held now. */
  readonly plans: number;
  /** Plans made for a class of sizes, and how often one was bound to a new size. */
  readonly families: number;
  readonly binds: number;
  /** Milliseconds spent on making plans and their kernels. */
  readonly planning: number;
  /** Kernels dispatched. */
  readonly kernels: number;
  /** Calls of compiled functions that replayed a recording, and recordings held (`compile`). */
  readonly replays: number;
  readonly recordings: number;
  readonly bytes: number;
}

/**
 * All state that changes while a program records and runs; each room defines its part. One runtime is in use; tests make
 * others. Not included are facts about one object by its identity (the memory of an engine, its loss) and counters that only need
 * to be unique. Neither are loaded code and hints to the garbage collector, which a program has once.
 */
export interface Runtime {
  /** Recorded and pending nodes, scopes, tapes, and the generator of random keys. */
  readonly graph: GraphState;
  /** The log of assignments. */
  readonly transactions: TransactionLog;
  /** The current engine, and the others. */
  readonly engines: Engines;
  /** Plans and counts of engines. */
  readonly runs: RunState;
  /** Unfinished flushes. */
  readonly queue: FlushQueue;
  /** Copies of tensors that survive a lost device. */
  readonly copies: Copies;
}

/** An empty runtime: nothing is recorded, and no engine is set. It knows the backends that the program has imported. */
export function createRuntime(): Runtime {
  const log = new TransactionLog();
  const fresh = new GraphState();
  fresh.flush = flushPending;
  fresh.engineLimit = engineLimit;
  return {
    graph: fresh,
    transactions: log,
    engines: newEngines(),
    runs: new RunState(),
    queue: new FlushQueue(log),
    copies: new Copies(),
  };
}

/**
 * Puts another runtime in use and returns the one before. Tensors belong to the runtime they were made in, and so does work in flight:
 * `await idle()` first.
 */
export function useRuntime(next: Runtime): Runtime {
  const before = { graph, transactions, engines, runs, queue, copies };
  if (queue.states.length > 0 || runs.transfers.size > 0 || engines.underway !== null)
    throw new Error('[useRuntime] flushes of the runtime in use are not finished; await idle() first');
  useGraph(next.graph);
  useTransactions(next.transactions);
  useEngines(next.engines);
  useRuns(next.runs);
  useQueue(next.queue);
  useCopies(next.copies);
  return before;
}

/** Most flushes in flight before `throttle` waits for them. */
const mostInFlight = 16;
/** Most bytes of pending results for an engine that does not know its memory. */
const limitUnknown = 512 * 2 ** 20;
graph.flush = flushPending;
graph.engineLimit = engineLimit;

/** An eighth of the engine's memory: then pending results, computed ones and temporaries fit together. `GraphState.engineLimit`. */
function engineLimit(): number {
  const bytes = currentEngine()?.caps.memoryBytes;
  return bytes === undefined ? limitUnknown : Math.max(leastBytes, bytes / 8);
}

/** Called by recording: `GraphState.flush`. */
function flushPending(atLimit: boolean): void {
  if (!atLimit || transactions.rehearsal === null) flush();
}

/**
 * Realises the nodes of all pending handles and submits the work. Unreachable results are not computed. What cannot be computed is
 * reported once, here, and to its readers; everything else is computed (queue.ts). If the device reports late that it is out of memory, the
 * next flush throws. If the engine is disposed, the flush throws, and its work is left to readers: they compute it after `setEngine`.
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
  queue.tell();
  queue.advance();
  const wanted = pendingNodes();
  let failure: Failure | null = null;
  if (wanted.length > 0) failure = queue.add(wanted);
  else transactions.commit(transactions.current);
  finishFlush();
  failure ??= queue.takeLate();
  // After a loss, what happened to protected tensors matters most.
  if (failure === null || failure.error instanceof DeviceLostError) queue.tell();
  if (failure !== null) throw failure.error;
  copies.keeper?.shadow(download);
  queue.tell();
}

const none: readonly Node[] = [];

/** The nodes that a flush computes. */
function pendingNodes(): readonly Node[] {
  const mark = nextMark();
  let wanted: Node[] | null = null;
  const { pending } = graph;
  for (let i = 0; i < pending.length; i++) {
    const { node, disposed } = pending[i]!;
    if (disposed || node.storage !== null || node.mark === mark) continue;
    node.mark = mark;
    // The list often has one node, so it is not allocated larger.
    if (wanted === null) wanted = [node];
    else wanted.push(node);
  }
  return wanted ?? none;
}

/**
 * Resolves at once, or when the device has caught up if much work is waiting. Now and then it gives timers, messages and signals a
 * turn, as reads do. Loops that never read should call it every step.
 *
 * @example
 * for (let step = 0; step < 3; step++) {
 *   scope(() => void ones([2]).add(step));
 *   await throttle();
 * }
 */
export function throttle(): Promise<void> {
  let state = stateOf(getEngine());
  for (const other of runs.placer?.others() ?? []) if (other.inFlight > state.inFlight) state = other;
  if (state.inFlight < mostInFlight) return (turn() ?? Promise.resolve()).then(() => queue.tell());
  state.idling ??= idle().finally(() => {
    state.inFlight = 0;
    state.idling = null;
  });
  return state.idling;
}

/**
 * Resolves when everything submitted so far is done, including transfers between engines and work that waits for them. Operations that are
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
  const current = stateOf(getEngine());
  for (const state of [current, ...(runs.placer?.others() ?? [])]) {
    const { engine, inFlight } = state;
    // A device that was idle before, with nothing submitted since, is still idle.
    if (state !== current && inFlight === 0) continue;
    try {
      await inTime(state, engine.idle(), 'the work before idle()');
    } catch (error) {
      throw noticed(engine, error);
    }
    state.inFlight = Math.max(0, state.inFlight - inFlight);
  }
  queue.tell();
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
  const {
    flushes,
    planHits,
    planMisses,
    kernels,
    plans,
    pool,
    families,
    planning,
    madePlans,
    keptPlans,
    replays = 0,
    recordings = 0,
  } = stateOf(engine);
  const { size = 0, binds = 0 } = families ?? {};
  const { bytes } = pool.memory();
  return {
    flushes,
    planHits,
    planMisses,
    plansMade: madePlans,
    plansLoaded: keptPlans,
    plans: plans.size,
    families: size,
    binds,
    planning,
    kernels,
    replays,
    recordings,
    bytes,
  };
}

/**
 * Whether sizes share plans. `automatic`: when a computation recurs with another size, one plan is made for a class of sizes, such
 * as 128 to 255. A new size of the class is only bound to it. `never`: every size has its own plan. `always`, for tests:
 * even the first flush of a computation is bound to a plan for the class of one of its extents. In bundles for browsers it acts as `automatic`.
 *
 * Both may give different bits, because sums may be taken in another order. A size keeps its plan as long as the plan is kept.
 *
 * @throws ArgumentError for anything else
 *
 * @example
 * setDynamicSizes('never'); // a benchmark of one size after the other
 * setDynamicSizes('automatic');
 */
export function setDynamicSizes(mode: 'automatic' | 'always' | 'never'): void {
  if (mode !== 'automatic' && mode !== 'always' && mode !== 'never')
    throw new ArgumentError('setDynamicSizes', say`the mode is 'automatic', 'always' or 'never'; got ${shown(mode)}`);
  runs.dynamicSizes = mode;
}

/**
 * Sets who receives hints about lost time: so far, that a computation makes plan after plan because its shapes change.
 * Each engine gives that hint once. The default is `console.warn`; in bundles for browsers, and in Node with `NODE_ENV=production`, there is no logger.
 *
 * @param logger a function that takes a text; null for none
 * @throws ArgumentError for anything else
 *
 * @example
 * setLogger((text) => console.info(text));
 * setLogger(null); // silence
 */
export function setLogger(logger: Logger | null): void {
  if (logger !== null) checkFunction('setLogger', logger);
  runs.logger = logger;
}

/**
 * Drops all plans of an engine, and its compiled kernels.
 *
 * @example
 * clearPlans();
 */
export function clearPlans(engine: IEngine = getEngine()): void {
  checkEngine('clearPlans', engine);
  forgetPlans(stateOf(engine));
}

/**
 * Makes the plan that `run` would run, if one engine suffices: nothing is computed, and nodes stay as they are. Returns a promise if code for it is being
 * loaded.
 */
export function prepare(state: EngineState, wanted: readonly Node[], options: CaptureOptions): Promise<void> | null {
  const { captured } = runs;
  try {
    if (captured.collect(wanted, options)) {
      if (captured.key.looped) return loops!(state, wanted, options) as Promise<void> | null;
      planOf(state, captured);
    }
    return null;
  } catch (error) {
    return codeOnItsWay(error, state, []);
  } finally {
    captured.clear();
  }
}

/** Tells families of the nodes' form, which is to run later (`PlanFamilies.announce`). */
export function announceTo(state: EngineState, wanted: readonly Node[], options: CaptureOptions): void {
  const { captured } = runs;
  try {
    if (!captured.collect(wanted, options) || captured.key.looped || state.plans.find(captured.key) !== undefined)
      return;
    state.families ??= newFamilies();
    state.families?.announce(captured);
  } finally {
    captured.clear();
  }
}
