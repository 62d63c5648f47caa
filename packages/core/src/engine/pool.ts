/**
 * Reference-counted buffers over an engine: who holds device memory, and its reuse when the last holder is gone.
 *
 * A PoolBuffer is shared by reference counting (`retain`, `release`); at zero its memory goes to a free list of its size class and
 * serves the next request of that class. Engines run commands in order, so memory may be reused while commands that
 * use it are still queued. This file knows no tensors; planner/arena.ts places temporaries in the arenas of a plan.
 */
import { told } from '#shown-as';
import { fault } from '@polygrad/compiler/shape/errors';
import type { Node, NodeStorage, StorageBuffer } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import type { Binding, Command, EngineBuffer, IEngine } from './engine.ts';
import { DeviceError, type DeviceLostError, OutOfMemoryError } from './errors.ts';
import { type DType, dtypeInfo, type TypedArray } from '@polygrad/compiler/shape/dtype';
import { hostArrays } from '@polygrad/compiler/shape/host';

/** What `memory()` reports for one engine. */
export interface PoolMemory {
  /** Buffers with a reference. */
  readonly numBuffers: number;
  /** Bytes requested for those buffers. */
  readonly bytes: number;
  /** Largest value `bytes` ever had. */
  readonly peakBytes: number;
  /** Bytes kept for reuse. */
  readonly pooledBytes: number;
}

/** Smallest block; also the alignment every block has at least on all engines. */
const minBlock = 64;

/** Size class of a request: eight classes per power of two, so at most one eighth is wasted. */
export function sizeClass(bytes: number): number {
  if (bytes <= minBlock) return 0;
  const exponent = Math.floor(Math.log2(bytes - 1));
  const step = 2 ** (exponent - 3);
  return (exponent - 6) * 8 + Math.ceil((bytes - 2 ** exponent) / step);
}

/** Bytes, and the class of buffers that holds them. */
export function block(bytes: number): { bytes: number; sizeClass: number } {
  return { bytes, sizeClass: sizeClass(bytes) };
}

/** Bytes of the blocks of a class. */
export function classBytes(index: number): number {
  if (index === 0) return minBlock;
  const exponent = Math.floor((index - 1) / 8) + 6;
  const eighths = index - (exponent - 6) * 8;
  return 2 ** exponent + eighths * 2 ** (exponent - 3);
}

/** Calls of `age` per window. */
const windowLength = 64;
/** The garbage collector gets a hint when usage has risen by this much above its lowest point since the last hint. */
const hintAfter = 1 << 27;
/** Bytes kept beyond what a window used, so that small changes of usage do not free and allocate. */
const slack = 1 << 26;
/** Least size of kept blocks that are freed to serve a request of another class, if the engine merges free memory: several pages. */
const leastJoined = 1 << 16;

/** Copies of parts of a buffer in the memory of other engines (runtime/transfers.ts). */
export interface BufferCopies {
  /** Where the value of a leaf in the buffer is in another pool's engine, or null if it is not there. */
  find(leaf: Node, pool: BufferPool): NodeStorage | null;
  /** The same in any engine that lives. */
  findAlive(leaf: Node): NodeStorage | null;
  /** Gives all of them back. */
  release(): void;
}

let nextId = 1;

/** A reference-counted buffer, made with a count of one. */
export class PoolBuffer implements StorageBuffer {
  readonly id: number;
  readonly pool: BufferPool;
  readonly memory: EngineBuffer;
  /** Bytes requested; the block behind it may be larger. */
  readonly bytes: number;
  readonly classIndex: number;
  refs: number;
  /** Scratch of a walk over buffers, as on graph nodes: `index` is valid only under the walk's own `mark`. */
  mark = 0;
  index = 0;
  /** Freed with the buffer. */
  copies: BufferCopies | null = null;

  constructor(pool: BufferPool, memory: EngineBuffer, bytes: number, classIndex: number) {
    this.id = nextId++;
    this.pool = pool;
    this.memory = memory;
    this.bytes = bytes;
    this.classIndex = classIndex;
    this.refs = 1;
  }

  retain(): void {
    if (this.refs <= 0) throw fault('pool', told && `buffer ${this.id} is used after it was given back`);
    this.refs++;
  }

  release(): void {
    if (this.refs <= 0) throw fault('pool', told && `buffer ${this.id} is given back twice`);
    if (--this.refs === 0) {
      if (this.copies !== null) this.dropCopies();
      this.pool.recycle(this);
    }
  }

  /** Frees copies on other engines, because the contents change or are no longer needed. */
  dropCopies(): void {
    this.copies?.release();
    this.copies = null;
  }
}

/** All buffers of one engine. */
export class BufferPool {
  readonly engine: IEngine;
  /** Most bytes of blocks kept for reuse. */
  pooledLimit: number = 1 << 30;
  /** The error, once the engine's memory is lost. */
  lost: DeviceLostError | null = null;
  /** True once the engine is known to be disposed: copies there are useless. */
  disposed: boolean = false;
  #free: (EngineBuffer[] | undefined)[] = [];
  #live = 0;
  #bytes = 0;
  #peak = 0;
  #pooled = 0;
  /** Largest `bytes` in this window of flushes and in the one before. */
  #windowPeak = 0;
  #lastWindowPeak = 0;
  #ticks = 0;
  /** Least `bytes` since the last hint to the garbage collector. */
  #floor = 0;
  /** Block sizes of the classes used so far. */
  readonly #blockBytes: number[] = [];
  /** Number of buffers held, by class. */
  readonly #held: number[] = [];

  constructor(engine: IEngine) {
    this.engine = engine;
  }

  /** Uninitialised memory with a count of one; `index` is the size class if the caller knows it. Throws the engine's OutOfMemoryError if trimming the pool does not help. */
  alloc(bytes: number, index: number = sizeClass(bytes)): PoolBuffer {
    const kept = this.#free[index];
    let memory = kept?.pop();
    for (; memory !== undefined; memory = kept?.pop()) {
      this.#pooled -= this.#blockOf(index);
      if (memory.refused == null) break;
      this.#giveBack(memory);
    }
    memory ??= this.#fresh(index);
    this.#live++;
    this.#held[index] = (this.#held[index] ?? 0) + 1;
    this.#bytes += bytes;
    if (this.#bytes > this.#windowPeak) {
      this.#windowPeak = this.#bytes;
      if (this.#bytes > this.#peak) this.#peak = this.#bytes;
    }
    const buffer = new PoolBuffer(this, memory, bytes, index);
    graph.observer?.alloc(buffer);
    return buffer;
  }

  #blockOf(index: number): number {
    return (this.#blockBytes[index] ??= classBytes(index));
  }

  #fresh(index: number): EngineBuffer {
    const bytes = classBytes(index);
    // Frees kept blocks that are not needed, so that used memory serves this request: the first touch of a new page costs more than the computation there.
    if (bytes >= leastJoined && this.engine.caps.mergesFreed === true)
      this.trim(this.#unused(this.#bytes + bytes), leastJoined);
    try {
      return this.#asked(bytes);
    } catch (error) {
      if (this.#pooled === 0 && !(error instanceof OutOfMemoryError)) throw error;
      const pooled = this.#pooled;
      this.trim(0);
      try {
        return this.#asked(bytes);
      } catch (again) {
        throw again instanceof OutOfMemoryError ? again.explained(pooled, this.holders()) : again;
      }
    }
  }

  /** Allocates from the engine and checks the size: kernels would write beyond a smaller buffer. */
  #asked(bytes: number): EngineBuffer {
    const memory = this.engine.alloc(bytes);
    if (memory.bytes >= bytes) return memory;
    this.#giveBack(memory);
    throw DeviceError.ofSize(this.engine.name, 'an allocation', bytes, memory.bytes);
  }

  /** What holds most memory: block sizes and how many of each are in use, the largest totals first. */
  holders(): readonly { readonly bytes: number; readonly count: number }[] {
    return this.#held
      .map((count, index) => ({ bytes: this.#blockOf(index), count }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.bytes * b.count - a.bytes * a.count)
      .slice(0, 5);
  }

  /** Notes that the device is lost: nothing is kept for reuse any more. */
  lose(error: DeviceLostError): void {
    this.lost = error;
    this.trim(0);
  }

  #giveBack(memory: EngineBuffer): void {
    try {
      this.engine.free(memory);
    } catch (error) {
      // A lost device has nothing to free.
      if (this.lost === null) throw error;
    }
  }

  /** Called by `release` when the count reaches zero. */
  recycle(buffer: PoolBuffer): void {
    this.#live--;
    this.#held[buffer.classIndex] = this.#held[buffer.classIndex]! - 1;
    this.#bytes -= buffer.bytes;
    const bytes = this.#blockOf(buffer.classIndex);
    if (this.lost !== null || this.#pooled + bytes > this.pooledLimit) {
      this.#giveBack(buffer.memory);
      return;
    }
    this.#pooled += bytes;
    const kept = this.#free[buffer.classIndex];
    if (kept === undefined) this.#free[buffer.classIndex] = [buffer.memory];
    else kept.push(buffer.memory);
  }

  /** Frees kept blocks of at least `least` bytes, largest first, until at most `limit` bytes are kept. */
  trim(limit: number, least: number = 0): void {
    const last = sizeClass(least);
    for (let index = this.#free.length - 1; index >= last && this.#pooled > limit; index--) {
      const kept = this.#free[index];
      while (kept !== undefined && kept.length > 0 && this.#pooled > limit) {
        this.#giveBack(kept.pop()!);
        this.#pooled -= classBytes(index);
      }
    }
  }

  /** Kept bytes that the last two windows did not need besides `bytes`, plus an eighth for what classes waste. */
  #unused(bytes: number): number {
    return Math.max(0, Math.max(this.#windowPeak, this.#lastWindowPeak) - bytes) * 1.125;
  }

  /**
   * Called once per flush. From time to time it frees what the last two windows of flushes did not need; when
   * usage rises, it hints to the garbage collector to look for unreachable tensors.
   */
  age(): void {
    if (this.#bytes < this.#floor) this.#floor = this.#bytes;
    else if (this.#bytes - this.#floor > hintAfter) {
      this.#floor = this.#bytes;
      hintCollector();
    }
    if (++this.#ticks % windowLength !== 0) return;
    this.trim(this.#unused(this.#bytes) + slack);
    this.#lastWindowPeak = this.#windowPeak;
    this.#windowPeak = this.#bytes;
  }

  memory(): PoolMemory {
    return { numBuffers: this.#live, bytes: this.#bytes, peakBytes: this.#peak, pooledBytes: this.#pooled };
  }
}

const pools = new WeakMap<IEngine, BufferPool>();

/** The pool of an engine; made on first use. */
export function poolOf(engine: IEngine): BufferPool {
  let pool = pools.get(engine);
  if (pool === undefined) pools.set(engine, (pool = new BufferPool(engine)));
  return pool;
}

/*
 * A hint for JavaScript's garbage collector.
 *
 * Tensors that are never disposed give their memory back when the garbage collector finds their handles. But it does not know that a handle
 * of a few bytes holds megabytes of device memory, and may wait for thousands of steps. Engines count memory that
 * is an ArrayBuffer; V8 starts a collection when much of it was allocated since the last one. So a large one is allocated,
 * never touched (the system gives it no pages) and dropped: a training loop without any scope then stays within a
 * few hundred megabytes instead of filling all memory. Results do not depend on it.
 */

const hintBytes = 1 << 26;

/** Hints given so far; counting them also keeps bundlers from dropping the allocation as unused. */
export let hints = 0;

export function hintCollector(): void {
  try {
    const { byteLength } = new ArrayBuffer(hintBytes);
    if (byteLength === hintBytes) hints++;
  } catch {
    // No memory even for that, so a collection comes anyway.
  }
}

// Conversion between host arrays and the engine's memory: the same bytes, unless an engine stores small dtypes in words.

/** Bytes of one element in the engine's memory. */
export function storageBytes(engine: IEngine, dtype: DType): number {
  return engine.caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
}

/** Elements as the engine stores them: in words, small integers are sign-extended; the upper bits are never read. */
export function toDevice(engine: IEngine, dtype: DType, data: TypedArray): ArrayBufferView {
  if (storageBytes(engine, dtype) === dtypeInfo[dtype].bytes) return data;
  return Uint32Array.from(data as Int32Array);
}

/** A host array from bytes of the engine's memory; reuses the bytes' buffer where possible. */
export function fromDevice(engine: IEngine, dtype: DType, bytes: Uint8Array, length: number): TypedArray {
  const own = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  if (storageBytes(engine, dtype) === dtypeInfo[dtype].bytes)
    return new hostArrays[dtype](own.buffer, own.byteOffset, length);
  const host = new hostArrays[dtype](length) as Int32Array;
  host.set(new Uint32Array(own.buffer, own.byteOffset, length));
  return host;
}

/** The bytes of a read as a host array. Throws DeviceError if the engine returned another number of elements. */
export function received(engine: IEngine, dtype: DType, bytes: Uint8Array, length: number): TypedArray {
  const asked = length * storageBytes(engine, dtype);
  if (bytes.byteLength !== asked) throw DeviceError.ofSize(engine.name, 'a read', asked, bytes.byteLength);
  return fromDevice(engine, dtype, bytes, length);
}

/** How plans, and bytes of tensors, reach engines: all go through these, so a profile replaces them to listen. None uses `this`. */
export class EngineCalls {
  submit(engine: IEngine, commands: readonly Command[]): void {
    engine.submit(commands);
  }

  upload(engine: IEngine, to: Binding, data: ArrayBufferView): void {
    engine.upload(to, data);
  }

  download(engine: IEngine, from: Binding, into: Uint8Array): Promise<Uint8Array> {
    return engine.download(from, into);
  }

  downloadSync(engine: IEngine, from: Binding, into: Uint8Array): Uint8Array {
    return engine.downloadSync!(from, into);
  }
}
