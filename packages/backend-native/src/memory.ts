/** The engine's memory: one shared buffer that grows in place. */
import { OutOfMemoryError } from '@polygrad/core/engine';
import type { GrowingMemory } from '@polygrad/core/engine/shaping';

const pageBytes = 65536;

/** A method of current Node that its types lack. */
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
