/**
 * Distances in memory that make a first-level cache look smaller than it is.
 *
 * Lines a multiple of 4096 bytes apart share a set on all common processors, and some predict the way by those bits too, so
 * that a handful of streams that far apart slow each other down.
 */
const pageBytes = 4096;
export const lineBytes = 64;

/** True if among `streams` streams this many bytes apart two fall into the same sets. */
export function collide(bytes: number, streams: number): boolean {
  for (let i = 1; i < streams; i++) {
    const d = (Math.abs(bytes) * i) % pageBytes;
    if (Math.min(d, pageBytes - d) < lineBytes) return true;
  }
  return false;
}

/** The least pitch of at least `size` elements whose multiples do not collide soon; small pitches stay as they are. */
export function spreadPitch(size: number, elementBytes: number): number {
  let pitch = size;
  while (pitch * elementBytes >= 512 && collide(pitch * elementBytes, 9)) pitch += lineBytes / elementBytes;
  return pitch;
}
