/**
 * The plan cache: from the integers of a cone to what was made for them, compared exactly, forgotten by least recent use.
 */
import type { IntWriter } from './encode.ts';

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

  /** `drop` is called with values that are forgotten. */
  constructor(limit: number, drop: (value: T) => void) {
    this.limit = limit;
    this.#drop = drop;
  }

  get size(): number {
    return this.#size;
  }

  find(hash: number, key: IntWriter): T | undefined {
    const bucket = this.#entries.get(hash);
    if (bucket === undefined) return undefined;
    for (const entry of bucket) {
      if (sameInts(entry.key, key)) {
        entry.lastUse = ++this.#clock;
        return entry.value;
      }
    }
    return undefined;
  }

  add(hash: number, key: IntWriter, value: T): void {
    if (this.#size >= this.limit) this.#evict();
    const entry = { key: key.data.slice(0, key.length), hash, value, lastUse: ++this.#clock };
    const bucket = this.#entries.get(hash);
    if (bucket === undefined) this.#entries.set(hash, [entry]);
    else bucket.push(entry);
    this.#size++;
  }

  /** Forgets plans, those used last excepted, while there is too much of what they hold. */
  trim(isTooMuch: () => boolean): void {
    while (this.#size > 1 && isTooMuch()) this.#evict();
  }

  clear(): void {
    for (const bucket of this.#entries.values()) for (const entry of bucket) this.#drop(entry.value);
    this.#entries.clear();
    this.#size = 0;
  }

  /** Forgets the least recently used eighth, so that the search is paid rarely. */
  #evict(): void {
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

function sameInts(stored: Int32Array, key: IntWriter): boolean {
  const { data, length } = key;
  if (stored.length !== length) return false;
  for (let i = 0; i < length; i++) if (stored[i] !== data[i]) return false;
  return true;
}
