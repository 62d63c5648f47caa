/**
 * Decisions of a random program, taken from a list of numbers. Any list means some program, and smaller numbers mean simpler ones, so
 * that whoever shrinks the list (fast-check) shrinks the program. What is not in the list is 0.
 */
export class Choices {
  readonly #numbers: readonly number[];
  #next = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  /** An integer of 0 .. n-1. */
  nat(n: number): number {
    return n <= 0 ? 0 : Math.abs(this.#numbers[this.#next++] ?? 0) % n;
  }

  /** An integer of low .. high. */
  between(low: number, high: number): number {
    return low + this.nat(high - low + 1);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.nat(list.length)]!;
  }

  /** True once in n. */
  seldom(n: number): boolean {
    return this.nat(n) === n - 1;
  }

  /** Each of the items or not, in order; the first `least` in any case. */
  some<T>(list: readonly T[], least = 0): T[] {
    const bits = this.nat(2 ** Math.min(list.length, 16));
    return list.filter((_, i) => i < least || (bits >> i) % 2 === 1);
  }

  /** The items in another order. */
  shuffled<T>(list: readonly T[]): T[] {
    const rest = [...list];
    return list.map(() => rest.splice(this.nat(rest.length), 1)[0]!);
  }
}
