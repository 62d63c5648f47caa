/**
 * Sorting one line of small numbers by groups of threads, stable: digits of four bits, the least significant first, as many passes as
 * the numbers have digits.
 *
 * A pass counts the digits of every group's elements, finds where each group's elements of each digit begin, and moves them there. A
 * thread has neighbouring elements and counters of its own in group memory, so that no two write to one place and equal digits stay in
 * order. Sorting by comparison (merge.ts) looks at each element log2 n times and more; this does it twice a pass.
 */
import type { KNode } from '../../ir/ir.ts';
import type { ProgramSet, ProgramWriter, Temp } from '../program-set.ts';

const digitBits = 4;
const digits = 1 << digitBits;
/** Neighbouring elements of a thread, as many as digits: a thread scans as many counters. */
const each = digits;
const mostThreads = 128;
/** Groups that keep a device busy; each moves several tiles of elements where there are more. */
const mostGroups = 1024;

/** A sort of `n` numbers below `2 ** bits`. */
export interface DigitSort {
  readonly n: number;
  readonly bits: number;
  /** Opens the numbers in a program. */
  open(w: ProgramWriter): (i: KNode) => KNode;
  /** The numbers in order, and where each was. */
  readonly to: Sorted;
}

export interface Sorted {
  readonly keys: Temp;
  readonly order: Temp;
}

/** What one pass shares between its programs. */
interface Pass {
  readonly sort: DigitSort;
  readonly threads: number;
  readonly groups: number;
  /** Tiles of a group. */
  readonly turns: number;
  readonly number: number;
  /** Where the elements are; null for those of the sort. */
  readonly from: Sorted | null;
  readonly to: Sorted;
  /** By digit and group: how many there are, then where they begin. */
  readonly counts: Temp;
}

/** False for devices whose groups are too small to have a thread for each digit. */
export function canSortDigits(maxGroup: number): boolean {
  return maxGroup >= digits;
}

export function digitSort(set: ProgramSet, sort: DigitSort, maxGroup: number, most: number = mostGroups): void {
  const { n, bits } = sort;
  const threads = Math.min(mostThreads, 2 ** Math.floor(Math.log2(maxGroup)));
  const tiles = Math.ceil(n / (threads * each));
  const turns = Math.ceil(tiles / most);
  const groups = Math.ceil(tiles / turns);
  const counts = set.temp('int32', digits * groups);
  const passes = Math.max(1, Math.ceil(bits / digitBits));
  const between = passes === 1 ? sort.to : { keys: set.temp('uint32', n), order: set.temp('int32', n) };
  let from: Sorted | null = null;
  for (let number = 0; number < passes; number++) {
    const to = (passes - number) % 2 === 1 ? sort.to : between;
    const pass: Pass = { sort, threads, groups, turns, number, from, to, counts };
    countDigits(set, pass);
    findPlaces(set, pass);
    move(set, pass);
    from = to;
  }
}

/** How a program reads the elements of a pass. */
interface Source {
  key(i: KNode): KNode;
  order(i: KNode): KNode;
}

function opened(w: ProgramWriter, { sort, from }: Pass, withOrder: boolean): Source {
  const { b } = w;
  if (from === null) return { key: sort.open(w), order: (i) => i };
  const keys = w.temp(from.keys, 'read');
  const order = withOrder ? w.temp(from.order, 'read') : null;
  return { key: (i) => b.load(keys, i), order: (i) => (order === null ? i : b.load(order, i)) };
}

/** Runs `body` for every element of a thread in one tile of its group: where it is, its key, its digit. */
function elements(
  { b, e, group }: ProgramWriter,
  { sort, threads, turns, number }: Pass,
  source: Source,
  thread: KNode,
  turn: KNode,
  body: (i: KNode, key: KNode, digit: KNode) => void,
): void {
  const tile = e.add(e.mul(group, turns), turn);
  const first = e.mul(e.add(e.mul(tile, threads), thread), each);
  b.loop(each, (u) => {
    const i = b.place(e.add(first, u));
    b.ifThen(e.lt(i, sort.n), () => {
      const key = b.place(source.key(i));
      const shifted = e.shr(key, e.constant('uint32', number * digitBits));
      body(i, key, b.place(e.bitcast(e.and(shifted, e.constant('uint32', digits - 1)), 'int32')));
    });
  });
}

/** The counter of a thread for a digit. */
function cellOf({ e }: ProgramWriter, threads: number, digit: KNode, thread: KNode): KNode {
  return e.add(e.mul(digit, threads), thread);
}

function clear(w: ProgramWriter, cells: KNode, threads: number, thread: KNode): void {
  w.b.loop(digits, (digit) => w.b.store(cells, cellOf(w, threads, digit, thread), w.e.i32(0)));
}

/** One more in a counter; what it was before. */
function take({ b, e }: ProgramWriter, cells: KNode, cell: KNode): KNode {
  const before = b.place(b.load(cells, cell));
  b.store(cells, cell, e.add(before, 1));
  return before;
}

function countDigits(set: ProgramSet, pass: Pass): void {
  const { threads, groups, turns, counts, number } = pass;
  set.addGroups(`_count${number}`, groups, threads, (w, thread) => {
    const { b, e, group } = w;
    const target = w.temp(counts, 'write');
    const source = opened(w, pass, false);
    const cells = b.shared('cells', 'int32', digits * threads);
    clear(w, cells, threads, thread);
    b.loop(turns, (turn) =>
      elements(w, pass, source, thread, turn, (_i, _key, digit) => {
        take(w, cells, cellOf(w, threads, digit, thread));
      }),
    );
    b.barrier();
    b.ifThen(e.lt(thread, digits), () => {
      const sum = b.reg('sum', 'int32');
      b.store(sum, 0, e.i32(0));
      b.loop(threads, (t) => {
        // Each begins somewhere else: neighbours in group memory are read side by side.
        const other = e.irem(e.add(t, thread), threads);
        b.store(sum, 0, e.add(b.load(sum, 0), b.load(cells, cellOf(w, threads, thread, other))));
      });
      b.store(target, e.add(e.mul(thread, groups), group), b.load(sum, 0));
    });
  });
}

/** Puts in place of each of `length` numbers the sum of those before it; a thread has `own` neighbours. Gives sums of threads, the last of all. */
function sumsBefore(
  w: ProgramWriter,
  memory: KNode,
  threads: number,
  thread: KNode,
  own: number,
  length: number,
): KNode {
  const { b, e } = w;
  const totals = b.shared('totals', 'int32', threads);
  const sum = b.reg('before', 'int32');
  const inside = (at: KNode): KNode => (own * threads === length ? e.bool(true) : e.lt(at, length));
  const each = (body: (at: KNode) => void): void =>
    b.loop(own, (u) => {
      const at = b.place(e.add(e.mul(thread, own), u));
      b.ifThen(inside(at), () => body(at));
    });
  b.store(sum, 0, e.i32(0));
  each((at) => b.store(sum, 0, e.add(b.load(sum, 0), b.load(memory, at))));
  b.store(totals, thread, b.load(sum, 0));
  b.barrier();
  b.loop(Math.log2(threads), (doubling) => {
    const distance = e.shl(e.i32(1), doubling);
    const mine = b.load(totals, thread);
    const other = b.load(totals, e.max(e.sub(thread, distance), 0));
    const both = b.place(e.where(e.lt(thread, distance), mine, e.add(other, mine)));
    b.barrier();
    b.store(totals, thread, both);
    b.barrier();
  });
  const previous = b.load(totals, e.max(e.sub(thread, 1), 0));
  b.store(sum, 0, e.where(e.lt(thread, 1), e.i32(0), previous));
  each((at) => {
    const before = b.place(b.load(sum, 0));
    b.store(sum, 0, e.add(before, b.load(memory, at)));
    b.store(memory, at, before);
  });
  return totals;
}

/** Places of the first element of every digit of every group: smaller digits first, then earlier groups. By one group. */
function findPlaces(set: ProgramSet, { threads, groups, counts, number }: Pass): void {
  const length = digits * groups;
  set.addGroups(`_places${number}`, 1, threads, (w, thread) => {
    sumsBefore(w, w.temp(counts, 'readwrite'), threads, thread, Math.ceil(length / threads), length);
  });
}

function move(set: ProgramSet, pass: Pass): void {
  const { threads, groups, turns, counts, number, to } = pass;
  set.addGroups(`_move${number}`, groups, threads, (w, thread) => {
    const { b, e, group } = w;
    const places = w.temp(counts, 'read');
    const source = opened(w, pass, true);
    const [keys, order] = [w.temp(to.keys, 'write'), w.temp(to.order, 'write')];
    const cells = b.shared('cells', 'int32', digits * threads);
    const next = b.shared('next', 'int32', digits);
    const shift = b.shared('shift', 'int32', digits);
    const isDigit = e.lt(thread, digits);
    b.ifThen(isDigit, () => b.store(next, thread, b.load(places, e.add(e.mul(thread, groups), group))));
    b.loop(turns, (turn) => {
      clear(w, cells, threads, thread);
      elements(w, pass, source, thread, turn, (_i, _key, digit) => {
        take(w, cells, cellOf(w, threads, digit, thread));
      });
      b.barrier();
      // Now each counter is the place in the tile, sorted, of the next element it counts.
      const totals = sumsBefore(w, cells, threads, thread, digits, digits * threads);
      b.barrier();
      b.ifThen(isDigit, () => {
        const start = b.place(b.load(cells, e.mul(thread, threads)));
        const isLast = e.eq(thread, digits - 1);
        const after = e.min(e.add(thread, 1), digits - 1);
        const end = e.where(isLast, b.load(totals, threads - 1), b.load(cells, e.mul(after, threads)));
        const base = b.place(b.load(next, thread));
        b.store(shift, thread, e.sub(base, start));
        b.store(next, thread, e.sub(e.add(base, end), start));
      });
      b.barrier();
      elements(w, pass, source, thread, turn, (i, key, digit) => {
        const place = e.add(take(w, cells, cellOf(w, threads, digit, thread)), b.load(shift, digit));
        b.store(keys, place, key);
        b.store(order, place, source.order(i));
      });
      b.barrier();
    });
  });
}
