/**
 * Removes copies into registers that are written more than once, such as sums: the copied value is computed there directly.
 *
 * That is safe if the copied value has no other use, and no instruction between uses the register.
 */
import { type Arg, isMemory, Reg } from '../form/code.ts';
import { copyOf, drop, type Flat, isWritten } from './flat.ts';

/** Most items that are examined for one copy. */
const most = 400;

interface Candidate {
  readonly at: number;
  readonly to: Reg;
  readonly from: Reg;
}

/** Rewrites the list, which gets shorter. In short functions: V8 takes several times as long to optimise them as one. */
export function coalesce(flat: Flat): void {
  const candidates = candidatesOf(flat);
  if (candidates.length === 0) return;
  const places = placesOf(flat, candidates);
  const gone = new Uint8Array(flat.items.length);
  let some = false;
  for (let i = 0; i < candidates.length; i++) if (takesPlace(flat, candidates[i]!, places, gone)) some = true;
  if (some) drop(flat, gone);
}

/** The copies into registers that are written more than once. */
function candidatesOf({ registers, items }: Flat): readonly Candidate[] {
  const candidates: Candidate[] = [];
  for (let at = 0; at < items.length; at++) {
    // Most items write no such register.
    const item = items[at]!;
    if (item.kind !== 'ins') continue;
    const to = item.args[0];
    const from = item.args[1];
    if (!(to instanceof Reg) || !to.mutable || !(from instanceof Reg) || from.mutable || from.home !== null) continue;
    if (copyOf(registers, item) !== null) candidates.push({ at, to, from });
  }
  return candidates;
}

/** For each register that is the source or the target of a copy the items that use it, ascending. */
function placesOf({ regs, items, starts, uses }: Flat, candidates: readonly Candidate[]): number[][] {
  const wanted = new Uint8Array(regs.length);
  for (let i = 0; i < candidates.length; i++) {
    const { to, from } = candidates[i]!;
    wanted[to.id] = wanted[from.id] = 1;
  }
  const places: number[][] = [];
  for (let at = 0; at < items.length; at++) {
    for (let u = starts[at]!; u < starts[at + 1]!; u++) {
      const id = uses[u]! >> 2;
      if (wanted[id] === 0) continue;
      const list = places[id];
      if (list === undefined) places[id] = [at];
      else if (list[list.length - 1] !== at) list.push(at);
    }
  }
  return places;
}

/** True if the source of a copy takes the place of its target; the copy is marked as gone then. */
function takesPlace(flat: Flat, { at, to, from }: Candidate, places: number[][], gone: Uint8Array): boolean {
  const own = places[from.id]!;
  const first = own[0]!;
  if (own[own.length - 1] !== at || at - first > most) return false;
  if (!straight(flat, first, at) || !startsAt(flat, first, from)) return false;
  const list = places[to.id]!;
  if (isBetween(list, first, at)) return false;
  for (let i = 0; i < own.length; i++) replace(flat, own[i]!, from, to);
  places[to.id] = merged(list, own);
  gone[at] = 1;
  const source = copyOf(flat.registers, flat.items[first]!);
  if (source !== null && source.to === source.from) gone[first] = 1;
  return true;
}

/** True if a number of a list lies between two others. */
function isBetween(list: readonly number[], low: number, high: number): boolean {
  for (let i = 0; i < list.length; i++) if (list[i]! > low && list[i]! < high) return true;
  return false;
}

/** The numbers of two ascending lists, each once. */
function merged(a: readonly number[], b: readonly number[]): number[] {
  const all: number[] = [];
  let j = 0;
  for (let i = 0; i < a.length; i++) {
    while (j < b.length && b[j]! < a[i]!) all.push(b[j++]!);
    if (b[j] === a[i]) j++;
    all.push(a[i]!);
  }
  while (j < b.length) all.push(b[j++]!);
  return all;
}

/** True if control goes from one item to the other without branches. */
function straight({ items, blocks }: Flat, from: number, to: number): boolean {
  for (let i = from; i <= to; i++) {
    const { kind } = items[i]!;
    if (blocks[i] !== blocks[to] || kind === 'label' || kind === 'jump') return false;
  }
  return true;
}

/** True if an item gives a register its first value. */
function startsAt({ starts, uses }: Flat, at: number, { id }: Reg): boolean {
  let first = true;
  for (let u = starts[at]!; u < starts[at + 1]!; u++) {
    if (uses[u]! >> 2 !== id) continue;
    if (!first || uses[u]! !== 4 * id + isWritten) return false;
    first = false;
  }
  return !first;
}

function replace({ items, starts, uses }: Flat, at: number, from: Reg, to: Reg): void {
  const item = items[at]!;
  if (item.kind !== 'ins' && item.kind !== 'divide') return;
  for (let u = starts[at]!; u < starts[at + 1]!; u++)
    if (uses[u]! >> 2 === from.id) uses[u] = uses[u]! + 4 * (to.id - from.id);
  const args: Arg[] = new Array(item.args.length);
  for (let i = 0; i < args.length; i++) {
    const a = item.args[i]!;
    if (a === from) args[i] = to;
    else if (typeof a === 'number' || !isMemory(a) || (a.base !== from && a.index !== from)) args[i] = a;
    else args[i] = { ...a, base: a.base === from ? to : a.base, index: a.index === from ? to : a.index };
  }
  item.args = args;
}
