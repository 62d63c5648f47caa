/**
 * Inputs of the benchmarks: the same bits in JavaScript, C (peers/loops.c) and Python (peers/torch_peer.py), so that every
 * participant computes the same results and the harness can check them.
 */

/** A 32-bit hash (lowbias32) of an index. */
function hash(index: number): number {
  let u = index >>> 0;
  u ^= u >>> 16;
  u = Math.imul(u, 0x7feb352d);
  u ^= u >>> 15;
  u = Math.imul(u, 0x846ca68b);
  u ^= u >>> 16;
  return u >>> 0;
}

/** Element `i` of the sequence `seed`: a multiple of 2^-24 in [0, 1), scaled to [low, high) and rounded to float32. */
export function element(seed: number, i: number, low: number, high: number): number {
  const unit = (hash(i + Math.imul(seed, 0x9e3779b1)) >>> 8) * 2 ** -24;
  return Math.fround(low + (high - low) * unit);
}

/** The first `n` elements of a sequence. */
export function fill(seed: number, n: number, low: number, high: number): Float32Array<ArrayBuffer> {
  const out = new Float32Array(n);
  for (let i = 0; i < n; i++) out[i] = element(seed, i, low, high);
  return out;
}

/** Number of label sets the training steps take in turns. They contradict each other, so that no network can learn them by heart. */
export const labelSets = 4;

/** Class of example `i` in label set `set`. */
export function label(set: number, i: number): number {
  return (i * (set + 1) + 3 * set) % 10;
}

/** Positions at which results of `n` elements are compared. */
export function probePositions(n: number): number[] {
  return Array.from({ length: 8 }, (_, j) => Math.floor((j * (n - 1)) / 7));
}
