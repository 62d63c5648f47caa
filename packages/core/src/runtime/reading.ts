/**
 * Reading: `readNode` computes a node if necessary, brings it to row-major order and copies it to the host.
 *
 * A value in memory needs this file and engine/pool.ts; a pending one also queue.ts, run.ts and the planner. docs/architecture.md
 * lists the files that `await t.data()` visits, and tooling/read-path.test.mjs counts them.
 */
import type { IEngine } from '../engine/engine.ts';
import { DeviceLostError, OutOfMemoryError, UnsupportedError } from '../engine/errors.ts';
import { type PoolBuffer, received, storageBytes, hints } from '../engine/pool.ts';
import { noticed } from '../engine/registry.ts';
import { engines } from '../engine/registry.ts';
import { type Node, isOp, release, retain } from '../graph/node.ts';
import { contiguous } from '../graph/primitives.ts';
import { graph } from '../graph/state.ts';
import type { TypedArray } from '@polygrad/compiler/shape/dtype';
import { isRowMajor, sizeOf, type Shape, type View } from '@polygrad/compiler/shape/view';
import { hostArray, hostArrays, setElement } from '@polygrad/compiler/shape/host';
import { copies } from './copies.ts';
import { inTime, recover } from './late.ts';
import { goneError, isGone, placeOfNode } from './placement.ts';
import { queue, untilAnswered } from './queue.ts';
import { heard, missingCode, mostWaits, type Patience, run, stateOf } from './run.ts';
import { runs } from './state.ts';

/**
 * The node's elements in row-major order in a new host array; computes them first if necessary. If kernels must be compiled for that,
 * the program goes on meanwhile. Afterwards the event loop gets a turn if one is due.
 */
export async function readNode(node: Node): Promise<TypedArray> {
  if (node.shape.includes(0)) return hostArray(node.dtype, 0);
  tellRewound();
  const data = await download(node, beginRead()).catch((error: unknown) => {
    if (error instanceof DeviceLostError) tellRewound();
    throw error;
  });
  await turn();
  tellRewound();
  return data;
}

/**
 * As `readNode`, for a node with elements, and without giving the event loop a turn. `before` is the newest node at the previous
 * read. The read of a node in memory is submitted before this returns. If a kernel that brings it to row-major order must be
 * compiled, it is submitted after that, and the node does not change until then.
 */
export async function download(node: Node, before: number = 0): Promise<TypedArray> {
  let read = readable(node, before, 'kernels');
  if ('then' in read) {
    retain(node);
    try {
      for (let waits = 1; 'then' in read; read = readable(node, before, waits++ < mostWaits ? 'kernels' : 'none'))
        await untilAnswered(read);
    } finally {
      release(node);
    }
  }
  const { engine, binding, done } = read;
  try {
    const bytes = runs.download(engine, binding, new Uint8Array(binding.bytes));
    const unlimited = engine.inHostMemory === true && engines.policy.timeout === undefined;
    const answer = unlimited ? bytes : inTime(stateOf(engine), bytes, `a read of ${binding.bytes} bytes`);
    return arrived(node, engine, await answer);
  } catch (error) {
    throw failed(node, engine, error);
  } finally {
    done();
  }
}

/** Throws once if protected tensors went back to older values. */
function tellRewound(): void {
  if (engines.untold !== null) queue.tell();
}

/** The error of a read: the loss, if a lost device left the value to an engine that was disposed since. */
function failed(node: Node, engine: IEngine, error: unknown): unknown {
  noticed(engine, error);
  heard?.(stateOf(engine), error);
  return (node.storage?.buffer as PoolBuffer | undefined)?.pool.disposed && isGone(node) ? goneError(node) : error;
}

/**
 * The same without waiting for a task turn.
 *
 * @throws UnsupportedError where the engine cannot wait
 */
export function readNodeSync(node: Node): TypedArray {
  if (node.shape.includes(0)) return hostArray(node.dtype, 0);
  tellRewound();
  try {
    const data = downloadSync(node);
    tellRewound();
    return data;
  } catch (error) {
    if (error instanceof DeviceLostError) tellRewound();
    throw error;
  }
}

/** Receives small synchronous reads, which are copied from here: a new ArrayBuffer costs more than the copy. */
const landing = new Uint8Array(512);

function downloadSync(node: Node): TypedArray {
  const read = readable(node, beginRead(), 'none');
  if ('then' in read) {
    throw (
      missingCode(read) ??
      new UnsupportedError(
        'dataSync',
        `a value on engine '${placeOfNode(node)}' needs data of another engine, which answers later; use await t.data()`,
      )
    );
  }
  const { engine, binding, done } = read;
  try {
    if (engine.downloadSync === undefined) {
      throw new UnsupportedError(
        'dataSync',
        `engine '${engine.name}' cannot read at once: its device answers later; use await t.data()`,
      );
    }
    const { bytes } = binding;
    const isShort = bytes <= landing.length;
    const into = isShort ? landing.subarray(0, bytes) : new Uint8Array(bytes);
    const data = arrived(node, engine, runs.downloadSync(engine, binding, into));
    return isShort ? data.slice() : data;
  } catch (error) {
    throw failed(node, engine, error);
  } finally {
    done();
  }
}

function arrived(node: Node, engine: IEngine, bytes: Uint8Array): TypedArray {
  return received(engine, node.dtype, bytes, sizeOf(node.shape));
}

/** Computes a node and prepares to copy it, as far as possible now; else a promise of when to try again. */
function readable(node: Node, before: number, patience: Patience): Read | Promise<void> {
  return tried(node, before, patience) ?? prepareRead(node, patience);
}

/**
 * As `attempt`, for a reader; `before` is the newest node at the previous read. If it fails, pending work that shares nodes with this one is
 * settled, so that it does not fail again.
 */
function tried(node: Node, before: number, patience: Patience): Promise<void> | null {
  try {
    runs.old = before;
    return attempt(node, patience);
  } catch (error) {
    // The memory may be taken by values that are kept for later reads.
    if (error instanceof OutOfMemoryError && before > 0) return tried(node, 0, patience);
    // A flush that was put off may have a better error.
    const late = error instanceof OutOfMemoryError ? queue.takeLate() : null;
    throw queue.giveUp(node, late === null ? error : late.error);
  } finally {
    runs.old = 0;
  }
}

/**
 * Computes a node as far as possible now; null if it is in memory. Throws DeviceLostError if its value is gone.
 */
function attempt(node: Node, patience: Patience): Promise<void> | null {
  if (node.storage !== null) {
    const { lost, disposed } = (node.storage.buffer as PoolBuffer).pool;
    if ((lost === null && !disposed) || !isGone(node)) return null;
    // Another engine also brings protected tensors back.
    const underway = recover();
    if (underway !== null) return underway;
    copies.keeper?.restoreLost();
    if (isGone(node)) throw goneError(node);
    return null;
  }
  queue.advance(patience === 'none' ? patience : 'memory');
  if (queue.isPutOff) return queue.settlePutOff();
  return node.storage === null ? queue.realiseFor(node, patience) : null;
}

/**
 * Notes a read: returns the newest node at the previous one. Reads with nothing recorded between them count as one.
 */
function beginRead(): number {
  graph.refuseRead?.();
  const { newest } = graph;
  if (newest !== runs.lastRead) {
    runs.readBefore = runs.lastRead;
    runs.lastRead = newest;
  }
  return runs.readBefore;
}

interface Read {
  readonly engine: IEngine;
  readonly binding: { readonly buffer: PoolBuffer['memory']; readonly offset: number; readonly bytes: number };
  /** Releases what the read holds. */
  readonly done: () => void;
}

/**
 * Brings the value of a node in memory to row-major order, on the engine that has it, and holds it there. If it may wait and the kernel
 * for that is still being compiled, returns a promise of when to try again.
 */
function prepareRead(node: Node, patience: Patience): Read | Promise<void> {
  let source = node;
  if (!isRowMajor(node.shape, node.storage!.view)) {
    source = contiguous(node);
    retain(source);
    try {
      const state = stateOf((node.storage!.buffer as PoolBuffer).pool.engine);
      const done = run(state, [source], state.partial, patience);
      if (typeof done !== 'boolean') {
        release(source);
        return done;
      }
    } catch (error) {
      release(source);
      throw error;
    }
  }
  const { buffer, view } = source.storage!;
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

/*
 * Turns of the event loop. Awaiting a settled promise resumes the loop before any timer, message, signal, frame of a page or
 * collected handle is handled: a program that awaits only such promises blocks them all, and keeps the memory of every Tensor
 * it dropped. So where the engine has computed before a read returns, reads give the event loop a turn now and then.
 */

/** Longest time in milliseconds for which a loop of reads blocks the event loop: answers of a server that trains, and frames of a page, wait for it. */
const longestHold = 10;

interface Host {
  setImmediate?(callback: () => void): unknown;
  setTimeout(callback: () => void, milliseconds: number): unknown;
}

// The real timers: fake ones that tests install would stop reads.
const { setImmediate, setTimeout } = globalThis as unknown as Host;

/** The garbage collector needs about this many turns, after a hint, until dropped Tensors give their memory back. */
const turnsOfHint = 8;

/** A promise that resolves after the event loop had a turn, or null if it had one recently. */
export function turn(): Promise<void> | null {
  const now = performance.now();
  const r = runs;
  if (hints !== r.known) {
    r.known = hints;
    r.owed = turnsOfHint;
  }
  if (now - r.since < longestHold && r.owed === 0) return null;
  r.since = now;
  if (r.owed > 0) r.owed--;
  return new Promise((resolve) => {
    if (setImmediate !== undefined) setImmediate(resolve);
    else if (typeof MessageChannel === 'undefined') setTimeout(resolve, 0);
    else {
      // Browsers delay timers: always by four milliseconds, in hidden pages by a second or a minute.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    }
  });
}

/** Most bytes that are copied for a few scattered elements. */
const mostBytes = 1 << 20;

/** Position of each element in the buffer, row-major, counted in elements. */
function places(shape: Shape, { strides, offset }: View): number[] {
  let found = [offset];
  for (const [axis, extent] of shape.entries())
    found = found.flatMap((at) => Array.from({ length: extent }, (_, i) => at + i * strides[axis]!));
  return found;
}

/** The elements of a node, row-major; null if they would have to be computed, waited for, or fetched from a device. */
export function peek(node: Node): TypedArray | null {
  const size = sizeOf(node.shape);
  if (size === 0) return new hostArrays[node.dtype](0);
  if (node.storage === null) {
    if (!isOp(node, 'constant')) return null;
    const values = new hostArrays[node.dtype](size);
    for (let i = 0; i < size; i++) setElement(values, node.dtype, i, node.attr.value);
    return values;
  }
  const { pool, memory } = node.storage.buffer as PoolBuffer;
  const { engine } = pool;
  if (engine.downloadSync === undefined || engine.inHostMemory !== true) return null;
  try {
    const at = places(node.shape, node.storage.view);
    const [least, most] = [Math.min(...at), Math.max(...at)];
    const element = storageBytes(engine, node.dtype);
    const bytes = (most - least + 1) * element;
    if (bytes > mostBytes) return null;
    const binding = { buffer: memory, offset: least * element, bytes };
    const all = received(engine, node.dtype, engine.downloadSync(binding, new Uint8Array(bytes)), most - least + 1);
    const values = new hostArrays[node.dtype](size) as Int32Array;
    for (const [i, place] of at.entries()) values[i] = (all as Int32Array)[place - least]!;
    return values;
  } catch {
    // A lost engine has no values.
    return null;
  }
}
