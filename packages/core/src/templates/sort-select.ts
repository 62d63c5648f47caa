/**
 * The few first of a line in sorted order: a short sorted list of the best so far, which most elements do not reach.
 *
 * Long lines are cut into blocks with a list each; a second program merges the lists.
 */
import type { KNode } from '../kernel/ir.ts';
import { lineStart } from './lines.ts';
import type { ProgramSet, ProgramWriter } from './program-set.ts';
import { elementAt, type LineSort } from './sort-line.ts';

/** Longest list. */
const longestList = 64;
/** Elements per place of the list, at least: where most of the elements would enter it, sorting them all is faster. */
const leastShare = 8;
/** Elements of a block, and most blocks of a line. */
const blockElements = 1 << 15;
const mostBlocks = 64;
/** Elements compared with the end of the list at once. */
const atOnce = 4;

/** True if a sort is of this kind. */
export function maySelect({ n, count, keys }: LineSort): boolean {
  return keys.words === 1 && count <= longestList && count * leastShare <= n;
}

export function select(set: ProgramSet, sort: LineSort): void {
  const { n, count, lines, keys, axis, x, out } = sort;
  const blocks = Math.min(mostBlocks, Math.max(1, Math.floor(n / blockElements)));
  const length = Math.floor(n / blocks);
  const found =
    blocks === 1
      ? null
      : { key: set.temp('uint32', lines * blocks * count), at: set.temp('int32', lines * blocks * count) };
  const stride = out.strides[axis] as number;
  set.add('_select', lines * blocks, (w) => {
    const { b, e, group } = w;
    const source = keys.open(w, 1);
    const line = e.idiv(group, e.i32(blocks));
    const block = e.irem(group, e.i32(blocks));
    const first = e.mul(block, e.i32(length));
    const rest = n - length * blocks;
    // The last block has what is left over.
    const many =
      rest === 0 ? e.i32(length) : e.where(e.eq(block, e.i32(blocks - 1)), e.i32(length + rest), e.i32(length));
    const from = lineStart(e, x, axis, line);
    const list = new BestList(w, count);
    const position = (k: KNode): KNode => e.add(first, k);
    const key = (k: KNode): KNode => keys.key(w, source, elementAt(w, sort, from, position(k)), 0);
    list.take(many, key, position);
    if (found === null) {
      const target = w.param(0, 'int32', 'write', out.span);
      const to = lineStart(e, out, axis, line);
      b.loop(count, (j) => b.store(target, e.add(to, e.mul(j, e.i32(stride))), b.load(list.at, j)));
      return;
    }
    const [toKeys, toPositions] = [w.temp(found.key, 'write'), w.temp(found.at, 'write')];
    b.loop(count, (j) => {
      const at = e.add(e.mul(group, e.i32(count)), j);
      b.store(toKeys, at, b.load(list.key, j));
      b.store(toPositions, at, b.load(list.at, j));
    });
  });
  if (found === null) return;
  set.add('_merge', lines, (w) => {
    const { b, e, group } = w;
    const [fromKeys, positions] = [w.temp(found.key, 'read'), w.temp(found.at, 'read')];
    const at = (k: KNode): KNode => e.add(e.mul(group, e.i32(blocks * count)), k);
    const list = new BestList(w, count);
    list.take(
      e.i32(blocks * count),
      (k) => b.load(fromKeys, at(k)),
      (k) => b.load(positions, at(k)),
    );
    const target = w.param(0, 'int32', 'write', out.span);
    const to = lineStart(e, out, axis, group);
    b.loop(count, (j) => b.store(target, e.add(to, e.mul(j, e.i32(stride))), b.load(list.at, j)));
  });
}

/** The smallest keys so far in order, equal ones as they came, with their positions. */
class BestList {
  readonly key: KNode;
  readonly at: KNode;
  readonly #w: ProgramWriter;
  readonly #count: number;
  readonly #newKey: KNode;
  readonly #newAt: KNode;
  readonly #limit: KNode;

  constructor(w: ProgramWriter, count: number) {
    const { b } = w;
    this.#w = w;
    this.#count = count;
    this.key = b.shared('bestKey', 'uint32', count);
    this.at = b.shared('bestAt', 'int32', count);
    this.#newKey = b.reg('newKey', 'uint32');
    this.#newAt = b.reg('newAt', 'int32');
    this.#limit = b.reg('limit', 'uint32');
  }

  /** Takes elements 0 .. many-1; there are at least as many as the list is long. */
  take(many: KNode, key: (k: KNode) => KNode, position: (k: KNode) => KNode): void {
    const { b, e } = this.#w;
    const count = this.#count;
    b.loop(count, (k) => {
      this.#push(k, key(k), position(k));
      b.store(this.key, k, b.load(this.#newKey, 0));
      b.store(this.at, k, b.load(this.#newAt, 0));
    });
    b.store(this.#limit, 0, b.load(this.key, count - 1));
    const left = e.sub(many, e.i32(count));
    const rounds = e.idiv(left, e.i32(atOnce));
    const offer = (k: KNode, value: KNode): void => {
      b.ifThen(e.lt(value, b.load(this.#limit, 0)), () => {
        this.#push(e.i32(count), value, position(k));
        b.store(this.#limit, 0, b.load(this.key, count - 1));
      });
    };
    b.loop(rounds, (round) => {
      const ks = Array.from({ length: atOnce }, (_, u) =>
        e.add(e.add(e.mul(round, e.i32(atOnce)), e.i32(u)), e.i32(count)),
      );
      const values = ks.map((k) => b.place(key(k)));
      const smallest = values.reduce((x, y) => e.min(x, y));
      b.ifThen(e.lt(smallest, b.load(this.#limit, 0)), () => {
        for (const [u, k] of ks.entries()) offer(k, values[u] as KNode);
      });
    });
    b.loop(e.irem(left, e.i32(atOnce)), (k) => {
      const at = e.add(e.add(e.mul(rounds, e.i32(atOnce)), k), e.i32(count));
      offer(at, b.place(key(at)));
    });
  }

  /** Puts an element where it belongs among the first `filled`; the one that falls off the end is left in the registers. */
  #push(filled: KNode, key: KNode, position: KNode): void {
    const { b, e } = this.#w;
    const own = b.place(key);
    b.store(this.#newKey, 0, own);
    b.store(this.#newAt, 0, position);
    b.loop(filled, (j) => {
      const [otherKey, otherAt] = [b.load(this.key, j), b.load(this.at, j)];
      const [newKey, newAt] = [b.load(this.#newKey, 0), b.load(this.#newAt, 0)];
      // Everything behind the first greater one moves on by a place, equal ones too.
      const before = b.place(e.lt(own, otherKey));
      b.store(this.key, j, e.where(before, newKey, otherKey));
      b.store(this.at, j, e.where(before, newAt, otherAt));
      b.store(this.#newKey, 0, e.where(before, otherKey, newKey));
      b.store(this.#newAt, 0, e.where(before, otherAt, newAt));
    });
  }
}
