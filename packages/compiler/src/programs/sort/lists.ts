/**
 * The best elements so far, kept while a line is read: most elements are compared with the end of the list and left alone.
 *
 * Short lists are kept in order by insertion. Longer ones collect what is better than their end, and are sorted and cut when full.
 */
import type { KNode } from '../../ir/ir.ts';
import type { ProgramWriter } from '../program-set.ts';
import { memoryFor, radixInMemory, radixMemory } from './radix.ts';

/** Elements of a line: how many, and key and position of the k-th. */
export interface Offered {
  readonly many: KNode;
  readonly key: (k: KNode) => KNode;
  /** Keys of `lanes` elements from the k-th on, as a vector; null where they do not lie next to each other. */
  readonly keys: ((k: KNode, lanes: number) => KNode) | null;
  readonly position: (k: KNode) => KNode;
}

/** Where the smallest keys are in the end, in order, equal ones as they came; and their positions. */
export interface Best {
  readonly key: KNode;
  readonly at: KNode;
}

/** Longest list that is kept in order. */
const longestOrdered = 32;
/** Vectors of elements compared with the end of the list at once, or elements without vectors. */
const atOnce = 4;
/** Most lanes of a vector. */
const mostLanes = 4;
/** Elements that a list may run over by. */
const slack = 2 * atOnce * mostLanes;

/** Elements that a list of `count` has room for. */
function room(count: number): number {
  return Math.max(2 * count, count + 256);
}

/** Bytes of group memory that `takeBest` needs. */
export function bestMemory(count: number): number {
  return count <= longestOrdered ? 8 * count : radixMemory(room(count) + slack);
}

/** The `count` first in order among the elements offered, of which there are at least so many. */
export function takeBest(w: ProgramWriter, count: number, offered: Offered, lanes: number): Best {
  const vector = offered.keys === null ? 1 : Math.min(lanes, mostLanes);
  return count <= longestOrdered ? inOrder(w, count, offered, vector) : collected(w, count, offered, vector);
}

/** What becomes of elements whose key is below the limit when they are met. */
interface Taken {
  /** A register with the limit, which taking an element may lower. */
  readonly limit: KNode;
  take(k: KNode, value: KNode): void;
  /** Runs after the elements that were read together. */
  between?(): void;
}

/** Takes elements from `first` on whose key is below the limit. */
function takeBelow(
  { b, e }: ProgramWriter,
  first: number,
  { many, key, keys }: Offered,
  lanes: number,
  { limit, take, between }: Taken,
): void {
  const step = atOnce * lanes;
  const left = e.sub(many, first);
  const rounds = e.idiv(left, step);
  const offer = (k: KNode): void => {
    const value = b.place(key(k));
    b.ifThen(e.lt(value, b.load(limit, 0)), () => take(k, value));
  };
  b.loop(rounds, (round) => {
    const from = e.add(e.mul(round, step), first);
    const several = Array.from({ length: atOnce }, (_, u) => {
      const at = e.add(from, u * lanes);
      return lanes === 1 || keys === null ? key(at) : keys(at, lanes);
    });
    const least = several.reduce((x, y) => e.min(x, y));
    const smallest = Array.from({ length: lanes }, (_, lane) => e.lane(least, lane)).reduce((x, y) => e.min(x, y));
    b.ifThen(e.lt(smallest, b.load(limit, 0)), () => {
      b.loop(step, (u) => offer(e.add(from, u)));
      between?.();
    });
  });
  b.loop(e.irem(left, step), (k) => offer(e.add(e.add(e.mul(rounds, step), k), first)));
}

function inOrder(w: ProgramWriter, count: number, offered: Offered, lanes: number): Best {
  const { b, e } = w;
  const best = { key: b.shared('bestKey', 'uint32', count), at: b.shared('bestAt', 'int32', count) };
  const newKey = b.reg('newKey', 'uint32');
  const newAt = b.reg('newAt', 'int32');
  const limit = b.reg('limit', 'uint32');
  /** Inserts an element in order among the first `filled`; the one that falls off the end stays in the registers. */
  const push = (filled: KNode, key: KNode, position: KNode): void => {
    const own = b.place(key);
    b.store(newKey, 0, own);
    b.store(newAt, 0, position);
    b.loop(filled, (j) => {
      const [otherKey, otherAt] = [b.load(best.key, j), b.load(best.at, j)];
      const [movedKey, movedAt] = [b.load(newKey, 0), b.load(newAt, 0)];
      // Everything behind the first greater one moves on by a place, equal ones too.
      const before = b.place(e.lt(own, otherKey));
      b.store(best.key, j, e.where(before, movedKey, otherKey));
      b.store(best.at, j, e.where(before, movedAt, otherAt));
      b.store(newKey, 0, e.where(before, otherKey, movedKey));
      b.store(newAt, 0, e.where(before, otherAt, movedAt));
    });
  };
  b.loop(count, (k) => {
    push(k, offered.key(k), offered.position(k));
    b.store(best.key, k, b.load(newKey, 0));
    b.store(best.at, k, b.load(newAt, 0));
  });
  b.store(limit, 0, b.load(best.key, count - 1));
  const enter = (k: KNode, value: KNode): void => {
    push(e.i32(count), value, offered.position(k));
    b.store(limit, 0, b.load(best.key, count - 1));
  };
  takeBelow(w, count, offered, lanes, { limit, take: enter });
  return best;
}

function collected(w: ProgramWriter, count: number, offered: Offered, lanes: number): Best {
  const { b, e } = w;
  const full = room(count);
  const memory = memoryFor(w, full + slack);
  const [[keys], [order]] = [memory.keys, memory.order];
  const filled = b.reg('filled', 'int32');
  const limit = b.reg('limit', 'uint32');
  /** Sorts what was collected and keeps the first; sorting is stable and what came later lies behind. */
  const cut = (): void => {
    radixInMemory(w, memory, b.load(filled, 0));
    b.store(filled, 0, e.i32(count));
    b.store(limit, 0, b.load(keys, count - 1));
  };
  const append = (k: KNode, value: KNode): void => {
    const at = b.load(filled, 0);
    b.store(keys, at, value);
    b.store(order, at, offered.position(k));
    b.store(filled, 0, e.add(at, 1));
  };
  b.loop(count, (k) => {
    b.store(keys, k, offered.key(k));
    b.store(order, k, offered.position(k));
  });
  b.store(filled, 0, e.i32(count));
  // Nothing is above the largest key, and equal ones come too late.
  b.store(limit, 0, e.constant('uint32', 0xffff_ffff));
  const between = (): void => b.ifThen(e.le(full, b.load(filled, 0)), cut);
  takeBelow(w, count, offered, lanes, { limit, take: append, between });
  cut();
  return { key: keys, at: order };
}
