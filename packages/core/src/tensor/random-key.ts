/**
 * Keys of random numbers, on the host: Threefry-2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
 *
 * A key names a whole stream of bits, the same on every engine. Without a key, calls take keys from one generator that `seed` starts, in the order
 * of the calls. Counters keep streams apart by their second word: 0 for bits, 1 for keys that are split, its top bit set for the generator's keys.
 */
import type { Node } from '../graph/node.ts';
import { scalar } from '../graph/primitives.ts';
import { opName } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { checkCount, mostParts } from '@polygrad/compiler/shape/axes';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { say, isList } from '@polygrad/compiler/shape/shown';

/** Two 32-bit words. */
export type RandomKey = readonly [number, number];

const rotated = (x: number, by: number): number => (x << by) | (x >>> -by);

/** Two words of Threefry-2x32 with 20 rounds, for a key and a counter. */
export function threefry([k0, k1]: RandomKey, [c0, c1]: RandomKey): [number, number] {
  const words = new Uint32Array(2);
  draw(words, 0, k0 | 0, k1 | 0, c0 | 0, c1 | 0);
  return [words[0]!, words[1]!];
}

/** The same into memory from `at` on, of words as signed numbers: what many draws need. */
export function draw(words: Uint32Array, at: number, k0: number, k1: number, c0: number, c1: number): void {
  // The schedule of the key, turned by one word for every four rounds.
  let a = k0;
  let b = k1;
  let c = a ^ b ^ 0x1bd11bda;
  let x0 = (c0 + a) | 0;
  let x1 = (c1 + b) | 0;
  // Without closures and lists, which would put these numbers into memory; turned by constants, which is one instruction.
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
    const last = c;
    c = b;
    b = a;
    a = last;
  }
  words[at] = x0;
  words[at + 1] = x1;
}

/**
 * The key of a seed.
 *
 * @param value a safe integer (from -(2^53 - 1) to 2^53 - 1); each gives another key
 * @throws ArgumentError for anything else
 *
 * @example
 * rand([2], { key: randomKey(7) }); // always the same two numbers
 */
export function randomKey(value: number): RandomKey {
  return keyOfSeed('randomKey', value);
}

function keyOfSeed(op: string, value: number): RandomKey {
  if (!Number.isSafeInteger(value))
    throw new ArgumentError(op, say`bad seed: ${shown(value)}; must be an integer below 2^53`);
  const low = value >>> 0;
  return [Math.floor((value - low) / 2 ** 32) >>> 0, low];
}

function checkKey(op: string, key: unknown): void {
  if (!isList(key) || key.length !== 2 || !key.every(Number.isInteger))
    throw new ArgumentError(
      op,
      say`bad key: ${shown(key)}; must be two integers, such as [0, 1], or an integer as seed`,
    );
}

/**
 * Independent keys made from one.
 *
 * @param count how many, up to 2^20
 * @throws ArgumentError for a bad key or count
 *
 * @example
 * const [a, b] = splitKey(randomKey(7), 2);
 */
export function splitKey(key: RandomKey, count: number = 2): RandomKey[] {
  checkKey('splitKey', key);
  checkCount('splitKey', 'count', count, 0, mostParts);
  const keys: RandomKey[] = Array.from({ length: count }, (_, i) => threefry(key, [i, 1]));
  if (drawn.has(key)) {
    for (const part of keys) drawn.add(part);
    graph.observer?.split(key, keys);
  }
  return keys;
}

/** Keys taken from the generator, and those split from them. */
const drawn = new WeakSet<RandomKey>();

/** True if the generator drew the key, rather than the caller. */
export function isDrawn(key: RandomKey): boolean {
  return drawn.has(key);
}

/**
 * Starts the generator that random functions without a key use. Without this call it starts at seed 0.
 *
 * @param value a safe integer
 * @throws ArgumentError for anything else
 *
 * @example
 * seed(42);
 * const a = rand([3]);
 * seed(42);
 * const b = rand([3]); // equal to a
 */
export function seed(value: number): void {
  graph.root = keyOfSeed('seed', value);
  graph.calls = 0;
}

/** The key of one call of the generator, counted from `seed`. */
export function generatedKey(call: number): [number, number] {
  return threefry(graph.root, [call >>> 0, (Math.floor(call / 2 ** 32) | 0x80000000) >>> 0]);
}

/** The words of a key as numbers bound at each run. */
export function wordsOf(key: RandomKey): [Node, Node] {
  const words: [Node, Node] = [scalar(key[0], 'uint32'), scalar(key[1], 'uint32')];
  graph.observer?.words(words, key);
  return words;
}

/** The key of an option: as given, from a seed, or the generator's next. */
export function resolveKey(key: RandomKey | number | undefined): RandomKey {
  if (typeof key === 'number') return keyOfSeed(opName('key'), key);
  if (key !== undefined) {
    checkKey(opName('key'), key);
    return key;
  }
  const next = generatedKey(graph.calls++);
  drawn.add(next);
  return next;
}

/** The position of the generator, for running a function again with the same keys. */
export interface GeneratorState {
  readonly root: RandomKey;
  readonly calls: number;
}

/** The present position of the generator. */
export function generatorState(): GeneratorState {
  const { root, calls } = graph;
  return { root, calls };
}

/** Runs a function with the generator at an earlier position; afterwards the generator continues from its present one. */
export function withGenerator<T>(state: GeneratorState, body: () => T): T {
  const saved = generatorState();
  Object.assign(graph, state);
  try {
    return body();
  } finally {
    Object.assign(graph, saved);
  }
}

/** Position of the generator of random functions: plain numbers that JSON keeps. */
export interface RandomState {
  /** The key that `seed` started with. */
  readonly key: RandomKey;
  /** How many keys were taken since. */
  readonly calls: number;
}

/**
 * The position of the generator of random functions, to continue from there later. Source: PyTorch `get_rng_state`.
 *
 * @example
 * const state = getRandomState();
 * const a = rand([3]);
 * setRandomState(state);
 * const b = rand([3]); // equal to a
 */
export function getRandomState(): RandomState {
  const [high, low] = graph.root;
  return { key: [high, low], calls: graph.calls };
}

/**
 * Lets the generator of random functions continue from a position. Source: PyTorch `set_rng_state`.
 *
 * @param state what `getRandomState` gave
 * @throws ArgumentError for anything else
 *
 * @example
 * seed(7);
 * const state = getRandomState();
 * setRandomState(state);
 */
export function setRandomState(state: RandomState): void {
  const { key, calls } = (state ?? {}) as Partial<RandomState>;
  checkKey('setRandomState', key);
  if (!Number.isSafeInteger(calls) || calls! < 0)
    throw new ArgumentError(
      'setRandomState',
      say`bad calls: ${shown(calls)}; must be an integer of at least 0, as getRandomState gives it`,
    );
  graph.root = [key![0] >>> 0, key![1] >>> 0];
  graph.calls = calls!;
}
