/** From nested blocks to one list of instructions, and what is known of every place in it. */
import { Block, type Item, Reg } from '../form/code.ts';
import type { Registers } from '../form/machine.ts';

/** A loop: from the item that starts it to its jump back. */
export interface LoopRange {
  readonly start: number;
  end: number;
  readonly block: Block;
}

export interface Flat {
  readonly registers: Registers;
  readonly items: Item[];
  /** The block that each item stands in. */
  readonly blocks: Block[];
  /** Inner loops before outer ones. */
  readonly loops: readonly LoopRange[];
}

export function flatten(root: Block, registers: Registers): Flat {
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
  return { registers, items, blocks, loops };
}

/** The list without numbers that nobody reads: some instructions hold them themselves. */
export function withoutUnread(flat: Flat): Flat {
  const read: boolean[] = [];
  const note: Use = (reg, reads) => {
    if (reads) read[reg.id] = true;
  };
  const { registers } = flat;
  for (const item of flat.items) eachUse(registers, item, note);
  const gone = new Set<number>();
  for (let i = 0; i < flat.items.length; i++) {
    const item = flat.items[i]!;
    if (item.kind !== 'ins' || !registers.mayGo(item.row)) continue;
    const [made] = item.args;
    if (made instanceof Reg && read[made.id] !== true) gone.add(i);
  }
  return gone.size === 0 ? flat : keepOnly(flat, gone);
}

/** The list without some of its items, told by their places. */
export function keepOnly({ registers, items, blocks, loops }: Flat, gone: ReadonlySet<number>): Flat {
  const kept: Item[] = [];
  const around: Block[] = [];
  const before = new Int32Array(items.length + 1);
  for (let i = 0; i < items.length; i++) {
    before[i] = kept.length;
    if (gone.has(i)) continue;
    kept.push(items[i]!);
    around.push(blocks[i]!);
  }
  before[items.length] = kept.length;
  return {
    registers,
    items: kept,
    blocks: around,
    loops: loops.map((l) => ({ block: l.block, start: before[l.start]!, end: before[l.end + 1]! - 1 })),
  };
}

/** Called for each use of a register. */
export type Use = (reg: Reg, reads: boolean, writes: boolean) => void;

/** Tells every use of a register by an item, in order. */
export function eachUse(registers: Registers, item: Item, use: Use): void {
  if (item.kind === 'divide') {
    for (let i = 0; i < item.args.length; i++) use(item.args[i] as Reg, i > 0, i === 0);
    return;
  }
  if (item.kind !== 'ins') return;
  const { args, row, mask } = item;
  for (let i = 0; i < args.length; i++) {
    const a = args[i]!;
    if (typeof a === 'number') continue;
    if (!(a instanceof Reg)) {
      if (a.base instanceof Reg) use(a.base, true, false);
      if (a.index !== null) use(a.index, true, false);
      continue;
    }
    const { reads, writes } = row.operands[i]!;
    use(a, reads || (writes && mask !== null && registers.keepsLanes(item)), writes);
  }
  if (mask !== null) use(mask, true, false);
}

/** The registers that an item copies one to the other, or null. */
export function copyOf(registers: Registers, item: Item): { readonly to: Reg; readonly from: Reg } | null {
  if (item.kind !== 'ins' || item.mask !== null || !registers.isCopy(item)) return null;
  const [to, from] = item.args;
  return to instanceof Reg && from instanceof Reg ? { to, from } : null;
}
