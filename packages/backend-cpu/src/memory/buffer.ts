/** A buffer as the engine hands it out: a block of the heap. */
import type { EngineBuffer } from '@polygrad/core/engine';
import type { Block, Heap } from './heap.ts';

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
