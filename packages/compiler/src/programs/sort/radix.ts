/**
 * Radix sort of lines, least significant digit first: each pass moves elements to the places of their digit, in order.
 *
 * Lines that fit into group memory are sorted there. Longer ones are cut into parts, one per group: a histogram of each part, a scan
 * that gives the place of each digit, and a pass that moves the elements. Single threads use digits of eight bits; groups of threads
 * use four, because every thread has its own counters. Keys of two words are sorted by the low word, then by the high one.
 */
import type { KNode } from '../../ir/ir.ts';
import {
  counters,
  counting,
  countOf,
  eachDigit,
  meet,
  placeCounters,
  scanList,
  clearCounters,
  take,
} from '../groups.ts';
import type { ProgramSet, ProgramWriter, Temp } from '../program-set.ts';
import { addLines, type LineSort, type Sorted, wanted } from './keys.ts';

/** The digit of `bits` bits that a pass sorts by. */
function digitOf({ e }: ProgramWriter, key: KNode, pass: number, bits: number): KNode {
  const shifted = e.shr(key, e.constant('uint32', pass * bits));
  return e.bitcast(e.and(shifted, e.constant('uint32', 2 ** bits - 1)), 'int32');
}

// In the memory of a group of one thread.

/** Bits of a digit there, and passes over a word. */
const digitBits = 8;
const digits = 1 << digitBits;
const passesPerWord = 32 / digitBits;
/** Elements in the memory of a group: keys and where they were, both with room for a pass to move them to; places of digits of all passes. */
export interface InMemory {
  readonly keys: readonly [KNode, KNode];
  readonly order: readonly [KNode, KNode];
  readonly places: KNode;
}

/** Bytes of group memory for so many elements. */
export function radixMemory(n: number): number {
  return 4 * (4 * n + digits * passesPerWord);
}

export function memoryFor(w: ProgramWriter, n: number): InMemory {
  const { b } = w;
  return {
    keys: [b.shared('key0', 'uint32', n), b.shared('key1', 'uint32', n)],
    order: [b.shared('order0', 'int32', n), b.shared('order1', 'int32', n)],
    places: counters(w, digits * passesPerWord),
  };
}

/** What a sort in memory does otherwise than to sort keys[0] and order[0] by one word. */
export interface InMemoryChange {
  /** Keys that are yet to be put into memory. */
  readonly key: (i: KNode) => KNode;
  /** Where elements were. */
  readonly order: (i: KNode) => KNode;
  /** Takes elements in order. */
  readonly result: (rank: KNode, position: KNode) => void;
}

export function radixInMemory(w: ProgramWriter, memory: InMemory, many: KNode | number, change?: InMemoryChange): void {
  const { b, e } = w;
  const { keys, order, places } = memory;
  const placeOf = (key: KNode, pass: number): KNode =>
    take(w, places, e.add(digitOf(w, key, pass, digitBits), pass * digits));
  clearCounters(w, places, digits * passesPerWord);
  b.loop(many, (i) => {
    const value = change === undefined ? b.load(keys[0], i) : b.place(change.key(i));
    if (change !== undefined) b.store(keys[0], i, value);
    for (let pass = 0; pass < passesPerWord; pass++) placeOf(value, pass);
  });
  for (let pass = 0; pass < passesPerWord; pass++) placeCounters(w, places, pass * digits, digits);
  for (let pass = 0; pass < passesPerWord; pass++) {
    const [read, write] = pass % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    const last = pass === passesPerWord - 1;
    b.loop(many, (i) => {
      const value = b.load(keys[read], i);
      const at = pass === 0 && change !== undefined ? change.order(i) : b.load(order[read], i);
      const place = placeOf(value, pass);
      if (last && change !== undefined) return change.result(place, at);
      b.store(keys[write], place, value);
      b.store(order[write], place, at);
    });
  }
}

/** Whole lines, in the memory of one group. `keyLanes`: keys are made in vectors of so many; 0: one by one. */
export function radixInGroup(set: ProgramSet, sort: LineSort, keyLanes = 0): void {
  const { n, words } = sort;
  addLines(set, '_radix', sort, (w) => {
    const { b } = w;
    const store = sort.result!(w);
    const key = sort.open(w);
    const memory = memoryFor(w, n);
    const [order] = memory.order;
    return (line) => {
      const [made] = memory.keys;
      if (keyLanes > 1) inVectors(w, w.e.i32(n), keyLanes, (k, width) => b.store(made, k, key(line, k, 0, width)));
      for (let word = 0; word < words; word++) {
        const before = (i: KNode): KNode => (word === 0 ? i : b.load(order, i));
        const result = (rank: KNode, position: KNode): void => {
          if (word === words - 1) store(line, rank, position, wanted(w, sort, rank));
          else b.store(order, rank, position);
        };
        const keyAt = (i: KNode): KNode => (keyLanes > 1 ? b.load(made, i) : key(line, before(i), word));
        radixInMemory(w, memory, n, { key: keyAt, order: before, result });
      }
    };
  });
}

// In parts, a group to each.

/** How lines are cut into parts, each for a group. */
export interface Parts {
  /** Bits of a digit. */
  readonly digitBits: number;
  /** Threads of a group. */
  readonly threads: number;
  /** Neighbouring elements that a thread has in a tile of its group; and tiles that the group takes in turns. */
  readonly each: number;
  readonly turns: number;
  /** Parts of a line. */
  readonly many: number;
}

/** Least elements per thread if each thread takes one part, and most parts of a line. */
const partElements = 1 << 14;
const mostParts = 64;

/** Parts for threads by themselves. */
export function partsOfThreads(n: number): Parts {
  const each = Math.ceil(n / Math.min(mostParts, Math.ceil(n / partElements)));
  return { digitBits, threads: 1, each, turns: 1, many: Math.ceil(n / each) };
}

/** The same for groups of threads. A thread has as many elements of a tile as there are digits: so many counters it scans. */
const groupDigitBits = 4;
const groupDigits = 1 << groupDigitBits;
const mostThreads = 128;
/** Groups that keep a device busy; each moves several tiles of elements where there are more. */
const mostGroups = 1024;

/** Parts for groups of threads. */
export function partsOfGroups(n: number, maxGroup: number, most: number = mostGroups): Parts {
  const threads = Math.min(mostThreads, 2 ** Math.floor(Math.log2(maxGroup)));
  const tiles = Math.ceil(n / (threads * groupDigits));
  const turns = Math.ceil(tiles / most);
  return { digitBits: groupDigitBits, threads, each: groupDigits, turns, many: Math.ceil(tiles / turns) };
}

/** Passes over a word of so many bits. */
export function passesOf(bits: number, parts: Parts): number {
  return Math.max(1, Math.ceil(bits / parts.digitBits));
}

/** Elements between two passes. */
interface Moved {
  readonly keys: readonly Temp[];
  /** Null: in the memory of the result. */
  readonly order: Temp | null;
}

/** The digit of a pass: which one of a word, and the word. */
interface Digit {
  readonly pass: number;
  readonly word: number;
}

/** One pass: where elements come from and go to. */
interface Pass extends Digit {
  /** Counted over all words. */
  readonly step: number;
  /** Where elements are; null for those of the sort. */
  readonly from: Moved | null;
  /** The keys of all elements where the first pass finds them made; null: it makes them as it goes. */
  readonly made: readonly Temp[] | null;
  /** This one and the pass beside it. Both are left out if nobody needs them: elements then are where the next pass reads. Null: this one never is. */
  readonly pair: readonly Digit[] | null;
  /** Null for the result. */
  readonly to: Moved | null;
  /** False where the keys are of no use any more. */
  readonly keepsKeys: boolean;
}

/** How threads by themselves look at the keys before they sort: in vectors of so many; and whether they keep them, as the first pass would make each twice. */
export interface KeyLook {
  readonly lanes: number;
  readonly keeps: boolean;
}

/**
 * Long lines, digit by digit. Gives where the elements are unless the sort stores them. `look`: threads by themselves find out which bits of the keys differ
 * at all. Digits that are all equal, as the upper ones of class numbers, are not counted, and their elements stay in place.
 */
export function radixInParts(set: ProgramSet, sort: LineSort, parts: Parts, look?: KeyLook): Sorted | null {
  const { n, lines, words, result, room } = sort;
  const varying = look === undefined ? null : lines * 2 ** parts.digitBits * parts.many;
  const counts = set.temp('int32', lines * parts.many * (2 ** parts.digitBits + (look === undefined ? 0 : words)));
  const perWord = passesOf(sort.bits, parts);
  const total = words * perWord;
  const stored = Array.from({ length: Math.min(2, result === null ? total : total - 1) });
  const keys = stored.map(() => [set.temp('uint32', lines * n)]);
  // The last pass does not read from there.
  const spare = room === undefined ? -1 : (total - 1) % 2;
  const order = stored.map((_, i) => (i === spare ? null : set.temp('int32', lines * n)));
  // The first pass does not write there.
  const free = look?.keeps ? (keys[1] ?? null) : null;
  const all = { sort, parts, counts, varying };
  if (look !== undefined) set.add('_keys', lines * parts.many, (w) => lookAtKeys(w, all, free?.[0], look.lanes));
  const digitAt = (step: number) => ({ pass: step % perWord, word: Math.floor(step / perWord) });
  let from: Moved | null = null;
  for (let step = 0; step < total; step++) {
    const [{ pass }, last] = [digitAt(step), step === total - 1];
    const to = last && result !== null ? null : { keys: keys[step % 2]!, order: order[step % 2] ?? null };
    const keepsKeys = pass < perWord - 1 || (last && result === null);
    const made = step === 0 ? free : null;
    // Passes between the first and the last are left out by twos.
    const other = step % 2 === 1 ? step + 1 : step - 1;
    const pair = step > 0 && !last && other < total - 1 ? [step, other].map(digitAt) : null;
    sortByDigit(set, { ...all, pass: { step, ...digitAt(step), pair, from, made, to, keepsKeys } });
    from = to;
  }
  return result === null && from !== null ? { keys: from.keys, order: from.order! } : null;
}

/** Which bits of the keys of a part are not those of the first key of its line, in all words; and the keys, if there is a place for them. */
function lookAtKeys(w: ProgramWriter, all: Digits, to: Temp | undefined, lanes: number): void {
  const { b, e, group } = w;
  const { sort, parts, counts } = all;
  const open = sort.open(w);
  const [found, target] = [w.temp(counts, 'write'), to && w.temp(to, 'write')];
  const { line, first, left } = partOf(w, sort, parts);
  for (let word = 0; word < sort.words; word++) {
    const start = b.place(open(line, e.i32(0), word));
    const seen = [lanes, 1].map((width) => {
      const reg = b.reg(`bits${word}_${width}`, 'uint32', width);
      b.store(reg, 0, e.constant('uint32', 0, width));
      return reg;
    });
    inVectors(w, left, lanes, (k, width = 1) => {
      const i = e.add(first, k);
      const key = b.place(open(line, i, word, width));
      if (target) b.store(target, e.add(e.mul(line, sort.n), i), key);
      const reg = seen[width > 1 ? 0 : 1]!;
      b.store(reg, 0, e.or(b.load(reg, 0), e.xor(key, width > 1 ? e.splat(start, width) : start)));
    });
    const [several, one] = seen.map((reg) => b.place(b.load(reg, 0))) as [KNode, KNode];
    let bits = one;
    if (lanes > 1) for (let k = 0; k < lanes; k++) bits = e.or(bits, e.lane(several, k));
    b.store(found, varyingAt(w, all, word, group), e.bitcast(bits, 'int32'));
  }
}

/** Where the bits that differ in a part are, counted over all lines: behind the counts. */
function varyingAt({ e }: ProgramWriter, { sort, parts, varying }: Digits, word: number, part: KNode): KNode {
  return e.add(part, (varying ?? 0) + word * sort.lines * parts.many);
}

/** What a program of a pass asks first: whether a digit differs anywhere in a line, or any digit of its word. */
function differs(w: ProgramWriter, all: Digits, memory: KNode, line: KNode, { pass, word }: Digit, any = false): KNode {
  const { b, e } = w;
  const { many, digitBits } = all.parts;
  if (all.varying === null) return e.bool(true);
  const bits = b.reg('bits', 'int32');
  b.store(bits, 0, e.i32(0));
  b.loop(many, (part) => {
    const at = varyingAt(w, all, word, e.add(e.mul(line, many), part));
    b.store(bits, 0, e.or(b.load(bits, 0), b.load(memory, at)));
  });
  const found = e.bitcast(b.load(bits, 0), 'uint32');
  return b.place(any ? e.lt(e.constant('uint32', 0), found) : e.lt(0, digitOf(w, found, pass, digitBits)));
}

/** The part of a group of one thread: its line, its first element, and how many it has. */
export function partOf(
  { e, group }: ProgramWriter,
  { n }: LineSort,
  { each, many }: Parts,
): Record<'line' | 'first' | 'left', KNode> {
  const first = e.mul(e.irem(group, many), each);
  return { line: e.idiv(group, many), first, left: n % each === 0 ? e.i32(each) : e.min(each, e.sub(n, first)) };
}

/** Runs a statement for so many elements, vectors of them as long as they last. */
export function inVectors(
  { b, e }: ProgramWriter,
  many: KNode,
  lanes: number,
  run: (k: KNode, width?: number) => void,
): void {
  const whole = e.idiv(many, lanes);
  b.loop(whole, (k) => run(e.mul(k, lanes), lanes));
  const rest = e.mul(whole, lanes);
  b.loop(e.sub(many, rest), (k) => run(e.add(rest, k)));
}

/** Opens where elements were. */
function openOrder(w: ProgramWriter, { room }: LineSort, { order }: Moved, access: 'read' | 'write'): KNode {
  return order === null ? room!(w, access) : w.temp(order, access);
}

/** What all programs share. */
interface Digits {
  readonly sort: LineSort;
  readonly parts: Parts;
  /** By line, digit and part, how many elements there are, then where they go. */
  readonly counts: Temp;
  /** Where in that memory bits that differ are, by word, line and part; null where nobody looked. */
  readonly varying: number | null;
}

/** What the programs of a pass share. */
interface DigitPass extends Digits {
  readonly pass: Pass;
}

/** Three programs for a digit: groups count the elements of their parts, places are found, groups move the elements. */
function sortByDigit(set: ProgramSet, all: DigitPass): void {
  const { pass, parts, varying } = all;
  const { threads, many } = parts;
  /** A program for lines whose digits differ: `each` groups for a line. */
  const add = (name: string, each: number, write: (w: ProgramWriter, all: DigitPass, counts: KNode) => void): void =>
    set.add(
      `_${name}${pass.step}`,
      all.sort.lines * each,
      (w) => {
        const counts = w.temp(
          all.counts,
          name === 'move' ? 'read' : name === 'count' && varying === null ? 'write' : 'readwrite',
        );
        w.b.ifThen(differs(w, all, counts, w.e.idiv(w.group, each), pass), () => write(w, all, counts));
      },
      threads,
    );
  add('count', many, countDigits);
  add('places', 1, placeDigits);
  add('move', many, moveElements);
  if (varying !== null) set.add(`_stay${pass.step}`, all.sort.lines * many, (w) => keepElements(w, all));
}

/** Elements whose digits are all equal stay in place, in the memory that the next pass reads. */
function keepElements(w: ProgramWriter, all: DigitPass): void {
  const { b, e, group } = w;
  const { pass, parts } = all;
  const counts = w.temp(all.counts, 'read');
  const ask = (digit: Digit, any: boolean): KNode => differs(w, all, counts, e.idiv(group, parts.many), digit, any);
  // The first pass over a word reads it for the others.
  const needed = pass.pair?.map((digit) => ask(digit, digit.pass === 0)).reduce((x, y) => e.or(x, y)) ?? e.bool(true);
  b.ifThen(e.and(e.not(ask(pass, false)), needed), () => {
    const put = openTarget(w, all);
    openElements(w, all, true)(e.i32(0), (_, key, order, i) => put(i, key, order()));
  });
}

/** Opens the elements in a program; runs a body for every element that a thread has in a tile of its group. */
function openElements(
  w: ProgramWriter,
  { sort, parts, pass: { pass, word, from, made } }: DigitPass,
  withOrder: boolean,
) {
  const { n, open } = sort;
  const { digitBits, threads, each, turns, many } = parts;
  const { b, e, group, thread } = w;
  const line = e.idiv(group, many);
  const key = pass === 0 && made === null ? open(w) : null;
  const keys = key === null ? w.temp((made ?? from!.keys)[0]!, 'read') : null;
  const order = from !== null && (withOrder || pass === 0) ? openOrder(w, sort, from, 'read') : null;
  return (turn: KNode, body: (digit: KNode, key: KNode, order: () => KNode, i: KNode) => void): void => {
    const tile = e.add(e.mul(e.irem(group, many), turns), turn);
    const first = e.mul(e.add(e.mul(tile, threads), thread), each);
    const left = n % each === 0 ? e.i32(each) : e.min(each, e.sub(n, first));
    b.loop(threads === 1 ? left : each, (u) => {
      const i = e.add(first, u);
      b.ifThen(threads === 1 ? e.bool(true) : e.lt(i, n), () => {
        const at = e.add(e.mul(line, n), i);
        const was = (): KNode => (order === null ? i : b.load(order, at));
        const value = b.place(key === null ? b.load(keys!, at) : key(line, was(), word));
        body(b.place(digitOf(w, value, pass, digitBits)), value, was, i);
      });
    });
  };
}

/** Where in the counts a digit of a part is, counted over all lines. Digits lie side by side for threads by themselves, parts for groups. */
function countAt({ e }: ProgramWriter, { threads, many, digitBits }: Parts, part: KNode, digit: KNode): KNode {
  const some = 2 ** digitBits;
  return threads === 1
    ? e.add(e.mul(part, some), digit)
    : e.add(e.mul(e.add(e.mul(e.idiv(part, many), some), digit), many), e.irem(part, many));
}

function countDigits(w: ProgramWriter, all: DigitPass, target: KNode): void {
  const { b } = w;
  const { digitBits, turns } = all.parts;
  const some = 2 ** digitBits;
  const own = counters(w, some);
  const elements = openElements(w, all, false);
  clearCounters(w, own, some);
  b.loop(turns, (turn) => elements(turn, (digit) => take(w, own, digit)));
  meet(w);
  eachDigit(w, some, (digit) => b.store(target, countAt(w, all.parts, w.group, digit), countOf(w, own, digit)));
}

/** Smaller digits first, then earlier parts. */
function placeDigits(w: ProgramWriter, { parts }: DigitPass, memory: KNode): void {
  const { e, group } = w;
  const { digitBits, many } = parts;
  const at = (i: KNode): KNode => countAt(w, parts, e.add(e.mul(group, many), e.irem(i, many)), e.idiv(i, many));
  scanList(w, { memory, length: 2 ** digitBits * many, at }, counting(w));
}

function moveElements(w: ProgramWriter, all: DigitPass, places: KNode): void {
  const { b, e, group } = w;
  const { threads, turns, digitBits } = all.parts;
  const some = 2 ** digitBits;
  const elements = openElements(w, all, true);
  const put = openTarget(w, all);
  const own = counters(w, some);
  // Where the next element of each digit goes. A thread by itself counts on there.
  const next = threads === 1 ? own : b.shared('next', 'int32', some);
  eachDigit(w, some, (digit) => b.store(next, digit, b.load(places, countAt(w, all.parts, group, digit))));
  if (threads === 1) {
    elements(e.i32(0), (digit, key, order) => put(take(w, own, digit), key, order()));
    return;
  }
  const shift = b.shared('shift', 'int32', some);
  b.loop(turns, (turn) => {
    clearCounters(w, own, some);
    elements(turn, (digit) => take(w, own, digit));
    b.barrier();
    // Now each counter is the place in the tile, sorted, of the next element it counts.
    const total = placeCounters(w, own, 0, some);
    b.barrier();
    eachDigit(w, some, (digit) => {
      const start = b.place(b.load(own, e.mul(digit, threads)));
      const after = b.load(own, e.mul(e.min(e.add(digit, 1), some - 1), threads));
      const end = e.where(e.eq(digit, some - 1), total, after);
      const base = b.place(b.load(next, digit));
      b.store(shift, digit, e.sub(base, start));
      b.store(next, digit, e.sub(e.add(base, end), start));
    });
    b.barrier();
    elements(turn, (digit, key, order) => put(e.add(take(w, own, digit), b.load(shift, digit)), key, order()));
    b.barrier();
  });
}

/** Opens what a pass writes; puts an element at its place in the line of the group. */
function openTarget(
  w: ProgramWriter,
  { sort, parts, pass: { to, keepsKeys } }: DigitPass,
): (rank: KNode, key: KNode, order: KNode) => void {
  const { b, e, group } = w;
  const toKeys = keepsKeys ? w.temp(to!.keys[0]!, 'write') : null;
  const toOrder = to && openOrder(w, sort, to, 'write');
  const store = to === null ? sort.result!(w) : null;
  const line = e.idiv(group, parts.many);
  return (rank, key, order) => {
    const at = e.add(e.mul(line, sort.n), rank);
    if (toKeys !== null) b.store(toKeys, at, key);
    if (store !== null) store(line, rank, order, wanted(w, sort, rank));
    else b.store(toOrder!, at, order);
  };
}
