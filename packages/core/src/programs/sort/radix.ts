/**
 * Radix sort of lines, least significant digit first: each pass moves elements to the places of their digit, in order.
 *
 * Keys of two words are sorted by the low word, then by the high one, which is read anew in the order found so far.
 */
import type { KNode } from '../../ir/ir.ts';
import { lineStart } from '../lines.ts';
import type { ProgramSet, ProgramWriter, Temp } from '../program-set.ts';
import { elementAt, type LineSort, storeRank } from './keys.ts';

/** Bits of a digit. */
const digitBits = 8;
export const digits: number = 1 << digitBits;
export const passesPerWord: number = 32 / digitBits;
/** Elements a group sorts at least where several do one line, and most groups to a line. */
const blockElements = 1 << 14;
const mostBlocks = 64;
/** Elements a group should have at least where it sorts lines by itself. */
const groupElements = 2048;

/** Bytes of group memory that `radixInGroup` takes. */
export function radixMemory(n: number): number {
  return 4 * (4 * n + digits * passesPerWord);
}

function digitOf({ e }: ProgramWriter, key: KNode, pass: number): KNode {
  const shifted = e.shr(key, e.constant('uint32', pass * digitBits));
  return e.bitcast(e.and(shifted, e.constant('uint32', digits - 1)), 'int32');
}

/** Where the next element of a digit goes; and the one after that is next. */
function take({ b, e }: ProgramWriter, places: KNode, digit: KNode): KNode {
  const place = b.load(places, digit);
  b.store(places, digit, e.add(place, 1));
  return place;
}

/** Whole lines, in the memory of one group. */
export function radixInGroup(set: ProgramSet, sort: LineSort): void {
  const { n, lines, keys, axis, x, out } = sort;
  const turns = Math.max(1, Math.min(lines, Math.floor(groupElements / n)));
  set.add('_radix', Math.ceil(lines / turns), (w) => {
    const { b, e, group } = w;
    const target = w.param(0, 'int32', 'write', out.span);
    const source = keys.open(w, 1);
    const key = [b.shared('key0', 'uint32', n), b.shared('key1', 'uint32', n)] as const;
    const order = [b.shared('order0', 'int32', n), b.shared('order1', 'int32', n)] as const;
    const places = b.shared('places', 'int32', digits * passesPerWord);
    const running = b.reg('running', 'int32');
    b.loop(turns, (turn) => {
      const line = e.min(e.add(e.mul(group, turns), turn), lines - 1);
      const [from, to] = [lineStart(e, x, axis, line), lineStart(e, out, axis, line)];
      for (let word = 0; word < keys.words; word++) {
        const last = word === keys.words - 1;
        b.loop(digits * passesPerWord, (d) => b.store(places, d, e.i32(0)));
        b.loop(n, (i) => {
          const at = word === 0 ? i : b.load(order[0], i);
          const value = b.place(keys.key(w, source, elementAt(w, sort, from, at), word));
          b.store(key[0], i, value);
          for (let pass = 0; pass < passesPerWord; pass++) take(w, places, ofPass(w, digitOf(w, value, pass), pass));
        });
        for (let pass = 0; pass < passesPerWord; pass++) startsOf(w, places, running, pass * digits);
        for (let pass = 0; pass < passesPerWord; pass++) {
          const [read, write] = pass % 2 === 0 ? [0, 1] : [1, 0];
          b.loop(n, (i) => {
            const value = b.load(key[read as 0 | 1], i);
            const at = word === 0 && pass === 0 ? i : b.load(order[read as 0 | 1], i);
            const place = take(w, places, ofPass(w, digitOf(w, value, pass), pass));
            if (last && pass === passesPerWord - 1) storeRank(w, sort, target, to, place, at);
            else {
              if (pass < passesPerWord - 1) b.store(key[write as 0 | 1], place, value);
              b.store(order[write as 0 | 1], place, at);
            }
          });
        }
      }
    });
  });
}

/** Elements in the memory of a group: keys and their order, twice as much of both as there are elements, and places of digits. */
export interface InMemory {
  readonly keys: readonly [KNode, KNode];
  readonly order: readonly [KNode, KNode];
  readonly places: KNode;
  readonly many: KNode;
}

/** Sorts keys[0] and order[0] by the keys, of one word. */
export function radixInMemory(w: ProgramWriter, { keys, order, places, many }: InMemory): void {
  const { b, e } = w;
  const running = b.reg('running', 'int32');
  b.loop(digits * passesPerWord, (d) => b.store(places, d, e.i32(0)));
  b.loop(many, (i) => {
    const value = b.load(keys[0], i);
    for (let pass = 0; pass < passesPerWord; pass++) take(w, places, ofPass(w, digitOf(w, value, pass), pass));
  });
  for (let pass = 0; pass < passesPerWord; pass++) startsOf(w, places, running, pass * digits);
  for (let pass = 0; pass < passesPerWord; pass++) {
    const [read, write] = pass % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    b.loop(many, (i) => {
      const value = b.load(keys[read], i);
      const at = b.load(order[read], i);
      const place = take(w, places, ofPass(w, digitOf(w, value, pass), pass));
      b.store(keys[write], place, value);
      b.store(order[write], place, at);
    });
  }
}

/** The place of a digit in the table of all passes. */
function ofPass({ e }: ProgramWriter, digit: KNode, pass: number): KNode {
  return e.add(digit, pass * digits);
}

/** Counts of digits become the places of their first elements. */
function startsOf({ b, e }: ProgramWriter, places: KNode, running: KNode, offset: number): void {
  b.store(running, 0, e.i32(0));
  b.loop(digits, (d) => {
    const at = e.add(d, offset);
    const many = b.load(places, at);
    const start = b.load(running, 0);
    b.store(places, at, start);
    b.store(running, 0, e.add(start, many));
  });
}

/** One pass over lines that several groups share: keys and order come from `read` (null: as the elements lie) and go to `write`. */
interface Pass {
  readonly word: number;
  readonly pass: number;
  /** Keys as the pass before left them; null where they are read from the elements. */
  readonly keys: Temp | null;
  readonly order: Temp | null;
  readonly toKeys: Temp | null;
  /** Null for the result. */
  readonly toOrder: Temp | null;
}

/** Long lines: counting, places, moving, for every digit. */
export function radixByGroups(set: ProgramSet, sort: LineSort): void {
  const { n, lines } = sort;
  const blocks = Math.min(mostBlocks, Math.ceil(n / blockElements));
  const counts = set.temp('int32', lines * blocks * digits);
  const keys = [set.temp('uint32', lines * n), set.temp('uint32', lines * n)] as const;
  const order = [set.temp('int32', lines * n), set.temp('int32', lines * n)] as const;
  const total = sort.keys.words * passesPerWord;
  for (let step = 0; step < total; step++) {
    const pass = step % passesPerWord;
    const [read, write] = step % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    const one: Pass = {
      word: Math.floor(step / passesPerWord),
      pass,
      keys: pass === 0 ? null : keys[read],
      order: step === 0 ? null : order[read],
      toKeys: pass === passesPerWord - 1 ? null : keys[write],
      toOrder: step === total - 1 ? null : order[write],
    };
    countDigits(set, sort, one, blocks, counts, step);
    findPlaces(set, sort, blocks, counts, step);
    move(set, sort, one, blocks, counts, step);
  }
}

/** Runs `body` with every element of the group's block: its place in the line, and its key. */
function eachOfBlock(
  w: ProgramWriter,
  sort: LineSort,
  one: Pass,
  blocks: number,
  body: (key: KNode, order: () => KNode) => void,
): KNode {
  const { b, e, group } = w;
  const { n, x, axis } = sort;
  const line = e.idiv(group, blocks);
  const block = e.irem(group, blocks);
  const length = Math.floor(n / blocks);
  const rest = n - length * blocks;
  // The first `rest` blocks have one element more.
  const first = e.add(e.mul(block, length), e.min(block, rest));
  const many = rest === 0 ? e.i32(length) : e.add(length, e.cast(e.lt(block, rest), 'int32'));
  const from = lineStart(e, x, axis, line);
  const source = one.keys === null ? sort.keys.open(w, 1) : w.temp(one.keys, 'read');
  const order = one.order && w.temp(one.order, 'read');
  b.loop(many, (k) => {
    const i = e.add(first, k);
    const inLine = e.add(e.mul(line, n), i);
    const at = (): KNode => (order === null ? i : b.load(order, inLine));
    const key =
      one.keys === null ? sort.keys.key(w, source, elementAt(w, sort, from, at()), one.word) : b.load(source, inLine);
    body(key, at);
  });
  return line;
}

function countDigits(set: ProgramSet, sort: LineSort, one: Pass, blocks: number, counts: Temp, step: number): void {
  set.add(`_count${step}`, sort.lines * blocks, (w) => {
    const { b, e, group } = w;
    const own = b.shared('own', 'int32', digits);
    b.loop(digits, (d) => b.store(own, d, e.i32(0)));
    eachOfBlock(w, sort, one, blocks, (key) => {
      take(w, own, digitOf(w, key, one.pass));
    });
    const target = w.temp(counts, 'write');
    b.loop(digits, (d) => b.store(target, e.add(e.mul(group, digits), d), b.load(own, d)));
  });
}

/** Places of the first element of every digit in every block: smaller digits first, then earlier blocks. */
function findPlaces(set: ProgramSet, sort: LineSort, blocks: number, counts: Temp, step: number): void {
  set.add(`_places${step}`, sort.lines, (w) => {
    const { b, e, group } = w;
    const memory = w.temp(counts, 'readwrite');
    const running = b.reg('running', 'int32');
    b.store(running, 0, e.i32(0));
    b.loop(digits, (d) => {
      b.loop(blocks, (block) => {
        const row = e.add(e.mul(group, blocks), block);
        const at = e.add(e.mul(row, digits), d);
        const many = b.load(memory, at);
        const start = b.load(running, 0);
        b.store(memory, at, start);
        b.store(running, 0, e.add(start, many));
      });
    });
  });
}

function move(set: ProgramSet, sort: LineSort, one: Pass, blocks: number, counts: Temp, step: number): void {
  const { n, axis, out } = sort;
  set.add(`_move${step}`, sort.lines * blocks, (w) => {
    const { b, e, group } = w;
    const places = b.shared('places', 'int32', digits);
    const starts = w.temp(counts, 'read');
    const target = one.toOrder === null ? w.param(0, 'int32', 'write', out.span) : w.temp(one.toOrder, 'write');
    const toKeys = one.toKeys && w.temp(one.toKeys, 'write');
    b.loop(digits, (d) => b.store(places, d, b.load(starts, e.add(e.mul(group, digits), d))));
    const line = e.idiv(group, blocks);
    const to = one.toOrder === null ? lineStart(e, out, axis, line) : e.mul(line, n);
    eachOfBlock(w, sort, one, blocks, (key, order) => {
      const place = take(w, places, digitOf(w, key, one.pass));
      const at = order();
      if (toKeys !== null) b.store(toKeys, e.add(e.mul(line, n), place), key);
      if (one.toOrder === null) storeRank(w, sort, target, to, place, at);
      else b.store(target, e.add(to, place), at);
    });
  });
}
