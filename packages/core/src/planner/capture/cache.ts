/**
 * The plan cache: a map from structure keys (lists of integers) to plans, and the writer of such keys.
 *
 * A hash only finds candidates; keys are compared as a whole. The least recently used entries are evicted.
 */
import type { Attrs, PrimitiveName } from '../../graph/node.ts';
import { definitionOf } from '../../graph/definition.ts';

// Keys. Each primitive's definition writes its own attributes (`encode`).

/** Growing list of 32-bit integers. Call `reserve` once per node; `push` does not check the capacity. */
export class IntWriter {
  data: Int32Array;
  length = 0;
  /** Set when a loop, or a value of a loop, was written: a plan cannot hold all of it. The code that runs the loop resets it. */
  declare looped?: boolean;
  /** Set when a node bound to an engine was written (`to`). The code that looks at it resets it. */
  declare placed?: boolean;

  constructor(capacity = 1024) {
    this.data = new Int32Array(capacity);
  }

  reserve(count: number): void {
    if (this.length + count <= this.data.length) return;
    const bigger = new Int32Array(Math.max(this.data.length * 2, this.length + count));
    bigger.set(this.data);
    this.data = bigger;
  }

  push(value: number): void {
    this.data[this.length++] = value;
  }

  list(values: readonly number[]): void {
    const { data } = this;
    let at = this.length;
    data[at++] = values.length;
    for (let i = 0; i < values.length; i++) data[at++] = values[i]!;
    this.length = at;
  }

  get hash(): number {
    return hashInts(this.data, this.length);
  }

  /** The integers as a list. */
  values(): number[] {
    return Array.from(this.data.subarray(0, this.length));
  }

  /** Appends the length of another writer, then all of its integers. */
  append({ data, length }: IntWriter): void {
    this.push(length);
    for (let i = 0; i < length; i++) this.data[this.length + i] = data[i]!;
    this.length += length;
  }

  /** Writes a tag for number or bigint, then its 64 bits (of a bigint the lowest), so that 0 and -0 differ. */
  number(value: number | bigint): void {
    this.data[this.length++] = typeof value === 'bigint' ? 1 : 0;
    if (typeof value === 'bigint') bigBits[0] = BigInt.asIntN(64, value);
    else floatBits[0] = value;
    this.data[this.length++] = intBits[0]!;
    this.data[this.length++] = intBits[1]!;
  }
}

/** A hash of integers. Two halves are computed side by side, so that the processor overlaps their multiplications. */
function hashInts(data: Int32Array, length: number): number {
  let a = 0x2545f491;
  let b = length;
  for (let i = 1; i < length; i += 2) {
    a = Math.imul(a ^ data[i - 1]!, 0x9e3779b1);
    b = Math.imul(b ^ data[i]!, 0x85ebca6b);
    a ^= b >>> 15;
  }
  if ((length & 1) === 1) b ^= data[length - 1]!;
  a = Math.imul(a ^ (b >>> 13), 0xc2b2ae35) ^ b;
  return a ^ (a >>> 15);
}

/** Integers as a key of a Map, in large pieces: letter by letter it would stay a tree of strings, of 60 bytes for each integer. */
export function textOf({ data, length }: IntWriter): string {
  const letters = new Uint16Array(data.buffer, 0, 2 * length);
  let text = '';
  for (let i = 0; i < letters.length; i += 4096)
    text += String.fromCharCode.apply(null, letters.subarray(i, i + 4096) as ArrayLike<number> as number[]);
  return text;
}

const floatBits = new Float64Array(1);
const intBits = new Int32Array(floatBits.buffer);
const bigBits = new BigInt64Array(floatBits.buffer);

/** Upper bound of the integers that a node's attributes take per axis; for `reserve`. */
export const intsPerAxis = 8;

/** Writes the attributes of a node. */
export function encodeAttr<P extends PrimitiveName>(op: P, attr: Attrs[P], out: IntWriter): void {
  definitionOf(op).encode?.(attr, out);
}

/** The integers of a writer. */
type Key = Pick<IntWriter, 'data' | 'length' | 'hash'>;

interface Entry<T> {
  readonly key: Int32Array;
  readonly hash: number;
  readonly value: T;
  lastUse: number;
}

export class PlanCache<T> {
  readonly limit: number;
  readonly #drop: (value: T) => void;
  /** Entries by hash; nearly always one. */
  readonly #entries = new Map<number, Entry<T>[]>();
  #size = 0;
  #clock = 0;
  /** What was found last; null once anything is dropped. */
  #last: Entry<T> | null = null;

  /** @param drop called with each value that is evicted */
  constructor(limit: number, drop: (value: T) => void) {
    this.limit = limit;
    this.#drop = drop;
  }

  get size(): number {
    return this.#size;
  }

  find(key: Key): T | undefined {
    const last = this.#last;
    // Loops often ask for the same plan again, and need no hash.
    if (last !== null && sameInts(last.key, key)) {
      last.lastUse = ++this.#clock;
      return last.value;
    }
    const bucket = this.#entries.get(key.hash);
    if (bucket === undefined) return undefined;
    for (const entry of bucket) {
      if (sameInts(entry.key, key)) {
        entry.lastUse = ++this.#clock;
        this.#last = entry;
        return entry.value;
      }
    }
    return undefined;
  }

  add(key: Key, value: T): void {
    if (this.#size >= this.limit) this.#evict();
    const { hash } = key;
    const entry = { key: key.data.slice(0, key.length), hash, value, lastUse: ++this.#clock };
    const bucket = this.#entries.get(hash);
    if (bucket === undefined) this.#entries.set(hash, [entry]);
    else bucket.push(entry);
    this.#size++;
  }

  /** Evicts the least recently used plans until `isTooMuch` is false. The last plan stays. */
  trim(isTooMuch: () => boolean): void {
    while (this.#size > 1 && isTooMuch()) this.#evict();
  }

  forEach(f: (value: T) => void): void {
    for (const bucket of this.#entries.values()) for (const { value } of bucket) f(value);
  }

  clear(): void {
    for (const bucket of this.#entries.values()) for (const entry of bucket) this.#drop(entry.value);
    this.#entries.clear();
    this.#size = 0;
    this.#last = null;
  }

  /** Evicts the least recently used eighth at once, so that the search for them is rare. */
  #evict(): void {
    this.#last = null;
    const all = [...this.#entries.values()].flat().sort((a, b) => a.lastUse - b.lastUse);
    for (const entry of all.slice(0, Math.max(1, this.#size >> 3))) {
      const bucket = this.#entries.get(entry.hash)!.filter((other) => other !== entry);
      if (bucket.length === 0) this.#entries.delete(entry.hash);
      else this.#entries.set(entry.hash, bucket);
      this.#size--;
      this.#drop(entry.value);
    }
  }
}

function sameInts(stored: Int32Array, { data, length }: Key): boolean {
  if (stored.length !== length) return false;
  for (let i = 0; i < length; i++) if (stored[i] !== data[i]) return false;
  return true;
}
