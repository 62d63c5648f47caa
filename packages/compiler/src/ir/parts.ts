/**
 * Parts of a group, whose threads wait for each other alone, and what barriers for parts and for all put in order: the rule that the interpreter
 * and the search for races share.
 *
 * Parts are neighbours by number, and their sizes powers of two. So of two parts one holds the other, or they have no thread in common. Two
 * accesses are in order if and only if one barrier that both threads take part in stands between them.
 */
import type { KNode } from './ir.ts';

/** What is wrong with a barrier for parts of so many threads in a group of so many, or null. */
export function partError(part: number, threads: number): string | null {
  return part > 1 && Number.isInteger(Math.log2(part)) && threads % part === 0
    ? null
    : `is for parts of ${part} of ${threads} threads: give a power of two that divides them`;
}

/** True if some threads of a program's groups wait without the others. */
export function hasParts(body: readonly KNode[]): boolean {
  return body.some((n) => n.op === 'BARRIER' && n.arg !== null);
}

/** The barriers that the threads of a group have passed, in the order in which all of them do. */
export class Barriers {
  /** By threads of a part, the interval that its last barrier began; the group has 0. Few sizes. */
  readonly #begun = new Map<number, number>();
  #now = 0;

  /** The number of the interval between two barriers. */
  get now(): number {
    return this.#now;
  }

  /** All threads pass a barrier, each with its part; null: with all others. `now` is the interval that begins. */
  pass(part: number | null, now: number = this.#now + 1): void {
    this.#now = now;
    this.#begun.set(part ?? 0, now);
  }

  /** True if what a thread did in an interval comes before what the other one does now. Threads are numbered from 0. */
  between(one: number, other: number, since: number): boolean {
    if (one === other) return true;
    for (const [part, begun] of this.#begun)
      if (begun > since && (part === 0 || Math.floor(one / part) === Math.floor(other / part))) return true;
    return false;
  }
}

/** Who touched an element in one way: threads and the interval of their last access. */
export class Accesses {
  readonly #of: (number[] | undefined)[] = [];

  note(index: number, thread: number, now: number): void {
    const list = (this.#of[index] ??= []);
    for (let i = 0; i < list.length; i += 2)
      if (list[i] === thread) {
        list[i + 1] = now;
        return;
      }
    list.push(thread, now);
  }

  /** A thread whose access to the element is not in order with what this one does now, or -1. */
  other(index: number, thread: number, barriers: Barriers): number {
    const list = this.#of[index];
    if (list === undefined) return -1;
    for (let i = 0; i < list.length; i += 2) if (!barriers.between(list[i]!, thread, list[i + 1]!)) return list[i]!;
    return -1;
  }
}
