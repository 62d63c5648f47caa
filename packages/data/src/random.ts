/**
 * Counter-based random numbers for shuffling: Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", 2011). The n-th number depends on the key and on n alone, so an epoch's order
 * can be made without making those before it. Random tensors are the core package's business, which has the same rounds (`tensor/random-key.ts`): this
 * package knows no other, so that loaders and workers carry nothing of it.
 */
import { checkFits, checkInteger, mostRows } from './errors.ts';

const rotated = (x: number, by: number): number => (x << by) | (x >>> -by);

/** Encrypts the counter (c0, c1) under the key (k0, k1) into `out[0]`, `out[1]`, all 32-bit words. */
export function threefry2x32(k0: number, k1: number, c0: number, c1: number, out: Uint32Array): void {
  // The words of the key, turned by one for every four rounds. Without lists, and turned by constants: half of the time.
  let [a, b] = [k0 | 0, k1 | 0];
  let c = a ^ b ^ 0x1bd11bda;
  let x0 = (c0 + a) | 0;
  let x1 = (c1 + b) | 0;
  for (let group = 1; ; group += 2) {
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 13) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 15) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 26) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 6) ^ x0;
    x0 = (x0 + b) | 0;
    x1 = (x1 + c + group) | 0;
    if (group === 5) break;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 17) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 29) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 16) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotated(x1, 24) ^ x0;
    x0 = (x0 + c) | 0;
    x1 = (x1 + a + group + 1) | 0;
    [a, b, c] = [c, a, b];
  }
  out[0] = x0;
  out[1] = x1;
}

/**
 * A stream of uniform 32-bit words that a seed and a stream number determine.
 *
 * @example
 * const stream = new RandomStream(42);
 * stream.next() === new RandomStream(42).next(); // true
 */
export class RandomStream {
  readonly #key: Uint32Array = new Uint32Array(2);
  readonly #words: Uint32Array = new Uint32Array(2);
  #counter = 0;
  #spare = false;

  /** @param seed an integer, safe in a double; @param stream which of the seed's streams (for instance the epoch) */
  constructor(seed: number, stream = 0) {
    checkFits('RandomStream', 'seed', seed, Number.isSafeInteger(seed), 'an integer');
    checkFits('RandomStream', 'stream', stream, Number.isSafeInteger(stream), 'an integer');
    const low = seed >>> 0;
    const high = Math.floor(seed / 0x100000000) >>> 0;
    threefry2x32(low, high, stream >>> 0, Math.floor(stream / 0x100000000) >>> 0, this.#key);
  }

  /** The next word: an integer from 0 to 2^32 - 1. */
  next(): number {
    if (this.#spare) {
      this.#spare = false;
      return this.#words[1]!;
    }
    const counter = this.#counter++;
    threefry2x32(this.#key[0]!, this.#key[1]!, counter >>> 0, Math.floor(counter / 0x100000000), this.#words);
    this.#spare = true;
    return this.#words[0]!;
  }

  /** An integer from 0 to `bound - 1`, each exactly as likely (words that would favour some are drawn again). */
  below(bound: number): number {
    checkInteger('RandomStream', 'bound', bound, 1, 0x100000000);
    // By quotients: remainders of numbers that need not be integers of 32 bits take longer than a division.
    const limit = Math.floor(0x100000000 / bound) * bound;
    let word = this.next();
    while (word >= limit) word = this.next();
    return word - Math.floor(word / bound) * bound;
  }
}

/**
 * The numbers 0 to `size - 1` in an order that `seed` and `stream` determine (Fisher and Yates, as in Knuth's
 * Algorithm P).
 *
 * @throws DataError `argument` unless size, seed and stream are integers of at least 0
 * @example
 * const order = shuffledIndices(60_000, 42, 3);
 * // The order of epoch 3 under seed 42.
 * order.length; // 60000
 */
export function shuffledIndices(size: number, seed: number, stream = 0): Uint32Array {
  checkInteger('shuffledIndices', 'size', size, 0, mostRows);
  checkInteger('shuffledIndices', 'seed', seed, 0);
  checkInteger('shuffledIndices', 'stream', stream, 0);
  const order = new Uint32Array(size);
  for (let index = 0; index < size; index++) order[index] = index;
  const random = new RandomStream(seed, stream);
  for (let last = size - 1; last > 0; last--) {
    const other = random.below(last + 1);
    const kept = order[last]!;
    order[last] = order[other]!;
    order[other] = kept;
  }
  return order;
}
