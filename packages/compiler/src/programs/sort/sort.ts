/**
 * Positions of the elements of lines in sorted order (argsort): stable, by keys (keys.ts). All algorithms give the same result.
 *
 * Short lines: the place of an element is the number of those before it (counting ranks). Long lines by single threads: the few first
 * are selected (below), otherwise radix sort (radix.ts). Long lines by groups of threads: merge sort of chunks in group memory
 * (merge.ts), or radix sort where there are many elements and few digits. Single threads find ranks in the middle alone (ranks.ts).
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import { ProgramSet, type ProgramWriter } from '../program-set.ts';
import { addLines, type LineSort, lineSort, precedes, type Sorted, type SortSpec, wanted } from './keys.ts';
import { type Best, bestMemory, takeBest } from './lists.ts';
import { mergeSort } from './merge.ts';
import { findRanks } from './ranks.ts';
import { partsOfGroups, partsOfThreads, passesOf, radixInGroup, radixInParts, radixMemory } from './radix.ts';

/** Lines up to this length are sorted by counting. */
const shortLine = 40;
/** Those whose places vectors count and of which more than a few are wanted: up to this length. */
const countedLine = 80;
/** Lines up to this length are sorted by one group. */
const groupLine = 1 << 13;
/** Elements of a line from which on groups of threads sort it by digits, and passes up to which: else comparison takes fewer steps. */
export const manyByDigits: number = 2 ** 15;
const mostPasses = 7;

export function lowerSort(spec: SortSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet(`argSort_${spec.x.shape.join('x')}`, caps);
  const sort = lineSort(spec);
  const { n } = sort;
  if (caps.simt && n <= shortLine) byThreads(set, sort);
  else if (caps.simt) sortByGroups(set, sort, caps);
  else if (n <= shortLine || (n <= countedLine && !maySelect(sort, caps))) byCounting(set, sort, caps);
  else if (sort.from > 0 && findRanks(set, sort, caps)) return set.result();
  else if (maySelect(sort, caps)) select(set, sort, caps);
  else {
    const lanes = sort.adjacent && sort.words === 1 ? caps.vectorBytes / 4 : 1;
    // Keys of integers are one operation.
    const keeps = lanes > 1 && spec.x.dtype === 'float32';
    if (n <= groupLine && radixMemory(n) <= caps.sharedBytes) radixInGroup(set, sort, keeps ? lanes : 0);
    else radixInParts(set, sort, partsOfThreads(n), { lanes, keeps });
  }
  return set.result();
}

/** Long lines by groups of threads; gives where the elements are unless the sort stores them. */
export function sortByGroups(set: ProgramSet, sort: LineSort, caps: CodegenCaps): Sorted | null {
  const parts = partsOfGroups(sort.n, caps.maxGroup);
  const byDigits = sort.lines === 1 && sort.count === sort.n && sort.n >= manyByDigits && caps.sharedIsMemory !== true;
  if (byDigits && sort.words * passesOf(sort.bits, parts) <= mostPasses) return radixInParts(set, sort, parts);
  return mergeSort(set, sort, caps.sharedBytes, caps.maxGroup);
}

/** Short lines on engines with groups of threads: every element has a thread that counts those before it. */
function byThreads(set: ProgramSet, sort: LineSort): void {
  const { n, lines, words } = sort;
  set.add('_counting', lines * n, (w) => {
    const { b, e, group } = w;
    const store = sort.result!(w);
    const key = sort.open(w);
    const [line, i] = [e.idiv(group, n), e.irem(group, n)];
    const keyOf = (at: KNode): KNode[] => Array.from({ length: words }, (_, word) => key(line, at, word));
    const own = keyOf(i).map((word) => b.place(word));
    const rank = b.reg('rank', 'int32');
    b.store(rank, 0, e.i32(0));
    b.loop(n, (j) => {
      const earlier = precedes(w, keyOf(j), own, e.lt(j, i));
      b.store(rank, 0, e.add(b.load(rank, 0), e.cast(earlier, 'int32')));
    });
    const found = b.load(rank, 0);
    store(line, found, i, wanted(w, sort, found));
  });
}

/**
 * Short lines, a thread to a line: places of a few neighbours are counted side by side, in a vector. What lies before them also counts where
 * it is equal, what lies behind them does not; only among themselves it depends on the lane.
 */
function byCounting(set: ProgramSet, sort: LineSort, caps: CodegenCaps): void {
  const { n } = sort;
  const lanes = Math.max(1, Math.floor(caps.vectorBytes / 4));
  const rest = n % lanes;
  addLines(set, '_counting', sort, (w) => {
    const { b, e } = w;
    const store = sort.result!(w);
    const key = sort.open(w);
    // Keys as signed numbers, which vectors compare in one instruction; what is behind the last one is before none.
    const signed = (x: KNode): KNode => e.bitcast(e.xor(x, e.constant('uint32', 0x8000_0000)), 'int32');
    const room = Math.ceil(n / lanes) * lanes;
    const words = Array.from({ length: sort.words }, (_, word) => b.shared(`keys${word}`, 'int32', room));
    for (const memory of words) for (let i = n; i < room; i++) b.store(memory, i, e.i32(2 ** 31 - 1));
    const rank = b.reg('rank', 'int32', lanes);
    const never = e.bool(false, lanes);
    const count = (earlier: KNode, one: number): void =>
      b.store(rank, 0, e.add(b.load(rank, 0), e.where(earlier, e.i32(one), e.i32(0))));
    const at = (j: KNode | number): KNode[] => words.map((memory) => e.splat(b.load(memory, j), lanes));
    const several = (line: KNode, first: KNode, stored: number): void => {
      const own = words.map((memory) => b.load(memory, first, lanes));
      b.store(rank, 0, e.splat(first, lanes));
      b.loop(first, (j) => count(precedes(w, own, at(j), never), -1));
      for (let k = 0; k < lanes; k++) {
        const behind = e.vec(Array.from({ length: lanes }, (_, lane) => e.bool(k < lane)));
        count(precedes(w, at(e.add(first, k)), own, behind), 1);
      }
      const next = e.add(first, lanes);
      b.loop(e.sub(room, next), (j) => count(precedes(w, at(e.add(next, j)), own, never), 1));
      const ranks = b.place(b.load(rank, 0));
      for (let k = 0; k < stored; k++) {
        const found = e.lane(ranks, k);
        store(line, found, e.add(first, k), wanted(w, sort, found));
      }
    };
    return (line) => {
      b.loop(n, (i) => {
        for (const [word, memory] of words.entries()) b.store(memory, i, signed(key(line, i, word)));
      });
      b.loop((n - rest) / lanes, (block) => several(line, e.mul(block, lanes), lanes));
      if (rest > 0) several(line, e.i32(n - rest), rest);
    };
  });
}

// The few first of long lines in sorted order. Long lines are cut into blocks with a list each (lists.ts); a second program
// merges the lists.

/** Elements per place of the list, at least: where most of the elements would enter it, sorting them all is faster. */
const leastShare = 8;
/** Elements of a block: so many, and so many times those wanted; and most blocks of a line. */
const blockElements = 1 << 15;
const blockShare = 256;
const mostBlocks = 64;

/** True if a sort is of this kind. */
function maySelect({ n, count, words }: LineSort, caps: CodegenCaps): boolean {
  return words === 1 && count * leastShare <= n && bestMemory(count) <= caps.sharedBytes;
}

export function select(set: ProgramSet, sort: LineSort, caps: CodegenCaps): void {
  const lanes = Math.max(1, caps.vectorBytes / 4);
  const { n, count, lines, adjacent } = sort;
  const block = Math.max(blockElements, blockShare * count);
  const blocks = Math.min(mostBlocks, Math.max(1, Math.floor(n / block)));
  const length = Math.floor(n / blocks);
  const rest = n - length * blocks;
  const found =
    blocks === 1
      ? null
      : { key: set.temp('uint32', lines * blocks * count), at: set.temp('int32', lines * blocks * count) };
  set.add('_select', lines * blocks, (w) => {
    const { b, e, group } = w;
    const open = sort.open(w);
    const line = e.idiv(group, blocks);
    const which = e.irem(group, blocks);
    const first = e.mul(which, length);
    // The last block has what is left over.
    const last = e.eq(which, blocks - 1);
    const many = rest === 0 ? e.i32(length) : e.where(last, e.i32(length + rest), e.i32(length));
    const position = (k: KNode): KNode => e.add(first, k);
    const key = (k: KNode): KNode => open(line, position(k), 0);
    const several = (k: KNode, width: number): KNode => open(line, position(k), 0, width);
    const best = takeBest(w, count, { many, key, keys: adjacent ? several : null, position }, lanes);
    if (found === null) {
      storeResult(w, sort, line, best);
      return;
    }
    const [toKeys, toPositions] = [w.temp(found.key, 'write'), w.temp(found.at, 'write')];
    b.loop(count, (j) => {
      const at = e.add(e.mul(group, count), j);
      b.store(toKeys, at, b.load(best.key, j));
      b.store(toPositions, at, b.load(best.at, j));
    });
  });
  if (found === null) return;
  set.add('_merge', lines, (w) => {
    const { b, e, group } = w;
    const [fromKeys, positions] = [w.temp(found.key, 'read'), w.temp(found.at, 'read')];
    const at = (k: KNode): KNode => e.add(e.mul(group, blocks * count), k);
    const candidates = {
      many: e.i32(blocks * count),
      key: (k: KNode) => b.load(fromKeys, at(k)),
      keys: (k: KNode, width: number) => b.load(fromKeys, at(k), width),
      position: (k: KNode) => b.load(positions, at(k)),
    };
    const best = takeBest(w, count, candidates, lanes);
    storeResult(w, sort, group, best);
  });
}

function storeResult(w: ProgramWriter, { result, count }: LineSort, line: KNode, best: Best): void {
  const store = result!(w);
  w.b.loop(count, (j) => store(line, j, w.b.load(best.at, j)));
}
