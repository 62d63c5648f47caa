/** Test data: a small seeded generator (mulberry32); and the random bits that the suite expects. Apart from the library's own. */
import { count, nd, type NDArray } from './ndarray.ts';

export type Random = () => number;

/** Uniform numbers in [0, 1) from a 32-bit seed. Source: T. Ettinger's mulberry32, public domain. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A seed from a name, so that every case has its own data whatever runs before it (FNV-1a). */
export function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Values drawn by `draw`, rounded to float32 so that float32 and float64 runs see the same numbers. */
export function sample(random: Random, shape: readonly number[], draw: (r: Random) => number): NDArray {
  const data: number[] = [];
  for (let left = count(shape); left > 0; left--) data.push(Math.fround(draw(random)));
  return nd(shape, data);
}

/** An array of each shape, one after the other. */
export function samples<const S extends readonly (readonly number[])[]>(
  random: Random,
  shapes: S,
  draw: (r: Random) => number,
): { -readonly [K in keyof S]: NDArray } {
  return shapes.map((shape) => sample(random, shape, draw)) as { -readonly [K in keyof S]: NDArray };
}

/** Uniform in [low, high). */
export function uniform(low: number, high: number): (r: Random) => number {
  return (r) => low + (high - low) * r();
}

/** Uniform integer in [low, high]. */
export function integer(low: number, high: number): (r: Random) => number {
  return (r) => low + Math.floor((high - low + 1) * r());
}

/** Uniform in [-high, -low] or [low, high]: away from a kink or a pole at zero. */
export function awayFromZero(low: number, high: number): (r: Random) => number {
  return (r) => (r() < 0.5 ? -1 : 1) * (low + (high - low) * r());
}

/** Threefry-2x32-20 (Salmon et al., SC 2011, section 4.1 and table 2), both words. */
export function threefry(key: readonly [number, number], counter: readonly [number, number]): [number, number] {
  const rotations = [13, 15, 26, 6, 17, 29, 16, 24];
  const words = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda];
  let a = (counter[0] + words[0]!) | 0;
  let b = (counter[1] + words[1]!) | 0;
  for (let round = 0; round < 20; round++) {
    const r = rotations[round % 8]!;
    a = (a + b) | 0;
    b = ((b << r) | (b >>> (32 - r))) ^ a;
    if (round % 4 !== 3) continue;
    const injection = (round + 1) / 4;
    a = (a + words[injection % 3]!) | 0;
    b = (b + words[(injection + 1) % 3]! + injection) | 0;
  }
  return [a >>> 0, b >>> 0];
}
