/**
 * The few first of long lines in sorted order. Long lines are cut into blocks with a list each (lists.ts); a second program
 * merges the lists.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import type { ProgramSet, ProgramWriter } from '../program-set.ts';
import type { LineSort } from './keys.ts';
import { type Best, bestMemory, takeBest } from './lists.ts';

/** Elements per place of the list, at least: where most of the elements would enter it, sorting them all is faster. */
const leastShare = 8;
/** Elements of a block: so many, and so many times those wanted; and most blocks of a line. */
const blockElements = 1 << 15;
const blockShare = 256;
const mostBlocks = 64;

/** True if a sort is of this kind. */
export function maySelect({ n, count, words }: LineSort, caps: CodegenCaps): boolean {
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
