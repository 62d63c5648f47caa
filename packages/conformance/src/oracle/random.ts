/** Test data: a small seeded generator (mulberry32), independent of the library's own random numbers. */
import { count, type NDArray, nd } from './ndarray.ts';

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
  return nd(
    shape,
    Array.from({ length: count(shape) }, () => Math.fround(draw(random))),
  );
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
