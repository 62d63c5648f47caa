/**
 * Which kernels of a partition have to run before which others, directly or through others.
 *
 * A set of bits per kernel, brought up to date at each new edge. The partition asks for almost every pair of kernels, so a walk for each
 * question would make plans of long chains (a recurrent network's) cost the cube of their length.
 */
const bits = 32;

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
    return (((this.#after[from] as Int32Array)[to >>> 5] ?? 0) & (1 << (to % bits))) !== 0;
  }

  /** From now on, `from` is before `to`, and so is everything before `from`. */
  connect(from: number, to: number): void {
    (this.#before[to] as number[]).push(from);
    if (this.leads(from, to)) return;
    const added = this.#after[to] as Int32Array;
    const stack = [from];
    for (let at = stack.pop(); at !== undefined; at = stack.pop())
      if (this.#add(at, to, added)) stack.push(...(this.#before[at] as number[]));
  }

  /** Puts a kernel and those after it behind another one; false if they all were. */
  #add(at: number, to: number, added: Int32Array): boolean {
    const least = Math.max((to >>> 5) + 1, added.length);
    let own = this.#after[at] as Int32Array;
    if (own.length < least) {
      const longer = new Int32Array(Math.max(least, 2 * own.length));
      longer.set(own);
      this.#after[at] = own = longer;
    }
    let fresh = !this.leads(at, to);
    own[to >>> 5] = (own[to >>> 5] as number) | (1 << (to % bits));
    for (let i = 0; i < added.length; i++) {
      const both = (own[i] as number) | (added[i] as number);
      if (both === own[i]) continue;
      fresh = true;
      own[i] = both;
    }
    return fresh;
  }
}
