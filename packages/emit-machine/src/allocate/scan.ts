/**
 * Linear scan: the live interval of every register, and the machine register it gets.
 *
 * Source: M. Poletto and V. Sarkar, "Linear scan register allocation", ACM TOPLAS 21(5), 1999. A spilled register is spilled over its whole interval. The
 * cheapest is chosen, by its number of uses, weighted by loop depth.
 */
import type { Block, Reg, RegClass } from '../form/code.ts';
import { type Flat, isRead, isWritten } from './flat.ts';

/** The live interval of a register: reads are at even, writes at odd positions. */
export interface Interval {
  readonly reg: Reg;
  start: number;
  end: number;
  /** Uses, each as often as it is expected to run. */
  weight: number;
  /** Cost of spilling it. */
  cost: number;
}

/** The intervals by start; unused registers have none. */
export function intervalsOf(flat: Flat): readonly Interval[] {
  const { regs, uses } = flat;
  // Positions of uses, ordered by register and position.
  const from = new Int32Array(regs.length + 1);
  for (let u = 0; u < uses.length; u++) from[(uses[u]! >> 2) + 1]!++;
  for (let id = 0; id < regs.length; id++) from[id + 1] = from[id + 1]! + from[id]!;
  const next = from.slice();
  const used = new Int32Array(uses.length);
  const reads = new Uint8Array(uses.length);
  const found = fromFirstToLast(flat, next, used, reads);
  const intervals: Interval[] = [];
  for (let id = 0; id < regs.length; id++) {
    const i = found[id];
    if (i === undefined) continue;
    throughLoops(flat, i, used, reads, from[id]!, next[id]!);
    i.cost = ((i.reg.home === null ? 1.5 : 0.3) * i.weight) / (i.end - i.start + 1);
    intervals.push(i);
  }
  return sorted(intervals);
}

/**
 * For each register what lies between its first use and its last one. Writes down where each use is and whether it reads; `next`: where a register's uses
 * begin, and then where they end.
 */
function fromFirstToLast(
  { regs, items, blocks, starts, uses }: Flat,
  next: Int32Array,
  used: Int32Array,
  reads: Uint8Array,
): readonly (Interval | undefined)[] {
  const found = new Array<Interval | undefined>(regs.length).fill(undefined);
  let around: Block | null = null;
  let weight = 0;
  for (let at = 0; at < items.length; at++) {
    if (blocks[at] !== around) {
      around = blocks[at]!;
      weight = 8 ** Math.min(6, loopsAround(around));
    }
    for (let u = starts[at]!; u < starts[at + 1]!; u++) {
      const use = uses[u]!;
      const id = use >> 2;
      const k = next[id]!;
      next[id] = k + 1;
      used[k] = at;
      reads[k] = use & isRead;
      const until = (use & isWritten) !== 0 ? 2 * at + 1 : 2 * at;
      const i = found[id];
      if (i === undefined) {
        const start = reads[k] === 1 ? 2 * at : 2 * at + 1;
        found[id] = { reg: regs[id]!, start, end: until, weight, cost: 0 };
      } else {
        if (until > i.end) i.end = until;
        i.weight += weight;
      }
    }
  }
  return found;
}

/** By start, then by number. */
function sorted(intervals: readonly Interval[]): readonly Interval[] {
  const { length } = intervals;
  const keys = new Float64Array(length);
  for (let k = 0; k < length; k++) keys[k] = intervals[k]!.start * length + k;
  keys.sort();
  const order = new Array<Interval>(length);
  for (let k = 0; k < length; k++) order[k] = intervals[keys[k]! % length]!;
  return order;
}

/**
 * Extends an interval over every loop that reads a value from before the loop or from the previous iteration. `used`: positions of uses, `reads`:
 * whether they read; this register's uses are those from `from` up to `to`.
 */
function throughLoops(
  { blocks, loops }: Flat,
  i: Interval,
  used: Int32Array,
  reads: Uint8Array,
  from: number,
  to: number,
): void {
  const first = used[from]!;
  const last = used[to - 1]!;
  for (let at = 0; at < loops.length; at++) {
    const { start, end, block } = loops[at]!;
    if (last < start || first > end) continue;
    const k = firstFrom(used, start, from, to);
    if (used[k]! > end) continue;
    if (i.start < 2 * start) i.end = Math.max(i.end, 2 * end + 1);
    else if (i.reg.mutable && (reads[k] === 1 || !covers(blocks, used, k, to, end, block))) {
      // A later iteration may read what an earlier one left.
      i.start = Math.min(i.start, 2 * start);
      i.end = Math.max(i.end, 2 * end + 1);
    } else if (last <= end) {
      // Every iteration sets it before reading it, and nothing outside reads it; the same holds for loops around.
      break;
    }
  }
}

/** Binary search: the first of ascending positions between two indices that is not before `start`; the end index if all are. */
function firstFrom(places: Int32Array, start: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle]! < start) low = middle + 1;
    else high = middle;
  }
  return low;
}

function loopsAround(block: Block): number {
  let count = 0;
  for (let b: Block | null = block; b !== null; b = b.parent) if (b.kind === 'loop') count++;
  return count;
}

/**
 * True if the k-th use of a register, a write, dominates all its other uses in an iteration of a loop: it runs in every iteration, or the others run only
 * if it does. Blocks are contiguous in the list, so the last use decides for all in between.
 */
function covers(blocks: readonly Block[], used: Int32Array, k: number, to: number, end: number, loop: Block): boolean {
  const first = blocks[used[k]!]!;
  return certain(first, loop) || isInside(blocks[used[firstFrom(used, end + 1, k, to) - 1]!]!, first);
}

/** True if a block runs in every iteration of a loop around it. */
function certain(inner: Block, loop: Block): boolean {
  for (let b: Block = inner; b !== loop; b = b.parent!) if (!b.certain) return false;
  return true;
}

function isInside(inner: Block, outer: Block): boolean {
  for (let b: Block | null = inner; b !== null; b = b.parent) if (b === outer) return true;
  return false;
}

/** Takes an element out of a short list, which is faster than `splice`. */
function removeAt<T>(list: T[], at: number): T {
  const gone = list[at]!;
  for (let k = at + 1; k < list.length; k++) list[k - 1] = list[k]!;
  list.pop();
  return gone;
}

/** Assigns machine registers of one class to intervals, in `places` by register number, -1 for spilled ones; returns whether all got one. */
export function scan(
  intervals: readonly Interval[],
  cls: RegClass,
  free: readonly number[],
  places: Int32Array,
): boolean {
  const available = [...free].reverse();
  const active: Interval[] = [];
  let whole = true;
  /** The earliest end of an active interval. */
  let ends = Number.POSITIVE_INFINITY;
  for (let at = 0; at < intervals.length; at++) {
    const i = intervals[at]!;
    if (i.reg.cls !== cls) continue;
    places[i.reg.id] = -1;
    if (ends < i.start) {
      ends = Number.POSITIVE_INFINITY;
      for (let k = active.length - 1; k >= 0; k--) {
        const old = active[k]!;
        if (old.end >= i.start) {
          if (old.end < ends) ends = old.end;
          continue;
        }
        available.push(places[old.reg.id]!);
        removeAt(active, k);
      }
    }
    if (available.length > 0) {
      const { hint } = i.reg;
      const wanted = hint === null || hint.cls !== cls ? -1 : available.indexOf(places[hint.id]!);
      places[i.reg.id] = wanted < 0 ? available.pop()! : removeAt(available, wanted);
      active.push(i);
      if (i.end < ends) ends = i.end;
      continue;
    }
    whole = false;
    let victim = i;
    for (const other of active) if (other.cost < victim.cost) victim = other;
    if (victim === i) continue;
    places[i.reg.id] = places[victim.reg.id]!;
    places[victim.reg.id] = -1;
    removeAt(active, active.indexOf(victim));
    active.push(i);
    if (i.end < ends) ends = i.end;
  }
  return whole;
}
