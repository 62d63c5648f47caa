/**
 * Collective operations of the threads of a group: reductions and scans of one value per thread, scans of lists, histograms of digits.
 * Scans, sorts and scatters are made of these on both kinds of engine. A single thread is a group of one, without barriers.
 *
 * Values are combined in the order of the threads, so that results are the same bits on every device. All threads of a group must
 * reach a call. Between two executions of one call, in a loop, the caller puts a barrier.
 */
import type { KNode } from '../ir/ir.ts';
import type { DType } from '../shape/dtype.ts';
import type { ProgramWriter } from './program-set.ts';

/** A barrier, where there is more than one thread. */
export function meet({ b, threads }: ProgramWriter): void {
  if (threads > 1) b.barrier();
}

// Scans and reductions of one value for each thread.

/** How values are combined: a monoid. */
export interface Combining {
  /** The neutral element. */
  readonly identity: KNode;
  /** What a value makes with those before it. `i`: which value of a list, for one thread (`scanList`). */
  both(before: KNode, value: KNode, i?: KNode): KNode;
}

/** Sums of whole numbers. */
export function counting({ e }: ProgramWriter): Combining {
  return { identity: e.i32(0), both: (before, value) => e.add(before, value) };
}

/**
 * Group memory that the values of all threads go into, and go on from by steps over distances that double. `apart`: a step over a distance stays
 * among neighbours, twice as many. Then threads of a part need not wait for others until the next step leaves it.
 */
function inSteps(
  { b, e, threads, thread, part }: ProgramWriter,
  value: KNode,
  apart: boolean,
  step: (cells: KNode, distance: KNode) => void,
) {
  const cells = b.shared('totals', value.dtype as DType, threads);
  const steps = Math.log2(threads);
  const within = apart && part > 1 ? Math.min(Math.log2(part) - 1, steps - 1) : 0;
  b.store(cells, thread, value);
  b.barrier(within > 0 ? part : null);
  // Loops, not their steps one after another: drivers that emulate groups take long to compile every barrier.
  const go = (from: number, to: number, meeting: number | null): void =>
    b.loop(to - from, (doubling) => {
      step(cells, e.shl(1, e.add(doubling, from)));
      b.barrier(meeting);
    });
  go(0, within, part);
  go(within, steps, null);
  return cells;
}

/** The combination of the values of the threads before this one (exclusive scan), and that of all (Hillis and Steele, 1986). */
export function groupScan(
  w: ProgramWriter,
  value: KNode,
  { identity, both }: Combining,
): { readonly before: KNode; readonly whole: KNode } {
  const { b, e, threads, thread } = w;
  if (threads === 1) return { before: identity, whole: value };
  const cells = inSteps(w, value, false, (totals, distance) => {
    const mine = b.load(totals, thread);
    const other = b.load(totals, e.max(e.sub(thread, distance), 0));
    const made = b.place(e.where(e.lt(thread, distance), mine, both(other, mine)));
    b.barrier();
    b.store(totals, thread, made);
  });
  const previous = b.load(cells, e.max(e.sub(thread, 1), 0));
  return { before: e.where(e.lt(thread, 1), identity, previous), whole: b.load(cells, threads - 1) };
}

/** The combination of the values of all threads: the same bits as by `groupScan`, with half of its barriers and less work. */
export function groupReduce(w: ProgramWriter, value: KNode, { both }: Combining): KNode {
  const { b, e, threads, thread } = w;
  if (threads === 1) return value;
  const cells = inSteps(w, value, true, (totals, distance) => {
    // The last thread of two neighbouring parts gets the combination of both: it, so that a step stays among neighbours.
    b.ifThen(e.eq(e.irem(thread, e.shl(distance, 1)), e.sub(e.shl(distance, 1), 1)), () =>
      b.store(totals, thread, both(b.load(totals, e.sub(thread, distance)), b.load(totals, thread))),
    );
  });
  return b.load(cells, threads - 1);
}

// Lists of numbers in memory.

/** Numbers in memory: the i-th is at `at(i)`. */
export interface Listed {
  readonly memory: KNode;
  readonly length: number;
  at(i: KNode): KNode;
}

/** Exclusive scan of a list in place; returns the combination of all. Every thread has a contiguous part. */
export function scanList(w: ProgramWriter, { memory, length, at }: Listed, combining: Combining): KNode {
  const { b, e, threads, thread } = w;
  const own = Math.ceil(length / threads);
  const running = b.reg('running', memory.dtype as DType);
  /** Takes in the numbers of the thread. */
  const takeIn = (write: boolean): void =>
    b.loop(own, (u) => {
      const i = e.add(e.mul(thread, own), u);
      b.ifThen(own * threads === length ? e.bool(true) : e.lt(i, length), () => {
        const place = at(i);
        const value = b.load(memory, place);
        const before = b.load(running, 0);
        if (write) b.store(memory, place, before);
        b.store(running, 0, combining.both(before, value, i));
      });
    });
  b.store(running, 0, combining.identity);
  let whole: KNode | null = null;
  if (threads > 1) {
    takeIn(false);
    const found = groupScan(w, b.load(running, 0), combining);
    b.store(running, 0, found.before);
    whole = found.whole;
  }
  takeIn(true);
  return whole ?? b.load(running, 0);
}

// Histograms: how many elements there are of each digit, and where the elements of each go.

/**
 * Declares counters of a group, in its memory: every thread has one for each digit. No two threads write to one place, and elements stay
 * in order among equals where each thread takes neighbours.
 */
export function counters({ b, threads }: ProgramWriter, digits: number): KNode {
  return b.shared('counters', 'int32', digits * threads);
}

/** Where the counter of a thread for a digit is. */
function cellOf({ e, threads }: ProgramWriter, digit: KNode, thread: KNode): KNode {
  return e.add(e.mul(digit, threads), thread);
}

/** Sets the thread's counters to zero. */
export function clearCounters(w: ProgramWriter, cells: KNode, digits: number): void {
  w.b.loop(digits, (digit) => w.b.store(cells, cellOf(w, digit, w.thread), w.e.i32(0)));
}

/** One more of a digit; what its counter was before: how many the thread has had, or, after `placeCounters`, where this one goes. */
export function take(w: ProgramWriter, cells: KNode, digit: KNode): KNode {
  const at = cellOf(w, digit, w.thread);
  const before = w.b.load(cells, at);
  w.b.store(cells, at, w.e.add(before, 1));
  return before;
}

/** Runs `body` for every digit, each by one thread. */
export function eachDigit(
  { b, e, threads, thread }: ProgramWriter,
  digits: number,
  body: (digit: KNode) => void,
): void {
  b.loop(Math.ceil(digits / threads), (turn) => {
    const digit = e.add(e.mul(turn, threads), thread);
    b.ifThen(e.lt(digit, digits), () => body(digit));
  });
}

/** How many elements of a digit the group has, after a barrier. */
export function countOf(w: ProgramWriter, cells: KNode, digit: KNode): KNode {
  const { b, e, threads } = w;
  const sum = b.reg('sum', 'int32');
  b.store(sum, 0, e.i32(0));
  b.loop(threads, (t) => {
    // Each digit begins somewhere else: neighbours in group memory are read side by side.
    const other = e.irem(e.add(t, digit), threads);
    b.store(sum, 0, e.add(b.load(sum, 0), b.load(cells, cellOf(w, digit, other))));
  });
  return b.load(sum, 0);
}

/**
 * Counts of `length` digits from `first` on become places in order: smaller digits first, then earlier threads. Gives how many elements
 * there are.
 */
export function placeCounters(w: ProgramWriter, memory: KNode, first: number, length: number): KNode {
  const { e, threads } = w;
  return scanList(w, { memory, length: length * threads, at: (i) => e.add(i, first * threads) }, counting(w));
}

// Searching.

/** The first of `from` .. `to`-1, at most `most` numbers, for which `below` does not hold, nor for any after it; else `to`. */
export function bisect(
  { b, e }: ProgramWriter,
  from: KNode,
  to: KNode,
  most: number,
  below: (i: KNode) => KNode,
): KNode {
  const [low, high] = [b.reg('low', 'int32'), b.reg('high', 'int32')];
  b.store(low, 0, from);
  b.store(high, 0, to);
  b.loop(Math.ceil(Math.log2(most + 1)) + 1, () => {
    const [l, h] = [b.load(low, 0), b.load(high, 0)];
    b.ifThen(e.lt(l, h), () => {
      // Unsigned: the sum may go past the largest int32.
      const middle = b.place(e.bitcast(e.shr(e.bitcast(e.add(l, h), 'uint32'), e.constant('uint32', 1)), 'int32'));
      const behind = b.place(below(middle));
      b.store(low, 0, e.where(behind, e.add(middle, 1), l));
      b.store(high, 0, e.where(behind, h, middle));
    });
  });
  return b.load(low, 0);
}
