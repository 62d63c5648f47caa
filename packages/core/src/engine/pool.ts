/**
 * Counted buffers over an engine: who holds device memory, and what becomes of it when nobody does.
 *
 * A PoolBuffer is shared by counting (`retain`, `release`); at zero its memory goes to a free list of its size class and
 * serves the next request of that class. Engines run commands in order, so memory may be handed on while commands that
 * use it are still queued. This file knows no tensor; arenas inside one plan are the business of planner/memory.ts.
 */
import type { NodeStorage, StorageBuffer } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import type { EngineBuffer, IEngine } from './engine.ts';
import { DeviceError, type DeviceLostError, OutOfMemoryError } from './errors.ts';
import { type DType, dtypeInfo, type TypedArray } from '@polygrad/compiler/shape/dtype';
import { hostArrays } from '@polygrad/compiler/shape/host';

/** What `memory()` reports for one engine. */
export interface PoolMemory {
  /** Buffers that something holds. */
  readonly numBuffers: number;
  /** Bytes asked for by those buffers. */
  readonly bytes: number;
  /** Largest value `bytes` ever had. */
  readonly peakBytes: number;
  /** Bytes kept for reuse. */
  readonly pooledBytes: number;
}

/** Smallest block; also the alignment every block has at least on all engines. */
const minBlock = 64;

/** Number of the size class of a request: eight classes per power of two, so at most one eighth is wasted. */
export function sizeClass(bytes: number): number {
  if (bytes <= minBlock) return 0;
  const exponent = Math.floor(Math.log2(bytes - 1));
  const step = 2 ** (exponent - 3);
  return (exponent - 6) * 8 + Math.ceil((bytes - 2 ** exponent) / step);
}

/** Bytes of the blocks of a class. */
export function classBytes(index: number): number {
  if (index === 0) return minBlock;
  const exponent = Math.floor((index - 1) / 8) + 6;
  const eighths = index - (exponent - 6) * 8;
  return 2 ** exponent + eighths * 2 ** (exponent - 3);
}

/** How many calls of `age` make one window. */
const windowLength = 64;
/** The collector is told when this much more is held than at the lowest point since it was told last. */
const hintAfter = 1 << 27;
/** Kept beyond what a window used, so that small changes cost nothing. */
const slack = 1 << 26;
/** Bytes of blocks that are given back for one of another class, where an engine joins them. */
const leastJoined = 1 << 20;

/** Part of a buffer's elements in another engine's memory. */
export interface BufferCopy {
  readonly from: number;
  readonly to: number;
  readonly buffer: PoolBuffer;
  /** Whose value was looked for here last, and where it is. */
  found: { readonly of: NodeStorage; readonly storage: NodeStorage } | null;
}

let nextId = 1;

/** A counted buffer. Made with a count of one. */
export class PoolBuffer implements StorageBuffer {
  readonly id: number;
  readonly pool: BufferPool;
  readonly memory: EngineBuffer;
  /** Bytes asked for; the block behind it may be larger. */
  readonly bytes: number;
  readonly classIndex: number;
  refs: number;
  /** Scratch of a walk over buffers, as on graph nodes: `index` is valid only under the walk's own `mark`. */
  mark = 0;
  index = 0;
  /** Copies on other engines (runtime/transfers.ts), given back with the buffer. */
  copies: BufferCopy[] | null = null;

  constructor(pool: BufferPool, memory: EngineBuffer, bytes: number, classIndex: number) {
    this.id = nextId++;
    this.pool = pool;
    this.memory = memory;
    this.bytes = bytes;
    this.classIndex = classIndex;
    this.refs = 1;
  }

  retain(): void {
    if (this.refs <= 0) throw new Error(`[pool] buffer ${this.id} is used after it was given back`);
    this.refs++;
  }

  release(): void {
    if (this.refs <= 0) throw new Error(`[pool] buffer ${this.id} is given back twice`);
    if (--this.refs === 0) {
      if (this.copies !== null) this.dropCopies();
      this.pool.recycle(this);
    }
  }

  /** The contents change or nobody needs them: lets copies on other engines go. */
  dropCopies(): void {
    if (this.copies === null) return;
    const { copies } = this;
    this.copies = null;
    for (const { buffer } of copies) buffer.release();
  }
}

/** All buffers of one engine. */
export class BufferPool {
  readonly engine: IEngine;
  /** Blocks are kept for reuse only up to this many bytes. */
  pooledLimit: number = 1 << 30;
  /** Why the engine's memory is gone, once it is. */
  lost: DeviceLostError | null = null;
  /** The engine is known to be disposed: copies there serve nobody. */
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
  /** Least `bytes` since the collector was told last. */
  #floor = 0;
  /** Bytes of the blocks of classes seen so far. */
  readonly #blockBytes: number[] = [];
  /** Buffers held, by class. */
  readonly #held: number[] = [];

  constructor(engine: IEngine) {
    this.engine = engine;
  }

  /** Uninitialised memory with a count of one; `index` is the size class where the caller knows it. Throws the engine's OutOfMemoryError when a trimmed pool does not help either. */
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
    // Memory that was in use before: the first touch of a new page costs more than what is computed there.
    if (bytes >= leastJoined && this.engine.caps.joinsFreed === true)
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

  /** Memory of the engine, of no fewer bytes than it was asked for: kernels would write beyond them. */
  #asked(bytes: number): EngineBuffer {
    const memory = this.engine.alloc(bytes);
    if (memory.bytes >= bytes) return memory;
    this.#giveBack(memory);
    throw DeviceError.ofSize(this.engine.name, 'an allocation', bytes, memory.bytes);
  }

  /** Who holds most: sizes of blocks and how many of each are in use, the largest totals first. */
  holders(): readonly { readonly bytes: number; readonly count: number }[] {
    return this.#held
      .map((count, index) => ({ bytes: this.#blockOf(index), count }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.bytes * b.count - a.bytes * a.count)
      .slice(0, 5);
  }

  /** The device is gone: nothing is kept for reuse any more. */
  lose(error: DeviceLostError): void {
    this.lost = error;
    this.trim(0);
  }

  #giveBack(memory: EngineBuffer): void {
    try {
      this.engine.free(memory);
    } catch (error) {
      // A lost device has nothing to give back.
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

  /** Gives kept blocks of at least `least` bytes back to the engine, largest first, until at most `limit` bytes are kept. */
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

  /** Bytes that the last two windows had in use beside so many, and an eighth for what classes waste. */
  #unused(bytes: number): number {
    return Math.max(0, Math.max(this.#windowPeak, this.#lastWindowPeak) - bytes) * 1.125;
  }

  /**
   * Called once per flush: from time to time, gives back what the last two windows of flushes had no use for; when ever
   * more is held, asks the collector to look for tensors nobody knows any more.
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
 * Tensors that nobody disposes are given back when the collector finds their handles, but it does not know that a handle
 * of a few bytes holds megabytes of device memory, and may wait for thousands of steps. Engines count such memory when
 * it is an ArrayBuffer; V8 starts a collection when much of it was made since the last one. So a large one is made,
 * never touched (the system gives it no pages) and dropped: a training loop without any scope then stays within a
 * few hundred megabytes where it would fill all memory. Nothing depends on it.
 */

const hintBytes = 1 << 26;

/** Hints given so far; counting them also keeps bundlers from dropping the allocation as unused. */
export let hints = 0;

export function hintCollector(): void {
  try {
    const { byteLength } = new ArrayBuffer(hintBytes);
    if (byteLength === hintBytes) hints++;
  } catch {
    // No room even for that: the collector has reason enough by itself.
  }
}

// Host arrays and how an engine stores their elements: the same bytes, except where an engine keeps small ones in words.

/** Bytes of one element in the engine's memory. */
export function storageBytes(engine: IEngine, dtype: DType): number {
  return engine.caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
}

/** Elements as the engine stores them: in words, a small integer is extended by its sign, which nobody looks at. */
export function toDevice(engine: IEngine, dtype: DType, data: TypedArray): ArrayBufferView {
  if (storageBytes(engine, dtype) === dtypeInfo[dtype].bytes) return data;
  return Uint32Array.from(data as Int32Array);
}

/** A host array from bytes of the engine's memory; takes the bytes over where it can. */
export function fromDevice(engine: IEngine, dtype: DType, bytes: Uint8Array, length: number): TypedArray {
  const own = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  if (storageBytes(engine, dtype) === dtypeInfo[dtype].bytes)
    return new hostArrays[dtype](own.buffer, own.byteOffset, length);
  const host = new hostArrays[dtype](length) as Int32Array;
  host.set(new Uint32Array(own.buffer, own.byteOffset, length));
  return host;
}

/** What a read of so many elements gave, as an array of the host. Throws DeviceError where the engine gave more or less. */
export function received(engine: IEngine, dtype: DType, bytes: Uint8Array, length: number): TypedArray {
  const asked = length * storageBytes(engine, dtype);
  if (bytes.byteLength !== asked) throw DeviceError.ofSize(engine.name, 'a read', asked, bytes.byteLength);
  return fromDevice(engine, dtype, bytes, length);
}
