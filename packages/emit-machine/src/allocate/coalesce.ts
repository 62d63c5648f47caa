/**
 * Copies into registers that are written more than once, such as sums: what is copied is made there in the first place.
 *
 * That changes nothing where what is copied has no other user, and nobody looks at the register in between.
 */
import { type Arg, isMemory, type Item, Reg } from '../form/code.ts';
import type { Registers } from '../form/machine.ts';
import { copyOf, eachUse, type Flat, keepOnly, type Use } from './flat.ts';

/** Items that are looked at for one copy. */
const most = 400;

/** Rewrites the list, which gets shorter. */
export function coalesce(flat: Flat): Flat {
  const { registers, items, blocks } = flat;
  if (!items.some((item) => isCandidate(registers, item))) return flat;
  // Of those that are copied, and those that are copied to.
  const wanted: boolean[] = [];
  for (const item of items) {
    if (!isCandidate(registers, item)) continue;
    const { to, from } = copyOf(registers, item)!;
    wanted[to.id] = wanted[from.id] = true;
  }
  const places: number[][] = [];
  let now = 0;
  const note: Use = ({ id }) => {
    if (wanted[id] !== true) return;
    const list = places[id];
    if (list === undefined) places[id] = [now];
    else if (list[list.length - 1] !== now) list.push(now);
  };
  for (; now < items.length; now++) eachUse(registers, items[now]!, note);
  const gone = new Set<number>();
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    if (!isCandidate(registers, item)) continue;
    const { to, from } = copyOf(registers, item)!;
    const own = places[from.id]!;
    const first = own[0]!;
    if (own[own.length - 1] !== at || at - first > most) continue;
    if (!straight(items, blocks, first, at)) continue;
    if (!startsHere(registers, items[first]!, from)) continue;
    if (places[to.id]!.some((p) => p > first && p < at)) continue;
    for (const p of own) replace(items[p]!, from, to);
    const list = places[to.id]!;
    list.push(...own.filter((p) => !list.includes(p)));
    list.sort((a, b) => a - b);
    gone.add(at);
    const source = copyOf(registers, items[first]!);
    if (source !== null && source.to === source.from) gone.add(first);
  }
  if (gone.size === 0) return flat;
  return keepOnly(flat, gone);
}

/** True for a copy into a register that is written more than once. */
function isCandidate(registers: Registers, item: Item): boolean {
  // Most items write no such register.
  if (item.kind !== 'ins') return false;
  const [to] = item.args;
  if (!(to instanceof Reg) || !to.mutable) return false;
  const copy = copyOf(registers, item);
  return copy !== null && copy.to !== copy.from && copy.to.mutable && !copy.from.mutable && copy.from.home === null;
}

/** True where control goes from one item to the other, and nowhere else. */
function straight(items: readonly Item[], blocks: Flat['blocks'], from: number, to: number): boolean {
  for (let i = from; i <= to; i++) {
    const { kind } = items[i]!;
    if (blocks[i] !== blocks[to] || kind === 'label' || kind === 'jump') return false;
  }
  return true;
}

/** True where an item gives a register its first value. */
function startsHere(registers: Registers, item: Item, reg: Reg): boolean {
  let uses = 0;
  let only = false;
  eachUse(registers, item, (r, reads, writes) => {
    if (r !== reg) return;
    uses++;
    only = writes && !reads;
  });
  return uses === 1 && only;
}

function replace(item: Item, from: Reg, to: Reg): void {
  if (item.kind !== 'ins' && item.kind !== 'divide') return;
  const other = (r: Reg): Reg => (r === from ? to : r);
  item.args = item.args.map((a): Arg => {
    if (typeof a === 'number') return a;
    if (!isMemory(a)) return other(a);
    return {
      ...a,
      base: a.base instanceof Reg ? other(a.base) : a.base,
      index: a.index === null ? null : other(a.index),
    };
  });
}
