/**
 * Distances in memory that make a first-level cache look smaller than it is.
 *
 * Lines a multiple of 4096 bytes apart share a set on all common processors, and some predict the way by those bits too, so
 * that a handful of streams that far apart slow each other down.
 */
const pageBytes = 4096;
export const lineBytes = 64;
const ways = 8;

/** True if among `streams` streams this many bytes apart two fall into the same sets. */
export function collide(bytes: number, streams: number): boolean {
  for (let i = 1; i < streams; i++) {
    const d = (Math.abs(bytes) * i) % pageBytes;
    if (Math.min(d, pageBytes - d) < lineBytes) return true;
  }
  return false;
}

/** Lines `bytes` apart that an eight-way cache holds at a time: steps of a large power of two meet few sets. */
export function linesThatStay(bytes: number): number {
  let step = Math.abs(bytes) / lineBytes;
  let sets = pageBytes / lineBytes;
  if (!Number.isInteger(step)) return sets * ways;
  for (; step % 2 === 0 && sets > 1; step /= 2) sets /= 2;
  return sets * ways;
}

/** The least pitch of at least `size` elements whose multiples do not collide soon; small pitches stay as they are. */
export function spreadPitch(size: number, elementBytes: number): number {
  let pitch = size;
  while (pitch * elementBytes >= 512 && collide(pitch * elementBytes, 9)) pitch += lineBytes / elementBytes;
  return pitch;
}
