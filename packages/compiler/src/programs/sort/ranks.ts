/**
 * Positions of the elements at a few ranks of lines, which are not sorted for it. By single threads; equal keys are in the order they
 * came in, as in a stable sort, and all counts are whole numbers, so results are the same for any number of threads.
 *
 * Short lines: the key at a rank is found bit by bit, by vectors that count smaller keys. Long lines are cut into parts, and digits are
 * found from the most significant on (radix select): elements are counted by digit, and those of other digits left out.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import type { ProgramSet, ProgramWriter, Temp } from '../program-set.ts';
import { addLines, type LineSort } from './keys.ts';
import { inVectors, partOf, type Parts, partsOfThreads } from './radix.ts';

/** Longest line of one group. A pass over it for each bit takes less time than a sort up to there. */
const longestLine = 2048;
/** Of fewer elements a sort takes as long, and its program is shorter. */
const fewestElements = 256;

/** Adds programs that find the ranks that are wanted, unless a sort finds them sooner. */
export function findRanks(set: ProgramSet, sort: LineSort, caps: CodegenCaps): boolean {
  const lanes = Math.floor(caps.vectorBytes / 4);
  if (sort.n > longestLine) inParts(set, sort, lanes);
  else if (sort.lines * sort.n < fewestElements) return false;
  else if (lanes > 1 && sort.words === 1 && 4 * (sort.n + lanes) <= caps.sharedBytes) byBits(set, sort, lanes);
  else return false;
  return true;
}

function register({ b, e }: ProgramWriter, name: string, start: KNode = e.i32(0)): KNode {
  const reg = b.reg(name, 'int32');
  b.store(reg, 0, start);
  return reg;
}

function addTo({ b, e }: ProgramWriter, reg: KNode, more: KNode): void {
  b.store(reg, 0, e.add(b.load(reg, 0), more));
}

// Short lines.

function byBits(set: ProgramSet, sort: LineSort, lanes: number): void {
  const { n, from } = sort;
  const vectors = Math.ceil(n / lanes);
  addLines(set, '_ranks', sort, (w) => {
    const { b, e } = w;
    const store = sort.result!(w);
    const key = sort.open(w);
    // Signed numbers, which vectors compare in one instruction; behind the last one the largest, which is smaller than none.
    const signed = (x: KNode, width = 1): KNode =>
      e.bitcast(e.xor(x, e.constant('uint32', 0x8000_0000, width)), 'int32');
    const keys = b.shared('keys', 'int32', vectors * lanes);
    for (let i = n; i < vectors * lanes; i++) b.store(keys, i, e.i32(2 ** 31 - 1));
    const number = (value: number): KNode => e.constant('int32', value, lanes);
    const vector = b.reg('vector', 'int32', lanes);
    const made = b.shared('made', 'int32', lanes);
    const quarter = Math.min(4, lanes);
    /** Combines a value for each vector of keys, then the lanes: in memory, where a part of a vector is read at no cost. */
    const combined = (
      start: number,
      both: (x: KNode, y: KNode) => KNode,
      value: (keys: KNode, first: KNode) => KNode,
    ): KNode => {
      b.store(vector, 0, number(start));
      b.loop(vectors, (v) => {
        const first = e.mul(v, lanes);
        b.store(vector, 0, both(b.load(vector, 0), value(b.load(keys, first, lanes), first)));
      });
      b.store(made, 0, b.load(vector, 0));
      const some = Array.from({ length: lanes / quarter }, (_, i) => b.load(made, i * quarter, quarter)).reduce(both);
      const four = b.place(some);
      return b.place(Array.from({ length: quarter }, (_, lane) => e.lane(four, lane)).reduce(both));
    };
    const where = (holds: KNode, value: KNode, otherwise: number): KNode => e.where(holds, value, number(otherwise));
    const splat = (x: KNode): KNode => b.place(e.splat(x, lanes));
    const smaller = (than: KNode): KNode => {
      const limit = splat(than);
      return combined(
        0,
        (x, y) => e.add(x, y),
        (key) => where(e.lt(key, limit), number(1), 0),
      );
    };
    const lanesFrom = e.vec(Array.from({ length: lanes }, (_, lane) => e.i32(lane)));
    return (line) => {
      inVectors(w, e.i32(n), sort.adjacent ? lanes : 1, (k, width) =>
        b.store(keys, k, signed(key(line, k, 0, width), width)),
      );
      // The largest number that no more than `from` keys are smaller than, and how many are.
      const found = b.reg('found', 'uint32');
      b.store(found, 0, e.constant('uint32', 0));
      const before = register(w, 'before');
      b.loop(32, (done) => {
        const bit = e.shr(e.constant('uint32', 0x8000_0000), e.cast(done, 'uint32'));
        const larger = b.place(e.or(b.load(found, 0), bit));
        const many = smaller(signed(larger));
        const fits = b.place(e.le(many, from));
        b.store(found, 0, e.where(fits, larger, b.load(found, 0)));
        b.store(before, 0, e.where(fits, many, b.load(before, 0)));
      });
      const wanted = register(w, 'wanted', signed(b.load(found, 0)));
      b.loop(sort.count - from, (which) => {
        const rank = b.place(e.add(which, from));
        // Later ranks have the same key, or the next one.
        if (sort.count - from > 1)
          b.ifThen(e.lt(0, which), () => {
            const own = splat(b.load(wanted, 0));
            const least = combined(
              2 ** 31 - 1,
              (x, y) => e.min(x, y),
              (key) => where(e.lt(own, key), key, 2 ** 31 - 1),
            );
            const many = combined(
              0,
              (x, y) => e.add(x, y),
              (key) => where(e.le(key, own), number(1), 0),
            );
            b.ifThen(e.le(many, rank), () => {
              b.store(wanted, 0, least);
              b.store(before, 0, many);
            });
          });
        const own = b.place(b.load(wanted, 0));
        const left = register(w, 'left', e.sub(rank, b.load(before, 0)));
        const all = splat(own);
        const at = register(
          w,
          'at',
          combined(
            n,
            (x, y) => e.min(x, y),
            (key, first) => where(e.eq(key, all), e.add(splat(first), lanesFrom), n),
          ),
        );
        // Behind the first of equals.
        b.ifThen(e.lt(0, b.load(left, 0)), () =>
          b.loop(n, (k) => {
            const equal = b.place(e.eq(b.load(keys, k), own));
            b.store(at, 0, e.where(e.and(equal, e.eq(b.load(left, 0), 0)), k, b.load(at, 0)));
            addTo(w, left, e.neg(e.cast(equal, 'int32')));
          }),
        );
        store(line, rank, b.load(at, 0));
      });
    };
  });
}

// Long lines.

const most = 11;
const digits = 1 << most;
/** Bits of the digits of a word, most significant first, and how far up they are. The first one tells floats of one size apart. */
const parted = [
  { bits: most, shift: 21 },
  { bits: most, shift: 10 },
  { bits: 10, shift: 0 },
];

interface Digit {
  readonly word: number;
  readonly bits: number;
  readonly shift: number;
}

function digitOf({ e }: ProgramWriter, key: KNode, { bits, shift }: Digit): KNode {
  const [by, mask] = [shift, 2 ** bits - 1].map((x) => e.constant('uint32', x, key.lanes));
  return e.bitcast(e.and(e.shr(key, by!), mask!), 'int32');
}

/** What the programs of a rank share. */
interface Search {
  readonly sort: LineSort;
  readonly parts: Parts;
  readonly lanes: number;
  /** By part, elements of each digit. */
  readonly counts: Temp;
  /** By part, positions of elements that are left, where the part lies in the line; and how many. */
  readonly left: Temp;
  readonly many: Temp;
  /** By line, the digit of the element, and its rank among those of the digit. */
  readonly found: Temp;
}

function inParts(set: ProgramSet, sort: LineSort, lanes: number): void {
  const { n, lines, words, from, count: end } = sort;
  const parts = partsOfThreads(n);
  const all = lines * parts.many;
  const steps = Array.from({ length: words }, (_, i) =>
    parted.map((digit) => ({ ...digit, word: words - 1 - i })),
  ).flat();
  const counted = set.temp('int32', all * digits);
  const search = {
    sort,
    parts,
    lanes,
    counts: set.temp('int32', all * digits),
    left: set.temp('int32', lines * n),
    many: set.temp('int32', all),
    found: set.temp('int32', 2 * lines),
  };
  // All ranks begin with the same counts.
  set.add('_count', all, (w) => countFirst(w, { ...search, counts: counted }, steps[0]!));
  for (let rank = from; rank < end; rank++) {
    const name = rank === from ? '' : `_${rank - from}`;
    for (const [step, digit] of steps.entries()) {
      const counts = step === 0 ? counted : search.counts;
      set.add(`_pick${step}${name}`, lines, (w) => pickDigit(w, { ...search, counts }, step === 0 ? rank : null));
      const next = steps[step + 1];
      if (next) set.add(`_leave${step}${name}`, all, (w) => leave(w, search, digit, next, step === 0));
    }
    set.add(`_find${name}`, lines, (w) => find(w, search, steps[steps.length - 1]!, rank));
  }
}

function clear({ b, e }: ProgramWriter, counts: KNode, length: number): void {
  b.loop(length, (i) => b.store(counts, i, e.i32(0)));
}

function count({ b, e }: ProgramWriter, counts: KNode, at: KNode): void {
  const place = b.place(at);
  b.store(counts, place, e.add(b.load(counts, place), 1));
}

/** Vectors of the keys of a part, or one by one. */
function widthOf({ sort, lanes }: Search): number {
  return sort.adjacent && sort.words === 1 ? lanes : 1;
}

/** Counts the first digits of a part. */
function countFirst(w: ProgramWriter, search: Search, digit: Digit): void {
  const { b, e, group } = w;
  const { sort, parts, counts } = search;
  const key = sort.open(w);
  // Neighbours are counted apart: most digits are those of the element before, whose counter is still on its way to memory.
  const own = b.shared('counts', 'int32', 2 * digits);
  const { line, first, left } = partOf(w, sort, parts);
  clear(w, own, 2 * digits);
  inVectors(w, left, widthOf(search), (k, width = 1) => {
    const found = b.place(digitOf(w, key(line, e.add(first, k), digit.word, width), digit));
    for (let lane = 0; lane < width; lane++)
      count(w, own, width === 1 ? found : e.add(e.lane(found, lane), (lane % 2) * digits));
  });
  const target = w.temp(counts, 'write');
  b.loop(digits, (i) =>
    b.store(target, e.add(e.mul(group, digits), i), e.add(b.load(own, i), b.load(own, e.add(i, digits)))),
  );
}

/** Adds up the counts of the parts of a line, and finds the digit of the rank, which is the one found before if it is null. */
function pickDigit(w: ProgramWriter, { parts, lanes, counts, found }: Search, start: number | null): void {
  const { b, e, group } = w;
  const from = w.temp(counts, 'read');
  const state = w.temp(found, start === null ? 'readwrite' : 'write');
  const own = b.shared('counts', 'int32', digits);
  const sums = b.reg('sums', 'int32', lanes);
  b.loop(digits / lanes, (vector) => {
    const at = e.mul(vector, lanes);
    b.store(sums, 0, e.constant('int32', 0, lanes));
    b.loop(parts.many, (part) => {
      const place = e.add(e.mul(e.add(e.mul(group, parts.many), part), digits), at);
      b.store(sums, 0, e.add(b.load(sums, 0), b.load(from, place, lanes)));
    });
    b.store(own, at, b.load(sums, 0));
  });
  const twice = e.mul(group, 2);
  const rank = start === null ? b.place(b.load(state, e.add(twice, 1))) : e.i32(start);
  const [sum, digit, left] = ['sum', 'digit', 'left'].map((name) => register(w, name)) as [KNode, KNode, KNode];
  b.loop(digits, (i) => {
    const before = b.place(b.load(sum, 0));
    const after = b.place(e.add(before, b.load(own, i)));
    const here = b.place(e.and(e.le(before, rank), e.lt(rank, after)));
    b.store(digit, 0, e.where(here, i, b.load(digit, 0)));
    b.store(left, 0, e.where(here, e.sub(rank, before), b.load(left, 0)));
    b.store(sum, 0, after);
  });
  b.store(state, twice, b.load(digit, 0));
  b.store(state, e.add(twice, 1), b.load(left, 0));
}

/** Leaves out the elements of other digits in a part, and counts the next digits of those that stay. */
function leave(w: ProgramWriter, search: Search, digit: Digit, next: Digit, atFirst: boolean): void {
  const { sort, parts, counts, found } = search;
  const { b, e, group } = w;
  const key = sort.open(w);
  const own = b.shared('counts', 'int32', digits);
  const { line, first, left } = partOf(w, sort, parts);
  const wanted = b.place(b.load(w.temp(found, 'read'), e.mul(line, 2)));
  const positions = w.temp(search.left, atFirst ? 'write' : 'readwrite');
  const many = w.temp(search.many, atFirst ? 'write' : 'readwrite');
  const at = (k: KNode): KNode => e.add(e.mul(line, sort.n), e.add(first, k));
  const to = register(w, 'to');
  clear(w, own, digits);
  /** What stays moves to the front: nothing is written that is still to be read. */
  const keepIf = (found: KNode, i: KNode): void =>
    b.ifThen(e.eq(found, wanted), () => {
      b.store(positions, at(b.load(to, 0)), i);
      addTo(w, to, e.i32(1));
      count(w, own, digitOf(w, key(line, i, next.word), next));
    });
  if (atFirst) {
    const width = widthOf(search);
    const several = width > 1 ? b.shared('digits', 'int32', width) : null;
    inVectors(w, left, width, (k, lanes = 1) => {
      const vector = b.place(digitOf(w, key(line, e.add(first, k), digit.word, lanes), digit));
      if (lanes === 1 || several === null) return keepIf(vector, e.add(first, k));
      const other = b.place(e.xor(vector, e.splat(wanted, lanes)));
      const least = Array.from({ length: lanes }, (_, lane) => e.lane(other, lane)).reduce((x, y) => e.min(x, y));
      b.ifThen(e.eq(least, 0), () => {
        b.store(several, 0, vector);
        b.loop(lanes, (lane) => keepIf(b.load(several, lane), e.add(e.add(first, k), lane)));
      });
    });
  } else {
    b.loop(w.typical(b.load(many, group), Math.ceil(parts.each / 16)), (k) => {
      const i = b.place(b.load(positions, at(k)));
      keepIf(digitOf(w, key(line, i, digit.word), digit), i);
    });
  }
  b.store(many, group, b.load(to, 0));
  const target = w.temp(counts, 'write');
  b.loop(digits, (i) => b.store(target, e.add(e.mul(group, digits), i), b.load(own, i)));
}

/** Finds the element of a rank among those that are left in a line, and have the last digit. */
function find(w: ProgramWriter, search: Search, digit: Digit, rank: number): void {
  const { sort, parts } = search;
  const { b, e, group } = w;
  const key = sort.open(w);
  const store = sort.result!(w);
  const [counts, found, positions, many] = [search.counts, search.found, search.left, search.many].map((temp) =>
    w.temp(temp, 'read'),
  ) as [KNode, KNode, KNode, KNode];
  const wanted = b.place(b.load(found, e.mul(group, 2)));
  const left = register(w, 'left', b.load(found, e.add(e.mul(group, 2), 1)));
  const at = register(w, 'at');
  b.loop(parts.many, (i) => {
    const part = b.place(e.add(e.mul(group, parts.many), i));
    const has = b.place(b.load(counts, e.add(e.mul(part, digits), wanted)));
    const before = b.place(b.load(left, 0));
    b.store(left, 0, e.sub(before, has));
    b.ifThen(e.and(e.le(0, before), e.lt(before, has)), () => {
      const passed = register(w, 'passed');
      b.loop(w.typical(b.load(many, part), 1), (k) => {
        const place = e.add(e.mul(group, sort.n), e.add(e.mul(i, parts.each), k));
        const position = b.place(b.load(positions, place));
        const equal = b.place(e.eq(digitOf(w, key(group, position, digit.word), digit), wanted));
        const here = e.and(equal, e.eq(b.load(passed, 0), before));
        b.store(at, 0, e.where(here, position, b.load(at, 0)));
        addTo(w, passed, e.cast(equal, 'int32'));
      });
    });
  });
  store(group, e.i32(rank), b.load(at, 0));
}
