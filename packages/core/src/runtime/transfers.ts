/**
 * Data of one engine on another: copies of leaves, made when a kernel elsewhere reads them.
 *
 * Buffers are written once, so a copy is never stale. It belongs to the buffer it was made from and is freed with it. A buffer given to an
 * output loses its copies (run.ts). A small part of a buffer, such as a batch of a data set, moves instead, unless both engines read it: copies
 * of all batches would pile up. If the source engine cannot read at once, the copy exists when its download has arrived; a second request
 * meanwhile starts no other download. multi-engine.ts decides which data is transferred.
 */
import type { IEngine } from '../engine/engine.ts';
import {
  type BufferCopies,
  type BufferPool,
  type PoolBuffer,
  received,
  storageBytes,
  toDevice,
} from '../engine/pool.ts';
import { noticed } from '../engine/registry.ts';
import type { Node, NodeStorage } from '../graph/node.ts';
import { storageIn, viewBase } from '../planner/capture/captured-graph.ts';
import { inTime } from './late.ts';
import { stateOf } from './run.ts';
import { runs } from './state.ts';

/** Elements of a buffer, and where they are brought. */
interface Part {
  readonly pool: BufferPool;
  readonly from: number;
  readonly to: number;
}

/** A part on its way. */
interface Flight extends Part {
  promise: Promise<void>;
}

/** Most copies of parts of one buffer; then the oldest is dropped. */
const mostCopies = 64;

const flights = new WeakMap<PoolBuffer, Flight[]>();

/** True if a leaf's value can be brought to this pool's engine without waiting. */
export function isWithinReach(node: Node, pool: BufferPool): boolean {
  const { engine } = (node.storage!.buffer as PoolBuffer).pool;
  return engine.downloadSync !== undefined || storageIn(node, pool) !== null;
}

/**
 * Brings a leaf's value to this pool's engine. Null if it is there now; otherwise a promise that resolves when it is.
 *
 * @param keep true if it must stay on its present engine too
 */
export function bring(node: Node, pool: BufferPool, keep: boolean): Promise<void> | null {
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
    const read = blaming(engine, () => runs.downloadSync(engine, source, new Uint8Array(bytes)));
    blaming(pool.engine, () => arrive(node, buffer, { pool, from, to }, read, keep));
    return null;
  }
  // Retained, so that nothing overwrites it before it is read.
  buffer.retain();
  const flight: Flight = { pool, from, to, promise: Promise.resolve() };
  flights.set(buffer, [...underway, flight]);
  const fly = async (): Promise<void> => {
    try {
      const asked = runs.download(engine, source, new Uint8Array(bytes));
      const read = await inTime(stateOf(engine), asked, `a read of ${bytes} bytes`).catch((error) => {
        throw noticed(engine, error);
      });
      blaming(pool.engine, () => arrive(node, buffer, flight, read, keep));
    } finally {
      flights.set(
        buffer,
        flights.get(buffer)!.filter((f) => f !== flight),
      );
      buffer.release();
    }
  };
  flight.promise = fly();
  // An awaiting caller gets the error. Otherwise the failure may stay silent: the next reader of the data asks again.
  const { transfers } = runs;
  transfers.add(flight.promise);
  const land = (): void => void transfers.delete(flight.promise);
  flight.promise.then(land, land);
  return flight.promise;
}

/** Calls an engine, and marks it as lost if it throws a DeviceLostError. */
function blaming<T>(engine: IEngine, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw noticed(engine, error);
  }
}

/** Writes downloaded bytes into the other engine's memory. */
function arrive(node: Node, buffer: PoolBuffer, { pool, from, to }: Part, read: Uint8Array, keep: boolean): void {
  const { dtype } = node;
  const length = to - from;
  const bytes = length * storageBytes(pool.engine, dtype);
  const fresh = pool.alloc(bytes);
  try {
    const host = received(buffer.pool.engine, dtype, read, length);
    stateOf(pool.engine).inFlight++;
    runs.upload(pool.engine, { buffer: fresh.memory, offset: 0, bytes }, toDevice(pool.engine, dtype, host));
  } catch (error) {
    fresh.release();
    throw error;
  }
  if (keep || length * storageBytes(buffer.pool.engine, dtype) * 2 >= buffer.bytes) {
    const copies = (buffer.copies ??= new Copies()) as Copies;
    copies.add({ from, to, buffer: fresh, found: null });
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

/** Part of a buffer's elements in another engine's memory. */
interface Copy {
  readonly from: number;
  readonly to: number;
  readonly buffer: PoolBuffer;
  /** The value that was looked up here last, and its storage. */
  found: { readonly of: NodeStorage; readonly storage: NodeStorage } | null;
}

/** The copies of one buffer. */
class Copies implements BufferCopies {
  readonly #list: Copy[] = [];

  add(copy: Copy): void {
    if (this.#list.length >= mostCopies) this.#list.shift()?.buffer.release();
    this.#list.push(copy);
  }

  find({ storage, shape }: Node, pool: BufferPool): NodeStorage | null {
    const { strides, offset } = storage!.view;
    for (const copy of this.#list) {
      if (copy.buffer.pool !== pool) continue;
      // Every run looks up its leaves, so the last result is kept.
      if (copy.found !== null && copy.found.of === storage) return copy.found.storage;
      const from = viewBase(shape, strides, offset);
      if (copy.from > from || copy.to < from + viewSpan(shape, strides)) continue;
      const there = { buffer: copy.buffer, view: { strides, offset: offset - copy.from } };
      copy.found = { of: storage!, storage: there };
      return there;
    }
    return null;
  }

  findAlive(leaf: Node): NodeStorage | null {
    for (const { buffer } of this.#list) {
      const { pool } = buffer;
      const there = pool.lost === null && !pool.disposed ? storageIn(leaf, pool) : null;
      if (there !== null) return there;
    }
    return null;
  }

  release(): void {
    for (const { buffer } of this.#list) buffer.release();
  }
}

/** Elements from the first to the last one that a view of this shape touches; 0 for shapes without elements. */
export function viewSpan(shape: readonly number[], strides: readonly number[]): number {
  let span = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    const n = shape[axis]!;
    if (n === 0) return 0;
    span += Math.abs(strides[axis]!) * (n - 1);
  }
  return span;
}
