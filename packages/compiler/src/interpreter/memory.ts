/**
 * Memory as the interpreter sees it: bounds, initialisation and races are checked on every access.
 *
 * Device tensors (PARAM) belong to all groups; SHARED belongs to one group; REG to one thread. Groups and intervals between barriers are
 * numbered over a whole run, so nothing must be cleared between groups.
 */
import { type DType, isSmallFloat, type TypedArray } from '../shape/dtype.ts';
import { fromBFloat16, fromFloat16, toBFloat16, toFloat16 } from '../shape/host.ts';
import { Accesses, type Barriers } from '../ir/parts.ts';
import type { Value } from './values.ts';

/** The accessing thread and group, numbered from 1. `epoch` is the group's interval between two barriers. */
export interface Accessor {
  group: number;
  thread: number;
  epoch: number;
}

export interface Cells {
  read(index: number, by: Accessor): Value;
  write(index: number, value: Value, by: Accessor): void;
  /** A write is in progress: until it is complete, the element may not be read. */
  forget(index: number, by: Accessor): void;
  /** Replaces the value atomically by the result of `combine`. */
  update(index: number, by: Accessor, combine: (old: Value) => Value): void;
}

function outOfBounds(name: string, what: string, index: number, length: number): never {
  throw new RangeError(`[interpret] ${what} of ${name} out of bounds: index ${index}, size ${length}`);
}

/** Elements of a typed array as values: 16-bit floats are stored as bits. */
function getter(array: TypedArray, dtype: DType): (index: number) => Value {
  if (dtype === 'float16') return (index) => fromFloat16(array[index] as number);
  if (dtype === 'bfloat16') return (index) => fromBFloat16(array[index] as number);
  return (index) => array[index]!;
}

function setter(array: TypedArray, dtype: DType): (index: number, value: Value) => void {
  const to = array as { [index: number]: Value };
  if (isSmallFloat(dtype)) {
    const bits = dtype === 'float16' ? toFloat16 : toBFloat16;
    return (index, value) => {
      to[index] = bits(value as number);
    };
  }
  return (index, value) => {
    to[index] = value;
  };
}

/** Several threads or groups. */
const MANY = -1;

/**
 * Which groups have read and written which bytes behind some parameters. Overlapping parameters share one
 * record, so that an in-place update is tracked once. Groups run in any order: no group may touch what another writes.
 */
export class GroupRecord {
  readonly #unit: number;
  readonly #start: number;
  readonly #writers: Int32Array;
  readonly #readers: Int32Array;
  readonly #atomics: Uint8Array;

  /** Bytes from `start` to `end` of a buffer, in units of the smallest element. */
  constructor(start: number, end: number, unit: number) {
    const count = Math.ceil((end - start) / unit);
    this.#unit = unit;
    this.#start = start;
    this.#writers = new Int32Array(count);
    this.#readers = new Int32Array(count);
    this.#atomics = new Uint8Array(count);
  }

  read(name: string, index: number, byte: number, bytes: number, { group }: Accessor): void {
    const first = (byte - this.#start) / this.#unit;
    for (let i = first; i < first + bytes / this.#unit; i++) {
      const writer = this.#writers[i]!;
      if (writer !== 0 && writer !== group) {
        throw new Error(
          `[interpret] group ${group - 1} reads element ${index} of ${name}, which ${groupName(writer)} wrote`,
        );
      }
      const reader = this.#readers[i]!;
      if (reader !== group) this.#readers[i] = reader === 0 ? group : MANY;
    }
  }

  write(name: string, index: number, byte: number, bytes: number, { group }: Accessor, atomic: boolean): void {
    const first = (byte - this.#start) / this.#unit;
    for (let i = first; i < first + bytes / this.#unit; i++) {
      const writer = this.#writers[i]!;
      const both = atomic && this.#atomics[i] === 1;
      if (writer !== 0 && writer !== group && !both) {
        throw new Error(`[interpret] ${pair(writer, group)} both write element ${index} of ${name}`);
      }
      const reader = this.#readers[i]!;
      if (reader !== 0 && reader !== group) {
        throw new Error(
          `[interpret] group ${group - 1} writes element ${index} of ${name}, which ${groupName(reader)} read`,
        );
      }
      this.#writers[i] = writer === 0 || writer === group ? group : MANY;
      if (writer === 0) this.#atomics[i] = atomic ? 1 : 0;
      else if (!atomic) this.#atomics[i] = 0;
    }
  }
}

function pair(other: number, group: number): string {
  return other === MANY ? `several groups and group ${group - 1}` : `groups ${other - 1} and ${group - 1}`;
}

function groupName(group: number): string {
  return group === MANY ? 'several groups' : `group ${group - 1}`;
}

/** A tensor parameter. `record` is null if its memory is only read. */
export class TensorCells implements Cells {
  readonly #name: string;
  readonly #length: number;
  readonly #bytes: number;
  readonly #offset: number;
  readonly #record: GroupRecord | null;
  readonly #writable: boolean;
  readonly #get: (index: number) => Value;
  readonly #set: (index: number, value: Value) => void;

  constructor(
    name: string,
    array: TypedArray,
    dtype: DType,
    length: number,
    writable: boolean,
    record: GroupRecord | null,
  ) {
    if (array.length < length) {
      throw new RangeError(`[interpret] ${name} has ${array.length} elements, the kernel needs ${length}`);
    }
    this.#name = name;
    this.#length = length;
    this.#bytes = array.BYTES_PER_ELEMENT;
    this.#offset = array.byteOffset;
    this.#record = record;
    this.#writable = writable;
    this.#get = getter(array, dtype);
    this.#set = setter(array, dtype);
  }

  #check(what: string, index: number): void {
    if (!(index >= 0 && index < this.#length)) outOfBounds(this.#name, what, index, this.#length);
  }

  read(index: number, by: Accessor): Value {
    this.#check('load', index);
    this.#record?.read(this.#name, index, this.#offset + index * this.#bytes, this.#bytes, by);
    return this.#get(index);
  }

  write(index: number, value: Value, by: Accessor): void {
    this.#mayWrite(index, by, false);
    this.#set(index, value);
  }

  forget(index: number, by: Accessor): void {
    this.#mayWrite(index, by, false);
  }

  update(index: number, by: Accessor, combine: (old: Value) => Value): void {
    this.#mayWrite(index, by, true);
    this.#set(index, combine(this.#get(index)));
  }

  #mayWrite(index: number, by: Accessor, atomic: boolean): void {
    this.#check('store', index);
    if (!this.#writable) throw new Error(`[interpret] store to ${this.#name}, which is read-only`);
    this.#record?.write(this.#name, index, this.#offset + index * this.#bytes, this.#bytes, by, atomic);
  }
}

/** Accesses to a cell in one epoch: the epoch, and the thread or MANY. */
class ThreadRecord {
  readonly #epochs: Int32Array;
  readonly #threads: Int32Array;

  constructor(length: number) {
    this.#epochs = new Int32Array(length);
    this.#threads = new Int32Array(length);
  }

  note(index: number, by: Accessor): void {
    const known = this.#epochs[index] === by.epoch;
    this.#threads[index] = known && this.#threads[index] !== by.thread ? MANY : by.thread;
    this.#epochs[index] = by.epoch;
  }

  /** Another thread than `by` with an access in the same epoch, or 0. */
  other(index: number, by: Accessor): number {
    if (this.#epochs[index] !== by.epoch) return 0;
    const thread = this.#threads[index]!;
    return thread === by.thread ? 0 : thread;
  }
}

/** Registers of one thread, or memory of a group of one: uninitialised at the start of every group. */
export class PrivateCells implements Cells {
  readonly name: string;
  readonly length: number;
  readonly #values: Value[];
  /** The group that last wrote each cell. */
  readonly #written: number[];

  constructor(name: string, length: number) {
    this.name = name;
    this.length = length;
    this.#values = new Array<Value>(length).fill(0.5);
    this.#written = new Array<number>(length).fill(0);
  }

  read(index: number, by: Accessor): Value {
    if (this.#written[index] !== by.group) {
      if (!(index >= 0 && index < this.length)) outOfBounds(this.name, 'load', index, this.length);
      throw new Error(`[interpret] ${this.name}[${index}] is read before it is written`);
    }
    return this.#values[index]!;
  }

  write(index: number, value: Value, by: Accessor): void {
    if (!(index >= 0 && index < this.length)) outOfBounds(this.name, 'store', index, this.length);
    this.#written[index] = by.group;
    this.#values[index] = value;
  }

  forget(index: number): void {
    if (!(index >= 0 && index < this.length)) outOfBounds(this.name, 'store', index, this.length);
    this.#written[index] = 0;
  }

  update(index: number, by: Accessor, combine: (old: Value) => Value): void {
    this.write(index, combine(this.read(index, by)), by);
  }
}

/** The same where some barriers are for parts of the group: all accesses that what comes may not be in order with. */
class PartRecord {
  readonly #accesses = new Accesses();
  readonly #barriers: Barriers;

  constructor(barriers: Barriers) {
    this.#barriers = barriers;
  }

  note(index: number, by: Accessor): void {
    this.#accesses.note(index, by.thread - 1, by.epoch);
  }

  other(index: number, by: Accessor): number {
    return this.#accesses.other(index, by.thread - 1, this.#barriers) + 1;
  }
}

/** Memory shared by the threads of a group; it detects races between them. `barriers`: those passed, where some are for parts. */
export class SharedCells implements Cells {
  readonly #cells: PrivateCells;
  readonly #writes: ThreadRecord | PartRecord;
  readonly #reads: ThreadRecord | PartRecord;
  readonly #updates: ThreadRecord | PartRecord;

  constructor(name: string, length: number, barriers: Barriers | null) {
    const record = (): ThreadRecord | PartRecord =>
      barriers === null ? new ThreadRecord(length) : new PartRecord(barriers);
    this.#cells = new PrivateCells(name, length);
    this.#writes = record();
    this.#reads = record();
    this.#updates = record();
  }

  read(index: number, by: Accessor): Value {
    const value = this.#cells.read(index, by);
    this.#conflict(this.#writes, index, by);
    this.#conflict(this.#updates, index, by);
    this.#reads.note(index, by);
    return value;
  }

  write(index: number, value: Value, by: Accessor): void {
    this.forget(index, by);
    this.#cells.write(index, value, by);
  }

  forget(index: number, by: Accessor): void {
    this.#conflict(this.#writes, index, by);
    this.#conflict(this.#reads, index, by);
    this.#conflict(this.#updates, index, by);
    this.#cells.forget(index);
    this.#writes.note(index, by);
  }

  update(index: number, by: Accessor, combine: (old: Value) => Value): void {
    this.#conflict(this.#writes, index, by);
    this.#conflict(this.#reads, index, by);
    this.#cells.update(index, by, combine);
    this.#updates.note(index, by);
  }

  #conflict(record: ThreadRecord | PartRecord, index: number, by: Accessor): void {
    const other = record.other(index, by);
    if (other === 0) return;
    const who = other === MANY ? 'several threads' : `threads ${other - 1} and ${by.thread - 1}`;
    throw new Error(`[interpret] race: ${who} touch ${this.#cells.name}[${index}] without a barrier between`);
  }
}
