/** Lines of caches, of all common processors. */

export const lineBytes = 64;

/**
 * Lines `bytes` apart that a cache holds at a time, whose sets repeat after `period` bytes and have so many ways: steps of a large power of two
 * meet few sets. As of a first-level cache where nothing else is said.
 */
export function linesThatStay(bytes: number, period = 4096, ways = 8): number {
  let step = Math.abs(bytes) / lineBytes;
  let sets = period / lineBytes;
  if (!Number.isInteger(step)) return sets * ways;
  for (; step % 2 === 0 && sets > 1; step /= 2) sets /= 2;
  return sets * ways;
}
