/**
 * Memory as the interpreter sees it: bounds, initialisation and races are checked on every access.
 *
 * Device tensors (PARAM) belong to all groups; SHARED belongs to one group; REG to one thread.
 */
import type { DType, TypedArray } from '../shape/dtype.ts';
import { getElement, hostArray, setElement } from '../shape/host.ts';
import type { Value } from './interpret-values.ts';

/** Who accesses, and in which stretch between barriers. */
export interface Accessor {
  readonly group: number;
  readonly thread: number;
  readonly epoch: number;
}

export interface Cells {
  read(index: number, by: Accessor): Value;
  write(index: number, value: Value, by: Accessor, atomic: boolean): void;
}

function checkBounds(name: string, what: string, index: number, length: number): void {
  if (!Number.isInteger(index) || index < 0 || index >= length) {
    throw new RangeError(`[interpret] ${what} of ${name} out of bounds: index ${index}, size ${length}`);
  }
}

function element(array: TypedArray, dtype: DType, index: number): Value {
  const x = getElement(array, dtype, index);
  return typeof x === 'boolean' ? Number(x) : x;
}

/** A tensor parameter. Two groups may not write one element, unless atomically. */
export class TensorCells implements Cells {
  readonly #name: string;
  readonly #array: TypedArray;
  readonly #dtype: DType;
  readonly #length: number;
  readonly #writers: Int32Array | null;

  constructor(name: string, array: TypedArray, dtype: DType, length: number, written: boolean) {
    if (array.length < length)
      throw new RangeError(`[interpret] ${name} has ${array.length} elements, the kernel needs ${length}`);
    this.#name = name;
    this.#array = array;
    this.#dtype = dtype;
    this.#length = length;
    this.#writers = written ? new Int32Array(length) : null;
  }

  read(index: number): Value {
    checkBounds(this.#name, 'load', index, this.#length);
    return element(this.#array, this.#dtype, index);
  }

  write(index: number, value: Value, by: Accessor, atomic: boolean): void {
    checkBounds(this.#name, 'store', index, this.#length);
    const writers = this.#writers;
    if (!writers) throw new Error(`[interpret] store to ${this.#name}, which is read-only`);
    if (!atomic) {
      const writer = writers[index] as number;
      if (writer !== 0 && writer !== by.group + 1) {
        throw new Error(
          `[interpret] groups ${writer - 1} and ${by.group} both write element ${index} of ${this.#name}`,
        );
      }
      writers[index] = by.group + 1;
    }
    setElement(this.#array, this.#dtype, index, value);
  }
}

/** Memory of one group or one thread: uninitialised at first, races between threads detected. */
export class PrivateCells implements Cells {
  readonly #name: string;
  readonly #dtype: DType;
  readonly #array: TypedArray;
  readonly #written: Uint8Array;
  /** Last writer and last reader per cell, as epoch * 65536 + thread + 1; 0 for none. */
  readonly #writer: Float64Array;
  readonly #reader: Float64Array;

  constructor(name: string, dtype: DType, length: number) {
    this.#name = name;
    this.#dtype = dtype;
    this.#array = hostArray(dtype, length);
    this.#written = new Uint8Array(length);
    this.#writer = new Float64Array(length);
    this.#reader = new Float64Array(length);
  }

  read(index: number, by: Accessor): Value {
    checkBounds(this.#name, 'load', index, this.#array.length);
    if (!this.#written[index]) throw new Error(`[interpret] ${this.#name}[${index}] is read before it is written`);
    this.#conflict(this.#writer[index] as number, index, by);
    this.#reader[index] = tag(by);
    return element(this.#array, this.#dtype, index);
  }

  write(index: number, value: Value, by: Accessor, atomic: boolean): void {
    checkBounds(this.#name, 'store', index, this.#array.length);
    if (!atomic) {
      this.#conflict(this.#writer[index] as number, index, by);
      this.#conflict(this.#reader[index] as number, index, by);
      this.#writer[index] = tag(by);
    }
    this.#written[index] = 1;
    setElement(this.#array, this.#dtype, index, value);
  }

  #conflict(last: number, index: number, by: Accessor): void {
    if (last === 0 || Math.floor(last / 65536) !== by.epoch) return;
    const thread = (last % 65536) - 1;
    if (thread !== by.thread) {
      throw new Error(
        `[interpret] race: threads ${thread} and ${by.thread} touch ${this.#name}[${index}] without a barrier between`,
      );
    }
  }
}

function tag(by: Accessor): number {
  return by.epoch * 65536 + by.thread + 1;
}
