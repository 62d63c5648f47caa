/**
 * Work for which the current engine alone does not do: dtypes that it does not hold, data of other engines, devices that are full.
 *
 * A node is computed on the current engine if that holds its dtype and those of its sources, else on the CPU engine. Nodes are
 * grouped by engine and by how often the way to them crosses over, and each group is one run; what another group reads
 * is brought to memory by its own. Where data must come from an engine that cannot read at once, the nodes behind it wait.
 *
 * Pages load this only when they need it (queue.ts).
 */
import type { IEngine } from '../engine/engine.ts';
import { cpuEngine } from '../engine/registry.ts';
import { type Node, nextMark } from '../graph/node.ts';
import type { DType } from '../shape/dtype.ts';
import { storageIn, viewBase, viewSpan } from '../planner/capture/cone.ts';
import { type EngineState, stateOf, runs, run } from './run.ts';
import { heldByNobody, holds, isFree, noCpu, goneError, isGone } from './placement.ts';
import { type Attempt, open, quiet } from './queue.ts';
import { DeviceLostError } from '../engine/errors.ts';
import { type BufferPool, type PoolBuffer, fromDevice, storageBytes, toDevice } from '../engine/pool.ts';
import { noticed } from '../engine/recovery.ts';

/**
 * `realise` where the current engine works, but alone does not do.
 *
 * @param full it has no memory left: all is computed on the CPU engine
 */
export function realiseApart(
  wanted: readonly Node[],
  current: EngineState,
  full: boolean,
  attempt: Attempt,
): Promise<void> | null {
  try {
    for (let left = wanted; ; left = open(wanted)) {
      const missing = runGroups(cut(left, current, attempt.told === true, full), current, attempt);
      if (missing !== 'here') return missing;
    }
  } catch (error) {
    if (error instanceof Starting) return quiet(error.engine);
    throw error;
  }
}

/** Where a node is computed that the current engine does not hold; an error where nobody does. Throws Starting. */
function fallback(node: Node, current: IEngine): EngineState | Error {
  const lacks = ({ caps }: IEngine): DType | undefined =>
    [node, ...node.src].map((n) => n.dtype).find((d) => !caps.dtypes.has(d));
  const engine = cpuEngine();
  if (engine === null) return noCpu('flush', lacks(current)!, current);
  if ('then' in engine) throw new Starting(engine);
  const missing = lacks(engine);
  return missing === undefined ? stateOf(engine) : heldByNobody('flush', missing, current, engine);
}

/** The CPU engine is not there yet. */
class Starting extends Error {
  readonly engine: Promise<IEngine>;

  constructor(engine: Promise<IEngine>) {
    super('[flush] the cpu engine is starting');
    this.engine = engine;
  }
}

/** A leaf or a computed node that an engine reads and another one has. */
interface Crossing {
  readonly node: Node;
  readonly to: EngineState;
}

/** What is computed in one run, and what must be brought before it. */
interface Group {
  readonly state: EngineState;
  readonly wanted: Node[];
  readonly needs: Crossing[];
}

interface Cut {
  /** In order of execution. */
  readonly groups: readonly Group[];
  /** What waiting nodes need from engines that cannot read at once, by the time all groups have run. */
  readonly transfers: readonly Crossing[];
  /** Leaves that both engines read. */
  readonly shared: ReadonlySet<Node>;
  /** Some of what was asked for must wait for a transfer. */
  readonly waiting: boolean;
}

/** Unrealised nodes below the wanted ones and the leaves they end in, sources first; numbered by `index`. */
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

/** What keeps a node from being computed in this flush. */
const missing = { nothing: 0, data: 1, ever: 2 } as const;

/** `told`: nodes that cannot be computed are an error. */
function cut(wanted: readonly Node[], current: EngineState, told: boolean, full: boolean): Cut {
  const order = below(wanted);
  const asked = new Set(wanted);
  const count = order.length;
  const where = new Array<EngineState | null>(count).fill(null);
  const stage = new Int32Array(count);
  const waits = new Uint8Array(count);
  /** Nodes that are no leaves, and computed by themselves rather than by whoever uses them. */
  const computed = (node: Node): boolean => node.storage === null && (!isFree(node) || asked.has(node));
  order.forEach((node, i) => {
    if (node.storage !== null) return;
    const place = !full && holds(current.engine, node) ? current : fallback(node, current.engine);
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
        stage[i] = Math.max(stage[i]!, stage[s]! + Number(from !== place));
        waits[i] = Math.max(waits[i]!, waits[s]!);
        if (from && from !== place && from.engine.downloadSync === undefined && !source.shape.includes(0))
          waits[i] = Math.max(waits[i], missing.data);
      }
    }
  });

  const groups = new Map<number, Group>();
  const groupOf = (i: number): Group => {
    const state = where[i]!;
    const key = stage[i]! * 2 + Number(state !== current);
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = { state, wanted: [], needs: [] }));
    return group;
  };
  const needed = new Uint8Array(count);
  /** The engines that read each leaf: one bit for the current, one for the other. */
  const readers = new Uint8Array(count);
  const transfers: Crossing[] = [];
  order.forEach((node, i) => {
    const to = where[i];
    if (node.storage !== null || !to || waits[i] === missing.ever) return;
    const ready = waits[i] === missing.nothing;
    for (const source of node.src) {
      const s = source.index;
      if (source.storage !== null) {
        if (isGone(source)) continue;
        readers[s] = readers[s]! | (to === current ? 1 : 2);
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
    if (node.storage === null && waits[i] === missing.nothing && (needed[i] === 1 || asked.has(node)))
      groupOf(i).wanted.push(node);
  });
  const ordered = [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
  return {
    groups: ordered.filter((group) => group.wanted.length > 0),
    transfers,
    shared: new Set(order.filter((_, i) => readers[i] === 3)),
    waiting: wanted.some((node) => waits[node.index] === missing.data),
  };
}

/** Null: all is done; a promise: what to wait for; `here`: what the nodes left waited for is in memory by now. */
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
  // What an earlier run writes over is gone when a later one fails.
  if (groups.length > 1) transaction.hold();
  for (const group of groups) {
    const { state, wanted, needs } = group;
    if (group === last && groups.length > 1 && everything) transaction.letGo();
    for (const { node, to } of needs) bring(node, to.pool, shared.has(node));
    const left = open(wanted);
    const options = everything ? state.global : state.partial;
    const done = left.length === 0 || run(state, left, options, patience === 'none' ? 'none' : 'memory');
    // What has been done stays; what is left is cut anew.
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

/*
 * Data of one engine on another: copies of leaves, made when a kernel elsewhere reads them.
 *
 * Buffers are written once, so a copy never grows old; it hangs on the buffer it was made from and goes back with it (a buffer
 * given to an output loses its copies, see run.ts). A small part of a buffer - a batch out of a data set - moves instead, lest
 * copies of all batches gather, unless both engines read it. Where the source engine cannot read at once, the copy is there when its
 * download has arrived; asking again meanwhile starts no second one.
 */

interface Flight {
  readonly pool: BufferPool;
  readonly from: number;
  readonly to: number;
  promise: Promise<void>;
}

/** Copies of parts of one buffer; beyond that the oldest goes. */
const mostCopies = 64;

const flights = new WeakMap<PoolBuffer, Flight[]>();

/** Resolves when all transfers that are under way now have arrived or failed. */
export async function landed(): Promise<void> {
  await Promise.allSettled([...runs.transfers]);
}

/** True if a leaf's value can be had in this pool's engine without waiting. */
function isWithinReach(node: Node, pool: BufferPool): boolean {
  const { engine } = (node.storage!.buffer as PoolBuffer).pool;
  return engine.downloadSync !== undefined || storageIn(node, pool) !== null;
}

/**
 * Sees to it that a leaf's value is in this pool's engine. Null: it is there now; otherwise a promise that resolves when it is.
 *
 * @param keep true if it must stay where it is too
 */
function bring(node: Node, pool: BufferPool, keep: boolean): Promise<void> | null {
  if (storageIn(node, pool) !== null) return null;
  const { buffer: counted, view } = node.storage!;
  const buffer = counted as PoolBuffer;
  const from = viewBase(node.shape, view.strides, view.offset);
  const to = from + viewSpan(node.shape, view.strides);
  const underway = flights.get(buffer) ?? [];
  const known = underway.find((f) => f.pool === pool && f.from === from && f.to === to);
  if (known !== undefined) return known.promise;

  const { engine } = buffer.pool;
  const element = storageBytes(engine, node.dtype);
  const bytes = (to - from) * element;
  const source = { buffer: buffer.memory, offset: from * element, bytes };
  if (engine.downloadSync !== undefined) {
    try {
      arrive(node, buffer, from, to, engine.downloadSync(source, new Uint8Array(bytes)), pool, keep);
    } catch (error) {
      throw blamed(error, [engine, pool.engine]);
    }
    return null;
  }
  // Held, so that nothing is written over it before it is read.
  buffer.retain();
  const flight: Flight = { pool, from, to, promise: Promise.resolve() };
  flights.set(buffer, [...underway, flight]);
  const fly = async (): Promise<void> => {
    try {
      arrive(node, buffer, from, to, await engine.download(source, new Uint8Array(bytes)), pool, keep);
    } catch (error) {
      throw blamed(error, [engine, pool.engine]);
    } finally {
      flights.set(
        buffer,
        flights.get(buffer)!.filter((f) => f !== flight),
      );
      buffer.release();
    }
  };
  flight.promise = fly();
  // Whoever waits is told. Where nobody waits it may fail in silence: the next one who needs the data asks again.
  const { transfers } = runs;
  transfers.add(flight.promise);
  const land = (): void => void transfers.delete(flight.promise);
  flight.promise.then(land, land);
  return flight.promise;
}

/** Declares the engine lost that the error is about; returns the error. */
function blamed(error: unknown, engines: readonly IEngine[]): unknown {
  if (error instanceof DeviceLostError) for (const e of engines) if (e.name === error.engine) noticed(e, error);
  return error;
}

/** Puts what was read into the other engine's memory. */
function arrive(
  node: Node,
  buffer: PoolBuffer,
  from: number,
  to: number,
  read: Uint8Array,
  pool: BufferPool,
  keep: boolean,
): void {
  const { dtype } = node;
  const length = to - from;
  const bytes = length * storageBytes(pool.engine, dtype);
  const fresh = pool.alloc(bytes);
  try {
    const host = fromDevice(buffer.pool.engine, dtype, read, length);
    pool.engine.upload({ buffer: fresh.memory, offset: 0, bytes }, toDevice(pool.engine, dtype, host));
  } catch (error) {
    fresh.release();
    throw error;
  }
  if (keep || length * storageBytes(buffer.pool.engine, dtype) * 2 >= buffer.bytes) {
    const copies = (buffer.copies ??= []);
    if (copies.length >= mostCopies) copies.shift()?.buffer.release();
    copies.push({ from, to, buffer: fresh });
    return;
  }
  const { storage } = node;
  if (storage === null || storage.buffer !== buffer) {
    fresh.release();
    return;
  }
  const { strides, offset } = storage.view;
  node.storage = { buffer: fresh, view: { strides, offset: offset - from } };
  buffer.release();
}
