/**
 * Work that the current engine cannot do alone: dtypes that it does not hold, data of other engines, devices that are full.
 *
 * The placer (`Placer`) says on which engine a node is computed. Without one it is the current engine if that holds the dtypes
 * of the node and its sources, else the CPU engine. Nodes are grouped by engine and by how often the path to them crosses
 * engines. Each group is one run, which stores what other groups read. If data must come from an engine that cannot read
 * synchronously, the nodes that need it wait.
 *
 * Pages load this only when they need it (queue.ts).
 */
import type { IEngine } from '../engine/engine.ts';
import { cpuEngine } from '../engine/registry.ts';
import { type Node, nextMark, realise } from '../graph/node.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { storageIn } from '../planner/capture/captured-graph.ts';
import { stateOf, run } from './run.ts';
import { runs, type EngineState } from './state.ts';
import { heldByNone, holds, isFree, needed, noCpu, goneError, isGone, open } from './placement.ts';
import { quiet } from './late.ts';
import type { Attempt } from './flush-entry.ts';
import type { BufferPool, PoolBuffer } from '../engine/pool.ts';
import { bring, isWithinReach } from './transfers.ts';

/**
 * `realise` for work that the current engine, which is not lost, cannot do alone.
 *
 * @param full the current engine is out of memory: everything is computed on the CPU engine
 */
export function realiseSplit(
  wanted: readonly Node[],
  current: EngineState,
  full: boolean,
  attempt: Attempt,
): Promise<void> | null {
  try {
    const done = full ? false : onAnother(wanted, attempt);
    if (done !== false) return done === true ? null : done;
    for (let left = wanted; ; left = open(wanted)) {
      const missing = runGroups(cut(left, current, attempt.told === true, full), current, attempt);
      if (missing !== 'here') return missing;
    }
  } catch (error) {
    if (error instanceof Waiting) return quiet(error.until);
    throw error;
  }
}

/** Tries to compute all of it on one other engine, before the work is cut. */
function onAnother(wanted: readonly Node[], attempt: Attempt): boolean | Promise<void> {
  const { placer } = runs;
  for (const state of placer?.others() ?? []) {
    if (state.pool.lost !== null || state.pool.disposed) continue;
    const done = allOn(state, wanted, attempt);
    if (done === true) placer!.learn(wanted, state);
    if (done !== false) return done;
  }
  return false;
}

/** Computes all of it on another engine. False, with nothing done, where the placer or the engine refuses. */
function allOn(state: EngineState, wanted: readonly Node[], attempt: Attempt): boolean | Promise<void> {
  const { everything, patience, told } = attempt;
  const { placer } = runs;
  try {
    return run(state, wanted, everything ? state.global : state.partial, patience, told === true, placer);
  } catch (error) {
    // Work that the engine refuses is cut. If the engine was lost by this, that is known here.
    if (state.pool.lost === null && !placer!.takes(error, state)) throw error;
    return false;
  }
}

/** `realise` on the engine that computed all of such work before. False, with nothing done, if the placer now says another. */
export function realiseAgain(wanted: readonly Node[], attempt: Attempt): boolean | Promise<void> {
  const { placer } = runs;
  const state = placer?.likely(wanted) ?? null;
  if (state === null) return false;
  const done = allOn(state, wanted, attempt);
  if (done === false) placer!.learn(wanted, null);
  return done;
}

/** The engine for a node whose own engine lacks a dtype; an error if no engine has it. Throws Waiting. */
function fallback(node: Node, { engine: first }: EngineState): EngineState | Error {
  const lacks = ({ caps }: IEngine): DType | undefined =>
    [node, ...node.src].map((n) => n.dtype).find((d) => !caps.dtypes.has(d));
  const engine = cpuEngine();
  if (engine === null) return noCpu('flush', lacks(first) ?? node.dtype, first);
  if ('then' in engine) throw new Waiting(engine);
  const missing = lacks(engine);
  return missing === undefined ? stateOf(engine) : heldByNone('flush', missing, first, engine);
}

/** The engine for a node meant for another, which may be unable to compute it. */
function placeFor(node: Node, meant: EngineState, full: boolean): EngineState | Error {
  const { placer } = runs;
  const { lost, disposed } = meant.pool;
  const held = holds(meant.engine, node);
  if (!full && held && lost === null && !disposed && !placer?.refuses(meant, node)) return meant;
  const place = fallback(node, meant);
  if (placer !== null && !full && !held && !(place instanceof Error)) {
    const dtype = [node, ...node.src].map((n) => n.dtype).find((d) => !meant.engine.caps.dtypes.has(d));
    placer.fallBack(meant, `it does not hold ${dtype}`, [node]);
  }
  return place;
}

/** Thrown while the CPU engine, or code for it, is being loaded. */
class Waiting extends Error {
  readonly until: Promise<unknown>;

  constructor(until: Promise<unknown>) {
    super('[flush] the cpu engine, or data for it, is on its way');
    this.until = until;
  }
}

/** A leaf or a computed node that an engine reads and another one holds. */
interface Crossing {
  readonly node: Node;
  readonly to: EngineState;
}

/** Nodes computed in one run, and what must be transferred before. */
interface Group {
  readonly state: EngineState;
  readonly wanted: Node[];
  readonly needs: Crossing[];
  /** Nodes that equal their source on this engine, so that nothing is computed. */
  readonly moved: Node[];
}

interface Cut {
  /** In order of execution. */
  readonly groups: readonly Group[];
  /** What waiting nodes need from engines that cannot read at once, once all groups have run. */
  readonly transfers: readonly Crossing[];
  /** Leaves that several engines read. */
  readonly shared: ReadonlySet<Node>;
  /** True if some of the wanted nodes must wait for a transfer. */
  readonly waiting: boolean;
}

/** The unrealised nodes below the wanted ones, and the leaves they end in, sources first; numbered by `index`. */
function below(wanted: readonly Node[]): readonly Node[] {
  const mark = nextMark();
  const order: Node[] = [];
  const stack: { readonly node: Node; at: number }[] = [];
  for (const root of wanted) {
    if (root.mark === mark) continue;
    stack.push({ node: root, at: 0 });
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const { node } = top;
      const source = node.storage === null ? node.src[top.at++] : undefined;
      if (source === undefined) {
        stack.pop();
        if (node.mark === mark) continue;
        node.mark = mark;
        node.index = order.push(node) - 1;
      } else if (source.mark !== mark) stack.push({ node: source, at: 0 });
    }
  }
  return order;
}

/** Why a node cannot be computed in this flush: it can; it needs data that is on its way; no engine can compute it. */
const missing = { nothing: 0, data: 1, ever: 2 } as const;

/** `told`: nodes that cannot be computed are an error. */
function cut(wanted: readonly Node[], current: EngineState, told: boolean, full: boolean): Cut {
  const order = below(wanted);
  const assigned = full || runs.placer === null ? null : runs.placer.assign(order, wanted, current, told);
  const asked = new Set(wanted);
  // A number that is moved must first be in memory.
  for (const node of order)
    if (node.storage === null && node.op === 'to' && isFree(node.src[0]!)) asked.add(node.src[0]!);
  const engines: EngineState[] = [];
  const numberOf = (state: EngineState): number => {
    const at = engines.indexOf(state);
    return at >= 0 ? at : engines.push(state) - 1;
  };
  const count = order.length;
  const where = new Array<EngineState | null>(count).fill(null);
  const stage = new Int32Array(count);
  const waits = new Uint8Array(count);
  /** True for nodes that are not leaves and are computed once, rather than within each user. */
  const computed = (node: Node): boolean => node.storage === null && (!isFree(node) || asked.has(node));
  order.forEach((node, i) => {
    if (node.storage !== null) return;
    const place = placeFor(node, assigned?.[i] ?? current, full);
    if (place instanceof Error) {
      if (told) throw place;
      waits[i] = missing.ever;
      return;
    }
    where[i] = place;
    for (const source of node.src) {
      const s = source.index;
      if (source.storage !== null) {
        if (isGone(source)) {
          if (told) throw goneError(source);
          waits[i] = missing.ever;
        } else if (!isWithinReach(source, place.pool)) waits[i] = Math.max(waits[i]!, missing.data);
      } else if (computed(source)) {
        const from = where[s];
        stage[i] = Math.max(stage[i]!, stage[s]! + Number(from !== place || node.op === 'to'));
        waits[i] = Math.max(waits[i]!, waits[s]!);
        if (from && from !== place && from.engine.downloadSync === undefined && !source.shape.includes(0))
          waits[i] = Math.max(waits[i], missing.data);
      }
    }
  });

  const groups = new Map<number, Group>();
  const groupOf = (i: number): Group => {
    const state = where[i]!;
    const key = stage[i]! * mostEngines + numberOf(state);
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = { state, wanted: [], needs: [], moved: [] }));
    return group;
  };
  const needed = new Uint8Array(count);
  /** The engines that read each leaf, as bits; another bit marks leaves that must not move. */
  const readers = new Uint32Array(count);
  const transfers: Crossing[] = [];
  order.forEach((node, i) => {
    const to = where[i];
    if (node.storage !== null || !to || waits[i] === missing.ever) return;
    const ready = waits[i] === missing.nothing;
    const moves = node.op === 'to';
    if (moves && ready) groupOf(i).moved.push(node);
    for (const source of node.src) {
      const s = source.index;
      if (source.storage !== null) {
        if (isGone(source)) continue;
        readers[s] = readers[s]! | (1 << numberOf(to)) | (moves ? staysToo : 0);
        if (storageIn(source, to.pool) !== null) continue;
        if (ready) groupOf(i).needs.push({ node: source, to });
        else if (!isWithinReach(source, to.pool)) transfers.push({ node: source, to });
      } else if (computed(source) && waits[s] === missing.nothing) {
        const from = where[s]!;
        if (from !== to || stage[s] !== stage[i] || !ready) needed[s] = 1;
        if (from === to) continue;
        if (ready) groupOf(i).needs.push({ node: source, to });
        else if (from.engine.downloadSync === undefined) transfers.push({ node: source, to });
      }
    }
  });
  order.forEach((node, i) => {
    if (node.op === 'to' || node.storage !== null || waits[i] !== missing.nothing) return;
    if (needed[i] === 1 || asked.has(node)) groupOf(i).wanted.push(node);
  });
  const ordered = [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
  return {
    groups: ordered.filter((group) => group.wanted.length + group.moved.length > 0),
    transfers,
    shared: new Set(order.filter((node, i) => staysWhereItIs(node, readers[i]!))),
    waiting: wanted.some((node) => waits[node.index] === missing.data),
  };
}

/** A flush is divided among at most this many engines; the next bit marks leaves that must not move. */
const mostEngines = 31;
const staysToo = 1 << mostEngines;

/** True for a leaf that must not move to its only reader: it was copied on request, or several engines read it. */
function staysWhereItIs(node: Node, readers: number): boolean {
  return node.storage !== null && (readers & (readers - 1)) !== 0;
}

/** Moved nodes take their sources' storage on this engine. */
function move({ state, moved }: Group): void {
  for (const node of moved) {
    if (node.storage !== null || node.edges === 'dead') continue;
    const there = storageIn(node.src[0]!, state.pool)!;
    there.buffer.retain();
    realise(node, there);
  }
}

const isWorking = ({ lost, disposed }: BufferPool): boolean => lost === null && !disposed;

/** The memory of the engine that computes a group, and of those that hold its inputs. */
function poolsOf({ state, needs }: Group): BufferPool[] {
  const sources = needs.flatMap(({ node }) =>
    node.storage === null ? [] : [(node.storage.buffer as PoolBuffer).pool],
  );
  return [state.pool, ...sources];
}

/**
 * Computes nodes some of which an engine refused: those on the CPU engine, the others where they were. It tries the first half (sources before
 * users) and the second one separately, until the refused node is alone.
 */
function runRefused(state: EngineState, wanted: readonly Node[], error: Error): void {
  const order = below(wanted).filter((node) => node.storage === null && !isFree(node));
  const first = order.slice(0, order.length >> 1);
  if (first.length === 0) {
    onCpu(state, wanted, error);
    return;
  }
  const asked = new Set(wanted);
  for (const node of order.slice(first.length)) for (const source of node.src) asked.add(source);
  for (const half of [first.filter((node) => asked.has(node)), wanted]) {
    const nodes = needed(half);
    if (nodes.length === 0) continue;
    try {
      const done = run(state, nodes, state.partial);
      if (typeof done !== 'boolean') throw new Waiting(done);
      // What it needs of the first half is on the CPU engine now, so the cut must be made again.
      if (!done) return;
    } catch (failure) {
      if (failure instanceof Waiting || !runs.placer?.takes(failure, state)) throw failure;
      runRefused(state, nodes, failure as Error);
    }
  }
}

/** Computes on the CPU engine what another engine refused. Throws Waiting. */
function onCpu(refused: EngineState, wanted: readonly Node[], error: Error): void {
  const engine = cpuEngine();
  if (engine === null || engine === refused.engine) throw error;
  if ('then' in engine) throw new Waiting(engine);
  const state = stateOf(engine);
  const order = below(wanted);
  const computed = order.filter((node) => node.storage === null && !isFree(node));
  runs.placer?.fallBack(refused, error.message.split('\n', 1)[0]!, computed, error);
  const arrivals = order.flatMap((node) => (node.storage === null ? [] : [bring(node, state.pool, true)]));
  const awaited = arrivals.filter((arrival) => arrival !== null);
  if (awaited.length > 0) throw new Waiting(Promise.all(awaited));
  if (run(state, wanted, state.partial) !== true) throw error;
}

/** Runs groups in order. Null: all done. A promise: wait for it. `here`: the data that the other nodes waited for is in memory now. */
function runGroups(
  { groups, transfers, shared, waiting }: Cut,
  current: EngineState,
  { everything, patience, transaction }: Attempt,
): Promise<void> | null | 'here' {
  const underway = new Map<Crossing, Promise<void>>();
  const here = new Set<Crossing>();
  const startTransfers = (): void => {
    for (const crossing of transfers) {
      const { node, to } = crossing;
      if (node.storage === null || underway.has(crossing)) continue;
      // A view of data that was copied earlier is on both engines as soon as it is made.
      const arrival = bring(node, to.pool, shared.has(node));
      if (arrival === null) here.add(crossing);
      else underway.set(crossing, arrival);
    }
  };
  startTransfers();
  const last = groups[groups.length - 1];
  // If a later run fails, it would be too late to undo what an earlier one overwrote.
  if (groups.length > 1) transaction.hold();
  for (const group of groups) {
    const { state, wanted, needs } = group;
    if (group === last && groups.length > 1 && everything) transaction.letGo();
    let done: boolean | Promise<void>;
    const working = poolsOf(group).filter(isWorking);
    try {
      for (const { node, to } of needs) bring(node, to.pool, shared.has(node));
      move(group);
      const left = open(wanted);
      const options = everything ? state.global : state.partial;
      done = left.length === 0 || run(state, left, options, patience === 'none' ? 'none' : 'memory');
    } catch (error) {
      // What remains after another engine was lost is cut again. queue.ts handles the loss of the current one.
      if (current.pool.lost === null && !working.every(isWorking)) return 'here';
      if (!runs.placer?.takes(error, state)) throw error;
      const alive = needed(wanted);
      const left = needs.some(({ node, to }) => storageIn(node, to.pool) === null) ? null : alive;
      if (left === null) onCpu(state, alive, error as Error);
      else runRefused(state, left, error as Error);
      return 'here';
    }
    // Finished work is kept; the rest is cut again.
    if (typeof done !== 'boolean') return done;
    if (!done) {
      throw new Error(`[flush] nodes cannot be placed on engines '${current.engine.name}' and '${state.engine.name}'`);
    }
    startTransfers();
  }
  if (waiting && underway.size === 0 && here.size > 0) return 'here';
  if (waiting && underway.size === 0) throw new Error('[flush] nodes wait for data that nothing brings');
  return underway.size === 0 ? null : quiet(Promise.all(underway.values()));
}
