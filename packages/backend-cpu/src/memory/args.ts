/**
 * The args block at the start of memory: what a dispatch is called with. Addresses (or sizes) first, then scalars, a
 * slot of 8 bytes each.
 */
import { argsAt, heapAt, scalarOffset } from './layout.ts';

/** How a scalar is written: float32, float64, integer of 32 bits, bool, integer of 64 bits. */
export type ScalarKind = 0 | 1 | 2 | 3 | 4;

export class ArgsBlock {
  readonly #memory: WebAssembly.Memory;
  readonly #wide: boolean;
  #i32!: Int32Array;
  #f32!: Float32Array;
  #f64!: Float64Array;
  #i64!: BigInt64Array;

  /** `wide`: addresses have 64 bits. */
  constructor(memory: WebAssembly.Memory, wide: boolean) {
    this.#memory = memory;
    this.#wide = wide;
    this.refresh();
  }

  /** The memory has grown: old views may have lost it. */
  refresh(): void {
    const { buffer } = this.#memory;
    this.#i32 = new Int32Array(buffer, 0, heapAt / 4);
    this.#f32 = new Float32Array(buffer, 0, heapAt / 4);
    this.#f64 = new Float64Array(buffer, 0, heapAt / 8);
    this.#i64 = new BigInt64Array(buffer, 0, heapAt / 8);
  }

  /** Writes an address or a size. */
  setPointer(slot: number, value: number): void {
    const at = argsAt / 4 + 2 * slot;
    // What is there already is not written again: workers keep the line in their caches.
    if (this.#i32[at] !== value) this.#i32[at] = value;
    if (this.#wide) this.#i32[at + 1] = value / 2 ** 32;
  }

  setScalar(slot: number, kind: ScalarKind, value: number | bigint): void {
    const at = (argsAt + scalarOffset) / 8 + slot;
    if (kind === 4) {
      this.#i64[at] = BigInt(value);
      return;
    }
    const number = Number(value);
    if (kind === 0) this.#f32[2 * at] = number;
    else if (kind === 1) this.#f64[at] = number;
    else this.#i32[2 * at] = kind === 2 ? number : number === 0 ? 0 : 1;
  }
}
