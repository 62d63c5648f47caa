/** A buffer as the engine hands it out: a block of the heap; and the addresses of bindings to it. */
import { type Binding, type EngineBuffer, showAs } from '@polygrad/core/engine';
import type { Block, Heap } from '@polygrad/core/engine/shaping';

export class CpuBuffer implements EngineBuffer {
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

showAs(CpuBuffer.prototype, ({ bytes }) => ({ bytes }), 'CpuBuffer');

/** A buffer that is this heap's and was not freed. */
export function ownBuffer(buffer: EngineBuffer, heap: Heap): CpuBuffer {
  const own = buffer as CpuBuffer;
  if (own.heap !== heap) throw new Error('[cpu] the buffer belongs to another engine: allocate it from this one');
  if (own.block === null) throw new Error('[cpu] the buffer was freed: its memory may hold something else by now');
  return own;
}

/** Address of the first of `bytes` bytes of a binding, all of which lie inside its buffer. */
export function addressOf({ buffer, offset }: Binding, bytes: number, heap: Heap): number {
  const own = ownBuffer(buffer, heap);
  if (!(offset >= 0 && offset + bytes <= own.bytes)) {
    throw new Error(`[cpu] a binding lies outside its buffer: offset ${offset} and ${bytes} bytes of ${own.bytes}`);
  }
  return own.address + offset;
}
