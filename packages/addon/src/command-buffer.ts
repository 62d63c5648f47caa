/**
 * Batches of commands as numbers: one native call takes them all.
 *
 * A command is a run of cells of eight bytes: its kind, how many cells it has, then what native/driver.h of the addon says. Numbers are float64;
 * a scalar argument is the bytes of its type at the start of a cell.
 */
import type { Groups } from '@polygrad/core/engine';
import type { DType } from '@polygrad/core/kernel';

const dispatchKind = 1;
const copyKind = 2;
const fillKind = 3;

/**
 * Writes one batch after the other into the same memory.
 *
 * @example
 * const batch = new CommandBuffer();
 * batch.start();
 * batch.fill(0, 16, 4, 0xff); // the buffer 0, four bytes from 16 on
 * batch.count; // 6
 */
export class CommandBuffer {
  /** Cells written. */
  count = 0;
  /** Commands written. */
  commands = 0;
  #cells = new Float64Array(1024);
  #bytes = new Uint8Array(this.#cells.buffer);
  #floats = new Float32Array(this.#cells.buffer);
  #ints = new Int32Array(this.#cells.buffer);
  #longs = new BigInt64Array(this.#cells.buffer);

  /** The memory of the cells. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  start(): void {
    this.count = 0;
    this.commands = 0;
  }

  copy(from: number, fromOffset: number, to: number, toOffset: number, bytes: number): void {
    const at = this.#room(7);
    const c = this.#cells;
    c[at] = copyKind;
    c[at + 1] = 7;
    c[at + 2] = from;
    c[at + 3] = fromOffset;
    c[at + 4] = to;
    c[at + 5] = toOffset;
    c[at + 6] = bytes;
  }

  fill(to: number, offset: number, bytes: number, pattern: number): void {
    const at = this.#room(6);
    const c = this.#cells;
    c[at] = fillKind;
    c[at + 1] = 6;
    c[at + 2] = to;
    c[at + 3] = offset;
    c[at + 4] = bytes;
    c[at + 5] = pattern >>> 0;
  }

  /** A command of the addon's own: its kind, and what follows its length. */
  other(kind: number, cells: readonly number[]): void {
    const at = this.#room(2 + cells.length);
    this.#cells[at] = kind;
    this.#cells[at + 1] = 2 + cells.length;
    this.#cells.set(cells, at + 2);
  }

  /** Starts a dispatch of all groups, or of so many along each axis; its arguments are written to the cells from the one this gives. */
  dispatch(kernel: number, argumentCount: number, groups: Groups | null): number {
    const at = this.#room(6 + argumentCount);
    this.#cells[at] = dispatchKind;
    this.#cells[at + 1] = 6 + argumentCount;
    this.#cells[at + 2] = kernel;
    for (let axis = 0; axis < 3; axis++) this.#cells[at + 3 + axis] = groups === null ? 0 : groups[axis]!;
    return at + 6;
  }

  /** A plain number: that of a buffer, say. */
  number(cell: number, value: number): void {
    this.#cells[cell] = value;
  }

  /** An offset in elements, as ulong. */
  offset(cell: number, elements: number): void {
    this.#ints[2 * cell] = (elements % 2 ** 32) | 0;
    this.#ints[2 * cell + 1] = Math.floor(elements / 2 ** 32);
  }

  scalar(cell: number, dtype: DType, value: number | bigint): void {
    switch (dtype) {
      case 'float32':
      case 'float16':
      case 'bfloat16':
        this.#floats[2 * cell] = Number(value);
        return;
      case 'float64':
        this.#cells[cell] = Number(value);
        return;
      case 'int64':
      case 'uint64':
        this.#longs[cell] = BigInt.asIntN(64, BigInt(value));
        return;
      case 'bool':
        this.#ints[2 * cell] = Number(value) !== 0 ? 1 : 0;
        return;
      case 'int8':
      case 'uint8':
      case 'int16':
      case 'uint16':
      case 'int32':
      case 'uint32':
        this.#ints[2 * cell] = Number(value) | 0;
        return;
      default:
        dtype satisfies never;
    }
  }

  #room(cells: number): number {
    const at = this.count;
    this.count += cells;
    this.commands++;
    if (this.count > this.#cells.length) {
      const more = new Float64Array(2 ** Math.ceil(Math.log2(this.count) + 1));
      more.set(this.#cells);
      this.#cells = more;
      this.#bytes = new Uint8Array(more.buffer);
      this.#floats = new Float32Array(more.buffer);
      this.#ints = new Int32Array(more.buffer);
      this.#longs = new BigInt64Array(more.buffer);
    }
    return at;
  }
}
