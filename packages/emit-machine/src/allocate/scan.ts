/**
 * Linear scan: how long every register is needed, and which ones of the machine they get.
 *
 * Source: M. Poletto and V. Sarkar, "Linear scan register allocation", ACM TOPLAS 21(5), 1999. What is spilled is so from its start to its end; the
 * cheapest is, counted by how often it is used, inner loops most.
 */
import type { Block, Reg, RegClass } from '../form/code.ts';
import { type Flat, isRead, isWritten } from './flat.ts';

/** When a register is needed: reads are at even, writes at odd places. */
export interface Interval {
  readonly reg: Reg;
  start: number;
  end: number;
  /** Uses, each as often as it is expected to run. */
  weight: number;
  /** What it costs to do without a register. */
  cost: number;
}

/** The intervals, those that begin first first; registers that are never used have none. */
export function intervalsOf(flat: Flat): readonly Interval[] {
  const { regs, items, blocks, starts, uses } = flat;
  const found = new Array<Interval | undefined>(regs.length).fill(undefined);
  // Where each register is used, in order, one register after the other.
  const from = new Int32Array(regs.length + 1);
  for (let u = 0; u < uses.length; u++) from[(uses[u]! >> 2) + 1]!++;
  for (let id = 0; id < regs.length; id++) from[id + 1] = from[id + 1]! + from[id]!;
  const next = from.slice();
  const used = new Int32Array(uses.length);
  const reads = new Uint8Array(uses.length);
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

/** By where they begin; those that begin together by number. */
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
 * A register is needed in all of a loop that finds what it was before. `used`: where registers are used, `reads`: whether they are read there; this one's
 * uses are those from `from` up to `to`.
 */
function throughLoops(
  { blocks, loops }: Flat,
  i: Interval,
  used: Int32Array,
  reads: Uint8Array,
  from: number,
  to: number,
): void {
  const [first, last] = [used[from]!, used[to - 1]!];
  for (const { start, end, block } of loops) {
    if (last < start || first > end) continue;
    const k = firstFrom(used, start, from, to);
    if (used[k]! > end) continue;
    if (i.start < 2 * start) i.end = Math.max(i.end, 2 * end + 1);
    else if (i.reg.mutable && (reads[k] === 1 || !covers(blocks, used, k, to, end, block))) {
      // What one iteration leaves, the next one may find.
      i.start = Math.min(i.start, 2 * start);
      i.end = Math.max(i.end, 2 * end + 1);
    } else if (last <= end) {
      // Every iteration sets it before it is read, and nothing outside reads it: nor do loops around.
      break;
    }
  }
}

/** The first of ascending places, from one of them up to another, that is not before a place; the end where all are. */
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
 * True where the k-th use of a register, which sets it, comes before all others of an iteration of a loop: it runs in every one, or they run only where
 * it does. Blocks are whole stretches of the list, so the last one tells for all in between.
 */
function covers(blocks: readonly Block[], used: Int32Array, k: number, to: number, end: number, loop: Block): boolean {
  const first = blocks[used[k]!]!;
  return certain(first, loop) || isInside(blocks[used[firstFrom(used, end + 1, k, to) - 1]!]!, first);
}

/** True where a block runs in every iteration of a loop around it. */
function certain(inner: Block, loop: Block): boolean {
  for (let b: Block = inner; b !== loop; b = b.parent!) if (!b.certain) return false;
  return true;
}

function isInside(inner: Block, outer: Block): boolean {
  for (let b: Block | null = inner; b !== null; b = b.parent) if (b === outer) return true;
  return false;
}

/** Gives places to those intervals that are of one class; returns whether all have one. They go to `places`, by number of register; -1 for none. */
export function scan(
  intervals: readonly Interval[],
  cls: RegClass,
  free: readonly number[],
  places: Int32Array,
): boolean {
  const available = [...free].reverse();
  const active: Interval[] = [];
  let whole = true;
  /** No active one ends before. */
  let ends = Number.POSITIVE_INFINITY;
  for (const i of intervals) {
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
        active.splice(k, 1);
      }
    }
    if (available.length > 0) {
      const { hint } = i.reg;
      const at = hint === null || hint.cls !== cls ? -1 : available.indexOf(places[hint.id]!);
      places[i.reg.id] = at < 0 ? available.pop()! : available.splice(at, 1)[0]!;
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
    active.splice(active.indexOf(victim), 1);
    active.push(i);
    if (i.end < ends) ends = i.end;
  }
  return whole;
}
