/**
 * Which kernels of a partition have to run before which others, directly or through others.
 *
 * A set of bits per kernel, brought up to date at each new edge. The partition asks for almost every pair of kernels, so a walk for each
 * question would make plans of long chains (a recurrent network's) cost the cube of their length.
 */
export class Reach {
  /** Kernels after each kernel, a bit each. */
  readonly #after: Int32Array[] = [];
  /** Kernels right before each kernel. */
  readonly #before: number[][] = [];

  /** Another kernel; its number. */
  join(): number {
    this.#before.push([]);
    return this.#after.push(new Int32Array(0)) - 1;
  }

  /** True if `from` is before `to`. */
  leads(from: number, to: number): boolean {
    return ((this.#after[from]![to >>> 5] ?? 0) & (1 << to)) !== 0;
  }

  /** From now on, `from` is before `to`, and so is everything before `from`. */
  connect(from: number, to: number): void {
    this.#before[to]!.push(from);
    const added = this.#after[to]!;
    const stack = [from];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      // What is before `to` already is before everything after it too, and so is what comes before that.
      if (this.leads(at, to)) continue;
      let own = this.#after[at]!;
      const least = Math.max((to >>> 5) + 1, added.length);
      if (own.length < least) {
        const short = own;
        own = this.#after[at] = new Int32Array(least);
        own.set(short);
      }
      added.forEach((word, i) => {
        own[i]! |= word;
      });
      own[to >>> 5]! |= 1 << to;
      stack.push(...this.#before[at]!);
    }
  }
}

/** True if `to` is `from`, or among what its sources lead to. */
export function isBelow<T>(from: T, to: T, sourcesOf: (at: T) => readonly T[]): boolean {
  const seen = new Set([from]);
  // A Set visits what is added while it is walked.
  for (const at of seen) {
    if (at === to) return true;
    for (const source of sourcesOf(at)) seen.add(source);
  }
  return false;
}
