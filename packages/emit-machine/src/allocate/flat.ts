/** From nested blocks to one list of instructions, and what is known of every place in it. */
import { type Arg, Block, isMemory, type Item, Reg } from '../code.ts';
import { rowOf } from '../x64/rows.ts';

/** A loop: from the item that starts it to its jump back. */
export interface LoopRange {
  readonly start: number;
  end: number;
  readonly block: Block;
}

export interface Flat {
  readonly items: Item[];
  /** The block that each item stands in. */
  readonly blocks: Block[];
  /** Inner loops before outer ones. */
  readonly loops: readonly LoopRange[];
}

export function flatten(root: Block): Flat {
  const items: Item[] = [];
  const blocks: Block[] = [];
  const loops: LoopRange[] = [];
  const add = (item: Item, block: Block): void => {
    items.push(item);
    blocks.push(block);
  };
  const walk = (block: Block): void => {
    for (const item of block.head) add(item, block.parent!);
    const range: LoopRange = { start: items.length, end: 0, block };
    if (block.kind === 'loop') add({ kind: 'label', label: block.label, loop: true }, block);
    for (const item of block.items) {
      if (item instanceof Block) walk(item);
      else add(item, block);
    }
    if (block.kind === 'if') add({ kind: 'label', label: block.label, loop: false }, block);
    if (block.kind !== 'loop') return;
    range.end = items.length - 1;
    loops.push(range);
  };
  walk(root);
  return { items, blocks, loops };
}

/** The list without numbers that nobody reads: some instructions hold them themselves. */
export function withoutUnread(flat: Flat): Flat {
  const read = new Set<Reg>();
  for (const item of flat.items) for (const a of accessesOf(item)) if (a.reads) read.add(a.reg);
  const gone = (item: Item): boolean =>
    item.kind === 'ins' && item.row === constantMove && item.args[0] instanceof Reg && !read.has(item.args[0]);
  return keepOnly(flat, (i) => !gone(flat.items[i]!));
}

const constantMove = rowOf('mov:constant');

/** The list without some of its items. */
export function keepOnly({ items, blocks, loops }: Flat, keeps: (at: number) => boolean): Flat {
  const kept: number[] = [];
  const before = new Int32Array(items.length + 1);
  for (let i = 0; i < items.length; i++) {
    before[i] = kept.length;
    if (keeps(i)) kept.push(i);
  }
  before[items.length] = kept.length;
  return {
    items: kept.map((i) => items[i]!),
    blocks: kept.map((i) => blocks[i]!),
    loops: loops.map((l) => ({ block: l.block, start: before[l.start]!, end: before[l.end + 1]! - 1 })),
  };
}

/** How an item uses a register. */
export interface Access {
  readonly reg: Reg;
  readonly reads: boolean;
  readonly writes: boolean;
}

/** True where lanes outside of the mask keep what they hold. Blends take them from an operand. */
export function keepsLanes({ mask, zero, row }: Item & { readonly kind: 'ins' }): boolean {
  return mask !== null && !zero && !row.name.startsWith('vblendm');
}

/** The registers of an item. */
export function accessesOf(item: Item): readonly Access[] {
  const list: Access[] = [];
  const address = (a: Arg): void => {
    if (typeof a === 'number' || !isMemory(a)) return;
    if (a.base instanceof Reg) list.push({ reg: a.base, reads: true, writes: false });
    if (a.index !== null) list.push({ reg: a.index, reads: true, writes: false });
  };
  if (item.kind === 'divide') {
    for (const [i, a] of item.args.entries()) list.push({ reg: a as Reg, reads: i > 0, writes: i === 0 });
  } else if (item.kind === 'ins') {
    item.args.forEach((a, i) => {
      address(a);
      const { reads, writes } = item.row.operands[i]!;
      if (a instanceof Reg) list.push({ reg: a, reads: reads || (writes && keepsLanes(item)), writes });
    });
    if (item.mask !== null) list.push({ reg: item.mask, reads: true, writes: false });
  }
  return list;
}

/** The registers that an item copies one to the other, or null. */
export function copyOf(item: Item): { readonly to: Reg; readonly from: Reg } | null {
  if (item.kind !== 'ins' || item.mask !== null) return null;
  const { row, size, args } = item;
  if (!(row.name === 'vmovaps' || row.name === 'kmovq' || (row.name === 'mov' && size === 8))) return null;
  const [to, from] = args;
  return to instanceof Reg && from instanceof Reg ? { to, from } : null;
}
