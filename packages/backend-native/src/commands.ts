/** Batches of commands as cells of 8 bytes, which the addon walks: dispatches, copies, fills. */
import type { Binding, Command } from '@polygrad/core/engine';
import type { CodeTable, HeapBuffers } from '@polygrad/core/engine/shaping';
import type { Code, NativeKernel } from './kernel.ts';

const kinds = { dispatch: 0, copy: 1, fill: 2 } as const;

export class CommandCells {
  readonly #buffers: HeapBuffers;
  readonly #codes: CodeTable<Code>;
  #f64 = new Float64Array(256);
  #f32 = new Float32Array(this.#f64.buffer);
  #i32 = new Int32Array(this.#f64.buffer);
  #i64 = new BigInt64Array(this.#f64.buffer);
  #length = 0;

  constructor(buffers: HeapBuffers, codes: CodeTable<Code>) {
    this.#buffers = buffers;
    this.#codes = codes;
  }

  get cells(): Float64Array {
    return this.#f64;
  }

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  add(c: Command): void {
    switch (c.kind) {
      case 'dispatch':
        this.#dispatch(c.kernel as NativeKernel, c.bindings, c.scalars);
        break;
      case 'copy':
        this.#push(
          kinds.copy,
          this.#buffers.addressOf(c.from, c.from.bytes),
          this.#buffers.addressOf(c.to, c.from.bytes),
          c.from.bytes,
        );
        break;
      case 'fill':
        this.#push(kinds.fill, this.#buffers.addressOf(c.to, c.to.bytes), c.to.bytes, 0);
        this.#i32[2 * (this.#length - 1)] = c.pattern;
        break;
      default:
        c satisfies never;
    }
  }

  #push(...values: readonly number[]): void {
    this.#room(values.length);
    for (const v of values) this.#f64[this.#length++] = v;
  }

  #room(more: number): void {
    if (this.#length + more <= this.#f64.length) return;
    const old = this.#f64;
    this.#f64 = new Float64Array(Math.max(old.length * 2, this.#length + more));
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
    this.#push(kinds.dispatch, kernel.code.number, kernel.chunk);
    for (let i = 0; i < bindings.length; i++) {
      const b = bindings[i]!;
      if (!(b.bytes >= least[i]!))
        throw new Error(`[native.submit] kernel '${kernel.name}' needs ${least[i]} bytes at ${i}: got ${b.bytes}`);
      this.#f64[this.#length++] = this.#buffers.addressOf(b, b.bytes);
      this.#f64[this.#length++] = b.bytes;
    }
    for (let i = 0; i < scalars.length; i++) this.#scalar(head.scalars[i]!, scalars[i]!);
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
