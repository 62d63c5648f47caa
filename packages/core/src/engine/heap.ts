/**
 * An allocator over a growing memory (two-level segregated fit with immediate merging), and the buffers of an engine with such
 * a memory. Source: M. Masmano et al., "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", 2004.
 *
 * All bookkeeping is on the JavaScript side, so allocation does not touch the memory itself. Allocation and freeing take
 * constant time except for growth. Blocks start at multiples of 64 bytes.
 */
import { fault } from '@polygrad/compiler/shape/errors';
import { showAs, told } from '#shown-as';
import type { Binding, EngineBuffer } from './engine.ts';
import { OutOfMemoryError } from './errors.ts';

const unit = 64;
const pageBytes = 65536;
const binsPerPower = 8;

/** Units in a page. */
const pageUnits = 64;
/** From this many units on, consecutive blocks start at different offsets in a page, `stagger` units apart. */
const leastStaggered = 1024;
const stagger = 10;

/**
 * Units of a block such that the next block starts at another offset in its page. Processors that check whether a load depends on
 * a recent store compare only offsets within a page (4K aliasing): loads at the offset of a store would wait for it.
 */
function staggered(units: number): number {
  return units < leastStaggered ? units : Math.ceil(units / pageUnits) * pageUnits + stagger;
}

/** A range of memory, free or allocated. */
export class Block {
  /** Byte address and size; both multiples of 64. */
  address: number;
  size: number;
  free = true;
  /** Neighbours by address. */
  before: Block | null = null;
  after: Block | null = null;
  /** Neighbours in the free list of `bin`. */
  previous: Block | null = null;
  next: Block | null = null;
  bin = -1;

  constructor(address: number, size: number) {
    this.address = address;
    this.size = size;
  }
}

/** Bin of a block of `units`: eight bins per power of two. */
function binOf(units: number): number {
  if (units < binsPerPower) return units;
  const power = 31 - Math.clz32(units);
  return (power - 2) * binsPerPower + ((units >>> (power - 3)) & 7);
}

/** First bin in which every block has at least `units`. */
function binAbove(units: number): number {
  if (units < binsPerPower) return units;
  const power = 31 - Math.clz32(units);
  return binOf(units + (1 << (power - 3)) - 1);
}

/** Memory that grows by pages of 64 KiB without moving, such as a WebAssembly.Memory. */
export interface GrowingMemory {
  readonly buffer: { readonly byteLength: number };
  grow(pages: number): unknown;
}

/**
 * Allocator for a growing memory; freed blocks merge with free neighbours.
 *
 * @example
 * const heap = new Heap(new WebAssembly.Memory({ initial: 1 }), 64, 1 << 20);
 * heap.live; // 0
 */
export class Heap {
  readonly #memory: GrowingMemory;
  readonly #limit: number;
  readonly #bins: (Block | null)[] = new Array(256).fill(null);
  readonly #filled = new Int32Array(8);
  #last: Block | null = null;
  #end: number;
  #live = 0;
  #count = 0;
  readonly #wide: boolean;
  readonly #onGrow: () => void;

  /** Manages the memory from `start` on, growing it up to `limit` bytes. `onGrow` runs after each growth. `wide`: 64-bit memory. */
  constructor(
    memory: GrowingMemory,
    start: number,
    limit: number,
    onGrow: () => void = () => {},
    wide: boolean = false,
  ) {
    this.#memory = memory;
    this.#limit = limit;
    this.#wide = wide;
    this.#onGrow = onGrow;
    this.#end = memory.buffer.byteLength;
    const first = Math.ceil(start / unit) * unit;
    if (this.#end > first) {
      this.#last = new Block(first, this.#end - first);
      this.#insert(this.#last);
    } else this.#end = first;
  }

  /** Allocated bytes. */
  get live(): number {
    return this.#live;
  }

  /** Allocated blocks. */
  get count(): number {
    return this.#count;
  }

  /** Bytes taken from the system. */
  get reserved(): number {
    return this.#end;
  }

  /**
   * A block of at least `bytes` bytes.
   *
   * @throws OutOfMemoryError if the memory cannot grow enough
   */
  alloc(bytes: number): Block {
    const units = Math.max(1, Math.ceil(bytes / unit));
    if (units * unit > this.#limit) throw this.#exhausted(bytes);
    const wanted = staggered(units);
    const block = this.#find(wanted) ?? this.#find(units) ?? this.#grow(units, bytes);
    this.#remove(block);
    const size = Math.min(block.size, wanted * unit);
    if (size < block.size) this.#split(block, size);
    block.free = false;
    this.#live += block.size;
    this.#count++;
    return block;
  }

  /** Takes a block back; it merges with free neighbours. */
  free(block: Block): void {
    if (block.free) throw fault('cpu.free', told && `block at ${block.address} is free already`);
    block.free = true;
    this.#live -= block.size;
    this.#count--;
    let merged = block;
    const { before, after } = block;
    if (after?.free) {
      this.#remove(after);
      this.#join(merged, after);
    }
    if (before?.free) {
      this.#remove(before);
      this.#join(before, merged);
      merged = before;
    }
    this.#insert(merged);
  }

  #find(units: number): Block | null {
    // A block of the bin below may fit too: sizes repeat from step to step, so a few are tried.
    let tries = 0;
    for (let b = this.#bins[binOf(units)] ?? null; b !== null && tries < 8; b = b.next, tries++) {
      if (b.size >= units * unit) return b;
    }
    const bin = binAbove(units);
    let word = bin >>> 5;
    let bits = this.#filled[word]! & (-1 << (bin & 31));
    while (bits === 0) {
      if (++word >= this.#filled.length) return null;
      bits = this.#filled[word]!;
    }
    return this.#bins[word * 32 + (31 - Math.clz32(bits & -bits))]!;
  }

  #grow(units: number, requested: number): Block {
    const tail = this.#last?.free ? this.#last : null;
    const missing = units * unit - (tail?.size ?? 0);
    const pages = Math.ceil(missing / pageBytes);
    // Grows by a quarter, at most 64 MiB at once: few growths, little unused.
    const wished = Math.max(pages, Math.min(this.#end / 4, 0x4000000) / pageBytes, 16);
    const room = Math.floor((this.#limit - this.#end) / pageBytes);
    if (pages > room) throw this.#exhausted(requested);
    const added = this.#tryGrow(Math.floor(Math.min(wished, room))) || this.#tryGrow(pages);
    if (added === 0) throw this.#exhausted(requested);
    const start = this.#end;
    this.#end = start + added * pageBytes;
    this.#onGrow();
    if (tail !== null) {
      this.#remove(tail);
      tail.size += added * pageBytes;
      this.#insert(tail);
      return tail;
    }
    const block = new Block(start, added * pageBytes);
    block.before = this.#last;
    if (this.#last !== null) this.#last.after = block;
    this.#last = block;
    this.#insert(block);
    return block;
  }

  #tryGrow(pages: number): number {
    try {
      this.#memory.grow((this.#wide ? BigInt(pages) : pages) as number);
      return pages;
    } catch {
      return 0;
    }
  }

  #exhausted(requested: number): OutOfMemoryError {
    return new OutOfMemoryError('cpu.alloc', { requested, live: this.#live, reserved: this.#end, limit: this.#limit });
  }

  #split(block: Block, size: number): void {
    const rest = new Block(block.address + size, block.size - size);
    block.size = size;
    rest.before = block;
    rest.after = block.after;
    if (block.after !== null) block.after.before = rest;
    else this.#last = rest;
    block.after = rest;
    this.#insert(rest);
  }

  /** Makes `second` part of `first`. */
  #join(first: Block, second: Block): void {
    first.size += second.size;
    first.after = second.after;
    if (second.after !== null) second.after.before = first;
    else this.#last = first;
  }

  #insert(block: Block): void {
    const bin = binOf(block.size / unit);
    const head = this.#bins[bin] ?? null;
    block.bin = bin;
    block.previous = null;
    block.next = head;
    if (head !== null) head.previous = block;
    this.#bins[bin] = block;
    this.#filled[bin >>> 5]! |= 1 << (bin & 31);
  }

  #remove(block: Block): void {
    const { bin, previous, next } = block;
    if (next !== null) next.previous = previous;
    if (previous !== null) previous.next = next;
    else {
      this.#bins[bin] = next;
      if (next === null) this.#filled[bin >>> 5]! &= ~(1 << (bin & 31));
    }
    block.bin = -1;
  }
}

class HeapBuffer implements EngineBuffer {
  readonly bytes: number;
  readonly heap: Heap;
  readonly address: number;
  block: Block | null;

  constructor(bytes: number, heap: Heap) {
    this.bytes = bytes;
    this.heap = heap;
    this.block = heap.alloc(bytes);
    this.address = this.block.address;
  }
}

showAs(HeapBuffer.prototype, ({ bytes }) => ({ bytes }), 'HeapBuffer');

/**
 * The buffers of an engine whose memory is a heap: allocated, counted and checked; and the addresses of bindings.
 *
 * @example
 * const buffers = new HeapBuffers('mine', new Heap(new WebAssembly.Memory({ initial: 1 }), 64, 1 << 20));
 * const buffer = buffers.alloc(12);
 * buffers.addressOf({ buffer, offset: 4, bytes: 8 }, 8) >= 68; // true
 */
export class HeapBuffers {
  readonly heap: Heap;
  readonly #engine: string;
  #bytes = 0;
  #count = 0;

  /** @param engine the name that errors begin with */
  constructor(engine: string, heap: Heap) {
    this.#engine = engine;
    this.heap = heap;
  }

  /** Bytes of all buffers. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#count;
  }

  alloc(bytes: number): EngineBuffer {
    const buffer = new HeapBuffer(bytes, this.heap);
    this.#bytes += bytes;
    this.#count++;
    return buffer;
  }

  free(buffer: EngineBuffer): void {
    const own = this.#own(buffer);
    this.heap.free(own.block!);
    own.block = null;
    this.#bytes -= own.bytes;
    this.#count--;
  }

  /** Forgets all buffers, because the engine has ended. */
  clear(): void {
    this.#bytes = this.#count = 0;
  }

  /** Checks that a buffer is of this heap and not freed. */
  #own(buffer: EngineBuffer): HeapBuffer {
    const own = buffer as HeapBuffer;
    if (own.heap !== this.heap)
      throw fault(this.#engine, told && 'the buffer belongs to another engine: allocate it from this one');
    if (own.block === null)
      throw fault(this.#engine, told && 'the buffer was freed: its memory may hold something else by now');
    return own;
  }

  /** Address of a binding's first byte; throws unless its `bytes` bytes are inside its buffer. */
  addressOf({ buffer, offset }: Binding, bytes: number): number {
    const own = buffer as HeapBuffer;
    // Asked for every binding of every batch.
    if (own.heap !== this.heap || own.block === null) this.#own(buffer);
    if (!(offset >= 0 && offset + bytes <= own.bytes))
      throw fault(
        this.#engine,
        told && `a binding lies outside its buffer: offset ${offset} and ${bytes} bytes of ${own.bytes}`,
      );
    return own.address + offset;
  }
}
