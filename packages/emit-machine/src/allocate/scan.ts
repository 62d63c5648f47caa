/**
 * Linear scan: how long every register is needed, and which ones of the machine they get.
 *
 * Source: M. Poletto and V. Sarkar, "Linear scan register allocation", ACM TOPLAS 21(5), 1999. What is spilled is so from its start to its end; the
 * cheapest is, counted by how often it is used, inner loops most.
 */
import type { Block, Reg, RegClass } from '../form/code.ts';
import { eachUse, type Flat, type Use } from './flat.ts';

/** When a register is needed: reads are at even, writes at odd places. */
export interface Interval {
  readonly reg: Reg;
  start: number;
  end: number;
  /** Uses, each as often as it is expected to run. */
  weight: number;
  /** Number of the machine's register, or -1. */
  place: number;
}

/** Where a register is used, in order. */
interface Places {
  readonly at: number[];
  readonly reads: boolean[];
}

/** The intervals by number of register; those that are never used have none. */
export function intervalsOf(flat: Flat): readonly (Interval | undefined)[] {
  const { registers, items, blocks, loops } = flat;
  const found: (Interval | undefined)[] = [];
  const places: Places[] = [];
  const order: Interval[] = [];
  const often = new Map<Block, number>();
  let at = 0;
  let weight = 0;
  const note: Use = (reg, reads, writes) => {
    let i = found[reg.id];
    if (i === undefined) {
      i = { reg, start: reads ? 2 * at : 2 * at + 1, end: 0, weight: 0, place: -1 };
      found[reg.id] = i;
      places[reg.id] = { at: [], reads: [] };
      order.push(i);
    }
    const until = writes ? 2 * at + 1 : 2 * at;
    if (until > i.end) i.end = until;
    i.weight += weight;
    const p = places[reg.id]!;
    p.at.push(at);
    p.reads.push(reads);
  };
  for (; at < items.length; at++) {
    const block = blocks[at]!;
    let known = often.get(block);
    if (known === undefined) often.set(block, (known = 8 ** Math.min(6, loopsAround(block))));
    weight = known;
    eachUse(registers, items[at]!, note);
  }
  for (const i of order) {
    const { at: used, reads } = places[i.reg.id]!;
    const [first, last] = [used[0]!, used[used.length - 1]!];
    for (const { start, end, block } of loops) {
      if (last < start || first > end) continue;
      const k = firstFrom(used, start);
      if (used[k]! > end) continue;
      if (i.start < 2 * start) i.end = Math.max(i.end, 2 * end + 1);
      else if (i.reg.mutable && (reads[k]! || !covers(blocks, used, k, end, block))) {
        // What one iteration leaves, the next one may find.
        i.start = Math.min(i.start, 2 * start);
        i.end = Math.max(i.end, 2 * end + 1);
      } else if (last <= end) {
        // Every iteration sets it before it is read, and nothing outside reads it: nor do loops around.
        break;
      }
    }
  }
  return found;
}

/** The first of ascending places that is not before a place; their number where all are. */
function firstFrom(places: readonly number[], start: number): number {
  let low = 0;
  let high = places.length;
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
function covers(blocks: readonly Block[], used: readonly number[], k: number, end: number, loop: Block): boolean {
  const first = blocks[used[k]!]!;
  return certain(first, loop) || isInside(blocks[used[firstFrom(used, end + 1) - 1]!]!, first);
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

/** Gives places to the intervals of one class; returns whether all have one. */
export function scan(intervals: readonly (Interval | undefined)[], cls: RegClass, free: readonly number[]): boolean {
  const order: Interval[] = [];
  for (const i of intervals) if (i !== undefined && i.reg.cls === cls) order.push(i);
  order.sort((a, b) => a.start - b.start);
  const available = [...free].reverse();
  const active: Interval[] = [];
  let whole = true;
  /** No active one ends before. */
  let ends = Number.POSITIVE_INFINITY;
  for (const i of order) {
    i.place = -1;
    if (ends < i.start) {
      ends = Number.POSITIVE_INFINITY;
      for (let k = active.length - 1; k >= 0; k--) {
        const old = active[k]!;
        if (old.end >= i.start) {
          if (old.end < ends) ends = old.end;
          continue;
        }
        available.push(old.place);
        active.splice(k, 1);
      }
    }
    if (available.length > 0) {
      const hint = i.reg.hint?.cls === cls ? intervals[i.reg.hint.id] : undefined;
      const at = hint === undefined ? -1 : available.indexOf(hint.place);
      i.place = at < 0 ? available.pop()! : available.splice(at, 1)[0]!;
      active.push(i);
      if (i.end < ends) ends = i.end;
      continue;
    }
    whole = false;
    let victim = i;
    for (const other of active) if (cost(other) < cost(victim)) victim = other;
    if (victim === i) continue;
    i.place = victim.place;
    victim.place = -1;
    active.splice(active.indexOf(victim), 1);
    active.push(i);
    if (i.end < ends) ends = i.end;
  }
  return whole;
}

/** What it costs to do without a register. */
function cost({ reg, weight, start, end }: Interval): number {
  return ((reg.home === null ? 1.5 : 0.3) * weight) / (end - start + 1);
}
