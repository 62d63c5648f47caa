/**
 * Copies into registers that are written more than once, such as sums: what is copied is made there in the first place.
 *
 * That changes nothing where what is copied has no other user, and nobody looks at the register in between.
 */
import { type Arg, isMemory, type Item, Reg } from '../code.ts';
import { accessesOf, copyOf, type Flat, keepOnly } from './flat.ts';

/** Items that are looked at for one copy. */
const most = 400;

/** Rewrites the list, which gets shorter. */
export function coalesce(flat: Flat): Flat {
  const { items, blocks } = flat;
  const places = new Map<Reg, number[]>();
  for (const [at, item] of items.entries()) {
    for (const { reg } of accessesOf(item)) {
      const list = places.get(reg);
      if (list === undefined) places.set(reg, [at]);
      else if (list[list.length - 1] !== at) list.push(at);
    }
  }
  const gone = new Set<number>();
  for (const [at, item] of items.entries()) {
    const copy = copyOf(item);
    if (copy === null || copy.to === copy.from || !copy.to.mutable || copy.from.mutable || copy.from.home !== null)
      continue;
    const { to, from } = copy;
    const own = places.get(from)!;
    const first = own[0]!;
    if (own[own.length - 1] !== at || at - first > most) continue;
    if (!straight(items, blocks, first, at)) continue;
    if (!startsHere(items[first]!, from)) continue;
    if (places.get(to)!.some((p) => p > first && p < at)) continue;
    for (const p of own) replace(items[p]!, from, to);
    const list = places.get(to)!;
    list.push(...own.filter((p) => !list.includes(p)));
    list.sort((a, b) => a - b);
    gone.add(at);
    const source = copyOf(items[first]!);
    if (source !== null && source.to === source.from) gone.add(first);
  }
  if (gone.size === 0) return flat;
  return keepOnly(flat, (i) => !gone.has(i));
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
function startsHere(item: Item, reg: Reg): boolean {
  const own = accessesOf(item).filter((a) => a.reg === reg);
  return own.length === 1 && own[0]!.writes && !own[0]!.reads;
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
