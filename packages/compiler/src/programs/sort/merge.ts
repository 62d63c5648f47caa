/**
 * Sorting lines by groups of threads: each group sorts a chunk in its memory, then sorted runs are merged two by two.
 *
 * Chunks: a bitonic network over keys and positions; positions decide between equal keys, which makes it stable. Merges: every
 * thread finds by bisection which elements of the two runs its results come from (merge path) and merges those few. Where only
 * the first `count` of a line are wanted, runs are cut to that length at every step.
 */
import type { KNode } from '../../ir/ir.ts';
import { bisect } from '../groups.ts';
import type { ProgramSet, ProgramWriter } from '../program-set.ts';
import { type LineSort, precedes, type Sorted } from './keys.ts';

/** Results that one thread merges. */
const each = 8;
/** Elements of a chunk, at most. */
const longestChunk = 2048;

/** Runs of `capacity` elements, the last one of a line of `last`. */
interface Runs extends Sorted {
  readonly many: number;
  readonly capacity: number;
  readonly last: number;
}

/** Elements of a chunk that fit into group memory. */
export function chunkOf(n: number, words: number, sharedBytes: number): number {
  const fits = 2 ** Math.floor(Math.log2(sharedBytes / (4 * (words + 1))));
  return Math.max(2, Math.min(longestChunk, fits, 2 ** Math.ceil(Math.log2(Math.max(2, n)))));
}

/** Gives where the elements are unless the sort stores them. */
export function mergeSort(set: ProgramSet, sort: LineSort, sharedBytes: number, maxGroup: number): Sorted | null {
  const { lines, n, count, words } = sort;
  const chunk = chunkOf(n, words, sharedBytes);
  const runsOf = (many: number, capacity: number, last: number): Runs | null =>
    many === 1 && sort.result !== null
      ? null
      : {
          many,
          capacity,
          last,
          keys: Array.from({ length: words }, () => set.temp('uint32', lines * many * capacity)),
          order: set.temp('int32', lines * many * capacity),
        };
  const chunks = Math.ceil(n / chunk);
  let runs = runsOf(chunks, Math.min(chunk, count), Math.min(n - (chunks - 1) * chunk, count));
  sortChunks(set, sort, chunk, Math.min(256, 2 ** Math.floor(Math.log2(maxGroup)), chunk / 2), runs);
  for (let step = 0; runs !== null && runs.many > 1; step++) {
    const { many, capacity, last }: Runs = runs;
    const length = Math.min(2 * capacity, count);
    const next = runsOf(Math.ceil(many / 2), length, Math.min(count, many % 2 === 0 ? capacity + last : last));
    mergePairs(set, sort, step, runs, next);
    runs = next;
  }
  return runs;
}

/** True if one (key, position) comes before another. */
function before(w: ProgramWriter, x: readonly KNode[], y: readonly KNode[]): KNode {
  return precedes(w, x.slice(0, -1), y.slice(0, -1), w.e.lt(x[x.length - 1]!, y[y.length - 1]!));
}

function sortChunks(set: ProgramSet, sort: LineSort, chunk: number, threads: number, runs: Runs | null): void {
  const { lines, n, count, words } = sort;
  const chunks = runs?.many ?? 1;
  const write = (w: ProgramWriter): void => {
    const { b, e, group, thread } = w;
    const key = sort.open(w);
    const [line, which] = [e.idiv(group, chunks), e.irem(group, chunks)];
    const first = e.mul(which, chunk);
    const cells = [
      ...Array.from({ length: words }, (_, word) => b.shared(`key${word}`, 'uint32', chunk)),
      b.shared('position', 'int32', chunk),
    ];
    b.loop(chunk / threads, (turn) => {
      const at = e.add(e.mul(turn, threads), thread);
      const i = e.add(first, at);
      const inside = n % chunk === 0 ? e.bool(true) : e.lt(i, n);
      const read = e.where(inside, i, 0);
      for (let word = 0; word < words; word++) {
        const value = e.where(inside, key(line, read, word), e.constant('uint32', 0xffff_ffff));
        b.store(cells[word]!, at, value);
      }
      // What fills the last chunk goes behind every element, also behind equal keys.
      b.store(cells[words]!, at, e.where(inside, i, 0x7fff_ffff));
    });
    b.barrier();
    b.loop(Math.log2(chunk), (size) => {
      b.loop(e.add(size, 1), (done) => {
        const bit = e.sub(size, done);
        b.loop(chunk / 2 / threads, (turn) => {
          const pair = e.add(e.mul(turn, threads), thread);
          const low = e.sub(e.shl(1, bit), 1);
          const i = b.place(e.add(e.shl(e.shr(pair, bit), e.add(bit, 1)), e.and(pair, low)));
          const j = b.place(e.add(i, e.shl(1, bit)));
          const falling = e.eq(e.and(e.shr(i, e.add(size, 1)), 1), 1);
          const [x, y] = [i, j].map((at) => cells.map((c) => b.load(c, at))) as [KNode[], KNode[]];
          const swap = b.place(e.eq(before(w, y, x), e.not(falling)));
          b.ifThen(swap, () => {
            cells.forEach((c, part) => {
              b.store(c, i, y[part]!);
              b.store(c, j, x[part]!);
            });
          });
        });
        b.barrier();
      });
    });
    const store = writerOf(w, sort, runs);
    const length = runs === null ? e.i32(count) : lengthOf(w, runs, which);
    b.loop(chunk / threads, (turn) => {
      const at = e.add(e.mul(turn, threads), thread);
      const inside = b.place(e.lt(at, length));
      const values = cells.map((c) => b.load(c, at));
      store(runs === null ? line : group, at, values, inside);
    });
  };
  set.add('_chunks', lines * chunks, write, threads);
}

function lengthOf({ e }: ProgramWriter, { many, capacity, last }: Runs, which: KNode): KNode {
  return last === capacity ? e.i32(capacity) : e.where(e.eq(which, many - 1), e.i32(last), e.i32(capacity));
}

/** Stores elements of runs: those of the result by line and rank; else the run is one among those of all lines. */
function writerOf(w: ProgramWriter, sort: LineSort, runs: Runs | null) {
  const { b, e } = w;
  if (runs === null) {
    const store = sort.result!(w);
    return (line: KNode, rank: KNode, parts: readonly KNode[], gate?: KNode): void =>
      store(line, rank, parts[sort.words]!, gate);
  }
  const memories = [...runs.keys, runs.order].map((t) => w.temp(t, 'write'));
  return (run: KNode, at: KNode, parts: readonly KNode[], gate?: KNode): void => {
    const place = e.add(e.mul(run, runs.capacity), at);
    for (const [i, memory] of memories.entries()) b.store(memory, place, parts[i]!, gate);
  };
}

function mergePairs(set: ProgramSet, sort: LineSort, step: number, from: Runs, to: Runs | null): void {
  const { lines, count } = sort;
  const pairs = Math.ceil(from.many / 2);
  const capacity = to?.capacity ?? count;
  const blocks = Math.ceil(capacity / each);
  set.add(`_merge${step}`, lines * pairs * blocks, (w) => {
    const { b, e, group } = w;
    const memories = [...from.keys, from.order].map((t) => w.temp(t, 'read'));
    const store = writerOf(w, sort, to);
    const pair = e.idiv(group, blocks);
    const [line, which] = [e.idiv(pair, pairs), e.irem(pair, pairs)];
    const first = e.mul(which, 2);
    const second = e.add(first, 1);
    const lengthA = lengthOf(w, from, first);
    const exists = e.lt(second, from.many);
    const lengthB = from.many % 2 === 0 ? lengthOf(w, from, second) : e.where(exists, lengthOf(w, from, second), 0);
    const startA = e.mul(e.add(e.mul(line, from.many), first), from.capacity);
    const startB = e.add(startA, from.capacity);
    const total = e.min(e.add(lengthA, lengthB), capacity);
    const diagonal = e.mul(e.irem(group, blocks), each);
    const element = (start: KNode, at: KNode, inside: KNode): KNode[] =>
      memories.map((memory) => b.load(memory, e.add(start, at), 1, inside));
    // Positions in A are smaller than in B: with them equal keys of A come first.
    const least = e.max(0, e.sub(diagonal, lengthB));
    const taken = bisect(w, least, e.min(diagonal, lengthA), from.capacity, (middle) => {
      const other = e.sub(e.sub(diagonal, 1), middle);
      return before(w, element(startA, middle, e.bool(true)), element(startB, other, e.bool(true)));
    });
    const next = b.reg('next', 'int32');
    b.store(next, 0, taken);
    b.loop(each, (u) => {
      const rank = e.add(diagonal, u);
      b.ifThen(e.lt(rank, total), () => {
        const a = b.load(next, 0);
        const c = e.sub(rank, a);
        const [hasA, hasB] = [e.lt(a, lengthA), e.lt(c, lengthB)].map((x) => b.place(x)) as [KNode, KNode];
        const [x, y] = [element(startA, a, hasA), element(startB, c, hasB)];
        const takeA = b.place(e.and(hasA, e.or(e.not(hasB), before(w, x, y))));
        b.store(next, 0, e.where(takeA, e.add(a, 1), a));
        const parts = x.map((part, i) => e.where(takeA, part, y[i]!));
        store(to === null ? line : pair, rank, parts);
      });
    });
  });
}
