/**
 * A hint for JavaScript's garbage collector.
 *
 * Tensors that nobody disposes are given back when the collector finds their handles, but it does not know that a handle
 * of a few bytes holds megabytes of device memory, and may wait for thousands of steps. Engines count such memory when
 * it is an ArrayBuffer; V8 starts a collection when much of it was made since the last one. So a large one is made,
 * never touched (the system gives it no pages) and dropped: a training loop without any scope then stays within a
 * few hundred megabytes where it would fill all memory. Nothing depends on it.
 */
const hintBytes = 1 << 26;

/** Hints given so far; counting them also keeps bundlers from dropping the allocation as unused. */
export let hints = 0;

export function hintCollector(): void {
  try {
    const { byteLength } = new ArrayBuffer(hintBytes);
    if (byteLength === hintBytes) hints++;
  } catch {
    // No room even for that: the collector has reason enough by itself.
  }
}
