/**
 * Linear scan: how long every register is needed, and which ones of the machine they get.
 *
 * Source: M. Poletto and V. Sarkar, "Linear scan register allocation", ACM TOPLAS 21(5), 1999. What is spilled is so from its start to its end; the
 * cheapest is, counted by how often it is used, inner loops most.
 */
import type { Block, Reg, RegClass } from '../code.ts';
import { accessesOf, type Flat } from './flat.ts';

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

interface Places {
  readonly at: number[];
  readonly first: { reads: boolean }[];
}

/** The intervals by number of register; those that are never used have none. */
export function intervalsOf(flat: Flat): Map<Reg, Interval> {
  const { items, blocks, loops } = flat;
  const found = new Map<Reg, Interval>();
  const places = new Map<Reg, Places>();
  for (const [at, item] of items.entries()) {
    const often = 8 ** Math.min(6, loopsAround(blocks[at]!));
    for (const { reg, reads, writes } of accessesOf(item)) {
      let i = found.get(reg);
      if (i === undefined) {
        i = { reg, start: reads ? 2 * at : 2 * at + 1, end: 0, weight: 0, place: -1 };
        found.set(reg, i);
        places.set(reg, { at: [], first: [] });
      }
      i.end = Math.max(i.end, writes ? 2 * at + 1 : 2 * at);
      i.weight += often;
      const p = places.get(reg)!;
      p.at.push(at);
      p.first.push({ reads });
    }
  }
  for (const i of found.values()) {
    const { at, first } = places.get(i.reg)!;
    for (const { start, end, block } of loops) {
      const k = at.findIndex((p) => p >= start && p <= end);
      if (k < 0) continue;
      if (i.start < 2 * start) i.end = Math.max(i.end, 2 * end + 1);
      else if (i.reg.mutable && (first[k]!.reads || !certain(blocks[at[k]!]!, block))) {
        // What one iteration leaves, the next one may find.
        i.start = Math.min(i.start, 2 * start);
        i.end = Math.max(i.end, 2 * end + 1);
      } else if (at.at(-1)! <= end) {
        // Every iteration sets it before it is read, and nothing outside reads it: nor do loops around.
        break;
      }
    }
  }
  return found;
}

function loopsAround(block: Block): number {
  let count = 0;
  for (let b: Block | null = block; b !== null; b = b.parent) if (b.kind === 'loop') count++;
  return count;
}

/** True where a block runs in every iteration of a loop around it. */
function certain(inner: Block, loop: Block): boolean {
  for (let b: Block = inner; b !== loop; b = b.parent!) if (!b.certain) return false;
  return true;
}

/** Gives places to the intervals of one class; returns whether all have one. */
export function scan(intervals: Iterable<Interval>, cls: RegClass, free: readonly number[]): boolean {
  const order = [...intervals].filter((i) => i.reg.cls === cls).sort((a, b) => a.start - b.start);
  const available = [...free].reverse();
  const active: Interval[] = [];
  const byReg = new Map(order.map((i) => [i.reg, i]));
  let whole = true;
  for (const i of order) {
    i.place = -1;
    for (let k = active.length - 1; k >= 0; k--) {
      const old = active[k]!;
      if (old.end >= i.start) continue;
      available.push(old.place);
      active.splice(k, 1);
    }
    if (available.length > 0) {
      const hint = i.reg.hint === null ? undefined : byReg.get(i.reg.hint);
      const at = hint === undefined ? -1 : available.indexOf(hint.place);
      i.place = at < 0 ? available.pop()! : available.splice(at, 1)[0]!;
      active.push(i);
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
  }
  return whole;
}

/** What it costs to do without a register. */
function cost({ reg, weight, start, end }: Interval): number {
  return ((reg.home === null ? 1.5 : 0.3) * weight) / (end - start + 1);
}
