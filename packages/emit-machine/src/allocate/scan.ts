/**
 * Linear scan: the live interval of every register, and the machine register it gets.
 *
 * Source: M. Poletto and V. Sarkar, "Linear scan register allocation", ACM TOPLAS 21(5), 1999. A spilled register is spilled over its whole interval. The
 * cheapest is chosen, by its number of uses, weighted by loop depth.
 */
import type { Block, Reg, RegClass } from '../form/code.ts';
import { type Flat, isRead, isWritten } from './flat.ts';

/** The live intervals of registers, as lists by their numbers: reads are at even, writes at odd positions. */
export interface Intervals {
  readonly regs: readonly Reg[];
  /** The registers of each class that are used, by start and then by number. */
  readonly order: Readonly<Record<RegClass, number[]>>;
  /** -1 for registers that are not used. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** Uses, each as often as it is expected to run. */
  readonly weights: Float64Array;
}

export function intervalsOf(flat: Flat): Intervals {
  const { regs } = flat;
  const starts = new Int32Array(regs.length).fill(-1);
  const found: Intervals = {
    regs,
    order: { g: [], v: [], k: [] },
    starts,
    ends: new Int32Array(regs.length),
    weights: new Float64Array(regs.length),
  };
  fromFirstToLast(flat, found);
  throughLoops(flat, found);
  sort(found);
  return found;
}

/** For each register what lies between its first use and its last one. */
function fromFirstToLast({ items, blocks, starts, uses }: Flat, found: Intervals): void {
  const { starts: first, ends, weights } = found;
  let around: Block | null = null;
  let weight = 0;
  let u = 0;
  for (let at = 0; at < items.length; at++) {
    const end = starts[at + 1]!;
    if (u === end) continue;
    if (blocks[at] !== around) {
      around = blocks[at]!;
      weight = 8 ** Math.min(6, around.loops);
    }
    for (; u < end; u++) {
      const use = uses[u]!;
      const id = use >> 2;
      const until = 2 * at + ((use & isWritten) >> 1);
      if (first[id]! < 0) {
        first[id] = 2 * at + 1 - (use & isRead);
        ends[id] = until;
        weights[id] = weight;
      } else {
        if (until > ends[id]!) ends[id] = until;
        weights[id]! += weight;
      }
    }
  }
}

/** By start, then by number. */
function sort({ regs, order, starts }: Intervals): void {
  const { length } = starts;
  const keys = new Float64Array(length);
  let count = 0;
  for (let id = 0; id < length; id++) if (starts[id]! >= 0) keys[count++] = starts[id]! * length + id;
  const used = keys.subarray(0, count).sort();
  for (let k = 0; k < count; k++) {
    const id = used[k]! % length;
    order[regs[id]!.cls].push(id);
  }
}

/** Extends intervals over every loop that reads a value from before the loop or from the previous iteration. */
function throughLoops(flat: Flat, { regs, starts, ends }: Intervals): void {
  const { blocks } = flat;
  const passed = loopsPassed(flat);
  // Where the uses of a register are kept, and one more for the end; -1 for those whose uses lie in one block with no loop between: nothing extends them.
  const kept = new Int32Array(regs.length).fill(-1);
  const crossing: number[] = [];
  for (let id = 0; id < regs.length; id++) {
    if (starts[id]! < 0) continue;
    const first = starts[id]! >> 1;
    const last = ends[id]! >> 1;
    if (!regs[id]!.mutable && blocks[first] === blocks[last] && passed[first] === passed[last]) continue;
    kept[id] = crossing.length;
    crossing.push(id);
  }
  const uses = usesOf(flat, kept, crossing.length);
  for (let c = 0; c < crossing.length; c++) {
    const id = crossing[c]!;
    extend(flat, id, uses, c, passed[starts[id]! >> 1]!, starts, ends);
  }
}

/** For each item how many loops end before it; loops are in the order of their ends. */
function loopsPassed({ items, loops }: Flat): Int32Array {
  const passed = new Int32Array(items.length);
  for (let i = 0, from = 0; i < loops.length; i++) {
    const to = loops[i]!.end + 1;
    passed.fill(i, from, to);
    from = to;
    if (i === loops.length - 1) passed.fill(loops.length, to);
  }
  return passed;
}

/** Items that use registers, ascending, and whether they read: one register after the other. */
interface KeptUses {
  readonly from: Int32Array;
  readonly used: Int32Array;
  readonly reads: Uint8Array;
}

function usesOf({ items, starts, uses }: Flat, kept: Int32Array, count: number): KeptUses {
  const from = new Int32Array(count + 1);
  for (let u = 0; u < uses.length; u++) {
    const c = kept[uses[u]! >> 2]!;
    if (c >= 0) from[c + 1]!++;
  }
  for (let c = 0; c < count; c++) from[c + 1]! += from[c]!;
  const next = from.slice();
  const used = new Int32Array(from[count]!);
  const reads = new Uint8Array(from[count]!);
  let u = 0;
  for (let at = 0; at < items.length; at++) {
    for (const end = starts[at + 1]!; u < end; u++) {
      const use = uses[u]!;
      const c = kept[use >> 2]!;
      if (c < 0) continue;
      const k = next[c]!++;
      used[k] = at;
      reads[k] = use & isRead;
    }
  }
  return { from, used, reads };
}

/** Extends the interval of one register, whose uses are the `c`th that are kept; the loops before `loop` end before it. */
function extend(
  { regs, blocks, loops }: Flat,
  id: number,
  { from, used, reads }: KeptUses,
  c: number,
  loop: number,
  starts: Int32Array,
  ends: Int32Array,
): void {
  const to = from[c + 1]!;
  const first = used[from[c]!]!;
  const last = used[to - 1]!;
  const { mutable } = regs[id]!;
  for (let at = loop; at < loops.length; at++) {
    const { start, end, block } = loops[at]!;
    if (last < start || first > end) continue;
    const k = firstFrom(used, start, from[c]!, to);
    if (used[k]! > end) continue;
    if (starts[id]! < 2 * start) ends[id] = Math.max(ends[id]!, 2 * end + 1);
    else if (mutable && (reads[k] === 1 || !covers(blocks, used, k, to, end, block))) {
      // A later iteration may read what an earlier one left.
      starts[id] = Math.min(starts[id]!, 2 * start);
      ends[id] = Math.max(ends[id]!, 2 * end + 1);
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

/** Later than all positions. */
const never = 0x7fffffff;

/** The registers whose intervals have begun and not ended, the first to end last. */
class Active {
  readonly #ids: Int32Array;
  readonly #ends: Int32Array;
  /** When each was added. */
  readonly #turns: Int32Array;
  #count = 0;
  /** The earliest end. */
  first = never;

  constructor(most: number) {
    this.#ids = new Int32Array(most);
    this.#ends = new Int32Array(most);
    this.#turns = new Int32Array(most);
  }

  add(id: number, end: number, turn: number): void {
    const ids = this.#ids;
    const ends = this.#ends;
    const turns = this.#turns;
    let at = this.#count++;
    for (; at > 0 && ends[at - 1]! < end; at--) {
      ids[at] = ids[at - 1]!;
      ends[at] = ends[at - 1]!;
      turns[at] = turns[at - 1]!;
    }
    ids[at] = id;
    ends[at] = end;
    turns[at] = turn;
    this.first = ends[this.#count - 1]!;
  }

  /** Those that end before a position go, and give back their machine registers, the one added last first. */
  drop(before: number, places: Int32Array, available: number[]): void {
    const ends = this.#ends;
    const all = this.#count;
    let kept = all;
    while (kept > 0 && ends[kept - 1]! < before) kept--;
    this.first = kept === 0 ? never : ends[kept - 1]!;
    const ids = this.#ids;
    const turns = this.#turns;
    this.#count = kept;
    for (let rest = all - kept; rest > 0; rest--) {
      let last = kept;
      for (let k = kept + 1; k < all; k++) if (turns[k]! > turns[last]!) last = k;
      available.push(places[ids[last]!]!);
      turns[last] = -1;
    }
  }

  /** The one that costs least to spill, if less than a register that is to begin; else that one. */
  cheapest(id: number, { regs, starts, ends, weights }: Intervals): number {
    let victim = id;
    let turn = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let k = -1; k < this.#count; k++) {
      const r = k < 0 ? id : this.#ids[k]!;
      // What is in memory anyway need not be stored.
      const cost = ((regs[r]!.home === null ? 1.5 : 0.3) * weights[r]!) / (ends[r]! - starts[r]! + 1);
      if (k >= 0 && (cost > least || (cost === least && this.#turns[k]! > turn))) continue;
      if (k >= 0) turn = this.#turns[k]!;
      victim = r;
      least = cost;
    }
    return victim;
  }

  remove(id: number): void {
    let at = 0;
    while (this.#ids[at] !== id) at++;
    this.#count--;
    for (; at < this.#count; at++) {
      this.#ids[at] = this.#ids[at + 1]!;
      this.#ends[at] = this.#ends[at + 1]!;
      this.#turns[at] = this.#turns[at + 1]!;
    }
  }
}

/** Assigns machine registers of one class to intervals, in `places` by register number, -1 for spilled ones; returns whether all got one. */
export function scan(intervals: Intervals, cls: RegClass, free: readonly number[], places: Int32Array): boolean {
  const { regs, starts, ends } = intervals;
  const ids = intervals.order[cls];
  const available = [...free].reverse();
  const active = new Active(free.length);
  let whole = true;
  for (let at = 0; at < ids.length; at++) {
    const id = ids[at]!;
    const start = starts[id]!;
    places[id] = -1;
    if (active.first < start) active.drop(start, places, available);
    if (available.length > 0) {
      const { hint } = regs[id]!;
      const wanted = hint === null || hint.cls !== cls ? -1 : available.indexOf(places[hint.id]!);
      places[id] = wanted < 0 ? available.pop()! : removeAt(available, wanted);
      active.add(id, ends[id]!, at);
      continue;
    }
    whole = false;
    const victim = active.cheapest(id, intervals);
    if (victim === id) continue;
    places[id] = places[victim]!;
    places[victim] = -1;
    active.remove(victim);
    active.add(id, ends[id]!, at);
  }
  return whole;
}
