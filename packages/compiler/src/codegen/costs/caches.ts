/** Cache lines: their size, and how many of a given distance a set-associative cache holds. */

/** Bytes of a cache line on all common processors. */
export const lineBytes = 64;

/**
 * How many lines `bytes` apart a cache holds at a time, if its sets repeat after `period` bytes and have this many ways. Steps of
 * a large power of two use few sets. Default: a first-level cache.
 */
export function linesThatStay(bytes: number, period = 4096, ways = 8): number {
  let step = Math.abs(bytes) / lineBytes;
  let sets = period / lineBytes;
  if (!Number.isInteger(step)) return sets * ways;
  for (; step % 2 === 0 && sets > 1; step /= 2) sets /= 2;
  return sets * ways;
}
