/** Batches of commands as cells of 8 bytes, which the addon reads: dispatches, copies, fills. The first cell says how many follow. */
import type { Binding, Command } from '@polygrad/core/engine';
import type { CodeTable, HeapBuffers } from '@polygrad/core/engine/shaping';
import type { Code, NativeKernel } from './kernel.ts';

const kinds = { dispatch: 0, copy: 1, fill: 2 } as const;

/** Cells whose memory cannot be detached. */
function cellsOf(count: number): Float64Array<SharedArrayBuffer> {
  return new Float64Array(new SharedArrayBuffer(8 * count));
}

export class CommandCells {
  readonly #buffers: HeapBuffers;
  readonly #codes: CodeTable<Code>;
  #f64 = cellsOf(256);
  #f32 = new Float32Array(this.#f64.buffer);
  #i32 = new Int32Array(this.#f64.buffer);
  #i64 = new BigInt64Array(this.#f64.buffer);
  #length = 1;

  constructor(buffers: HeapBuffers, codes: CodeTable<Code>) {
    this.#buffers = buffers;
    this.#codes = codes;
  }

  /** Begins a batch. */
  clear(): void {
    this.#length = 1;
  }

  /** The cells of the batch, complete. */
  close(): Float64Array {
    this.#f64[0] = this.#length - 1;
    return this.#f64;
  }

  add(c: Command): void {
    switch (c.kind) {
      case 'dispatch':
        this.#dispatch(c.kernel as NativeKernel, c.bindings, c.scalars);
        break;
      case 'copy':
        this.#three(
          kinds.copy,
          this.#buffers.addressOf(c.from, c.from.bytes),
          this.#buffers.addressOf(c.to, c.from.bytes),
          c.from.bytes,
        );
        break;
      case 'fill':
        this.#three(kinds.fill, this.#buffers.addressOf(c.to, c.to.bytes), c.to.bytes, 0);
        this.#i32[2 * (this.#length - 1)] = c.pattern;
        break;
      default:
        c satisfies never;
    }
  }

  #three(kind: number, first: number, second: number, third: number): void {
    this.#room(4);
    const [at, cells] = [this.#length, this.#f64];
    cells[at] = kind;
    cells[at + 1] = first;
    cells[at + 2] = second;
    cells[at + 3] = third;
    this.#length = at + 4;
  }

  #room(more: number): void {
    if (this.#length + more <= this.#f64.length) return;
    const old = this.#f64;
    this.#f64 = cellsOf(Math.max(old.length * 2, this.#length + more));
    this.#f64.set(old);
    this.#f32 = new Float32Array(this.#f64.buffer);
    this.#i32 = new Int32Array(this.#f64.buffer);
    this.#i64 = new BigInt64Array(this.#f64.buffer);
  }

  #dispatch(kernel: NativeKernel, bindings: readonly Binding[], scalars: readonly (number | bigint)[]): void {
    if (kernel.codes !== this.#codes)
      throw new Error('[native.submit] the kernel belongs to another engine: compile it with this one');
    const { least } = kernel;
    const { paramCount, head } = kernel.packed;
    if (kernel.released) throw new Error(`[native.submit] kernel '${kernel.name}' was released`);
    if (bindings.length !== paramCount || scalars.length !== head.scalars.length)
      throw new Error(
        `[native.submit] kernel '${kernel.name}' takes ${paramCount} tensors and ${head.scalars.length} scalars: got ${bindings.length} and ${scalars.length}`,
      );
    this.#room(3 + 2 * bindings.length + scalars.length);
    const cells = this.#f64;
    let at = this.#length;
    cells[at++] = kinds.dispatch;
    cells[at++] = kernel.code.number;
    cells[at++] = kernel.chunk;
    for (let i = 0; i < bindings.length; i++) {
      const b = bindings[i]!;
      if (!(b.bytes >= least[i]!))
        throw new Error(`[native.submit] kernel '${kernel.name}' needs ${least[i]} bytes at ${i}: got ${b.bytes}`);
      cells[at++] = this.#buffers.addressOf(b, b.bytes);
      cells[at++] = b.bytes;
    }
    this.#length = at;
    for (let i = 0; i < scalars.length; i++) {
      const value = scalars[i]!;
      const dtype = head.scalars[i]!;
      // Nearly all are one of these: numbers of users, and the sizes of shared plans.
      if (typeof value === 'number' && dtype === 'float32') this.#f32[2 * this.#length++] = value;
      else if (typeof value === 'number' && dtype === 'int32') this.#i32[2 * this.#length++] = value;
      else this.#scalar(dtype, value);
    }
  }

  #scalar(dtype: string, value: number | bigint): void {
    const at = this.#length++;
    if (dtype === 'int64' || dtype === 'uint64') {
      this.#i64[at] = BigInt(value);
      return;
    }
    const number = Number(value);
    if (dtype === 'float64') this.#f64[at] = number;
    else if (dtype === 'float32') this.#f32[2 * at] = number;
    else this.#i32[2 * at] = dtype === 'bool' ? Number(number !== 0) : number;
  }
}
