/** The engine's memory: one shared buffer that grows in place, and the buffers handed out from it. */
import { type Binding, type EngineBuffer, OutOfMemoryError, showAs } from '@polygrad/core/engine';
import type { Block, GrowingMemory, Heap } from '@polygrad/core/engine/shaping';

const pageBytes = 65536;

/** What current Node offers; its types do not say so yet. */
interface Growable {
  readonly byteLength: number;
  grow(bytes: number): void;
}

/** Memory whose address stays the same as it grows. */
export class SharedMemory implements GrowingMemory {
  readonly buffer: SharedArrayBuffer;

  constructor(bytes: number, limit: number) {
    const Shared = SharedArrayBuffer as unknown as new (bytes: number, options: object) => SharedArrayBuffer;
    for (let most = limit; ; most = Math.max(bytes, Math.floor(most / 2))) {
      try {
        this.buffer = new Shared(bytes, { maxByteLength: most });
        return;
      } catch {
        if (most === bytes) throw new OutOfMemoryError('native', { requested: bytes, live: 0, reserved: 0, limit });
      }
    }
  }

  grow(pages: number): void {
    const growable = this.buffer as unknown as Growable;
    growable.grow(growable.byteLength + pages * pageBytes);
  }
}

export class NativeBuffer implements EngineBuffer {
  readonly bytes: number;
  readonly heap: Heap;
  readonly address: number;
  block: Block | null;

  constructor(bytes: number, heap: Heap, block: Block) {
    this.bytes = bytes;
    this.heap = heap;
    this.block = block;
    this.address = block.address;
  }
}

showAs(NativeBuffer.prototype, ({ bytes }) => ({ bytes }), 'NativeBuffer');

/** A buffer that is this heap's and was not freed. */
export function ownBuffer(buffer: EngineBuffer, heap: Heap): NativeBuffer {
  const own = buffer as NativeBuffer;
  if (own.heap !== heap) throw new Error('[native] the buffer belongs to another engine: allocate it from this one');
  if (own.block === null) throw new Error('[native] the buffer was freed: its memory may hold something else by now');
  return own;
}

/** Where the first of `bytes` bytes of a binding lies, all of which are inside its buffer. */
export function placeOf({ buffer, offset }: Binding, bytes: number, heap: Heap): number {
  const own = ownBuffer(buffer, heap);
  if (!(offset >= 0 && offset + bytes <= own.bytes)) {
    throw new Error(`[native] a binding lies outside its buffer: offset ${offset} and ${bytes} bytes of ${own.bytes}`);
  }
  return own.address + offset;
}
