/** Flattens nested blocks to one list of instructions, with the block of each, the loops, and all uses of registers. */
import type { Builder } from '../form/builder.ts';
import { Block, type Item, Reg } from '../form/code.ts';
import type { Registers } from '../form/machine.ts';

/** A loop: from the item that starts it to its jump back. */
export interface LoopRange {
  start: number;
  end: number;
  readonly block: Block;
}

/** Bits of a use: the register is read, and written. */
export const isRead = 1;
export const isWritten = 2;

/** Passes remove items from it. Uses are found once, as numbers, because every pass visits all of them. */
export interface Flat {
  readonly registers: Registers;
  /** True if there is a division. */
  divides: boolean;
  /** All registers, by number. */
  readonly regs: readonly Reg[];
  readonly items: Item[];
  /** The block of each item. */
  readonly blocks: Block[];
  /** Inner loops before outer ones. */
  readonly loops: LoopRange[];
  /** Where the uses of each item begin, and one entry more for the end. */
  readonly starts: number[];
  /** Uses in order: four times the register's number, plus `isRead` and `isWritten`. */
  readonly uses: number[];
}

export function flatten({ root, regs }: Builder, registers: Registers): Flat {
  const flat: Flat = { registers, divides: false, regs, items: [], blocks: [], loops: [], starts: [0], uses: [] };
  addBlock(flat, root);
  return flat;
}

function addBlock(flat: Flat, block: Block): void {
  const { items, loops } = flat;
  const { head, kind } = block;
  for (let i = 0; i < head.length; i++) add(flat, head[i]!, block.parent!);
  const start = items.length;
  if (kind === 'loop') add(flat, { kind: 'label', label: block.label, loop: true }, block);
  for (let i = 0; i < block.items.length; i++) {
    const item = block.items[i]!;
    if (item instanceof Block) addBlock(flat, item);
    else add(flat, item, block);
  }
  if (kind === 'if') add(flat, { kind: 'label', label: block.label, loop: false }, block);
  if (kind === 'loop') loops.push({ start, end: items.length - 1, block });
}

function add(flat: Flat, item: Item, block: Block): void {
  const { uses } = flat;
  flat.items.push(item);
  flat.blocks.push(block);
  if (item.kind === 'ins') {
    const { args, mask } = item;
    const { roles } = item.row;
    const keeps = mask !== null && flat.registers.keepsLanes(item);
    for (let i = 0; i < args.length; i++) {
      const a = args[i]!;
      if (typeof a === 'number') continue;
      if (a instanceof Reg) {
        const role = roles[i]!;
        uses.push(4 * a.id + (keeps && role === isWritten ? isRead + isWritten : role));
        continue;
      }
      const { base, index } = a;
      if (typeof base === 'object') uses.push(4 * base.id + isRead);
      if (index !== null) uses.push(4 * index.id + isRead);
    }
    if (mask !== null) uses.push(4 * mask.id + isRead);
  } else if (item.kind === 'divide') {
    flat.divides = true;
    for (let i = 0; i < item.args.length; i++) uses.push(4 * (item.args[i] as Reg).id + (i > 0 ? isRead : isWritten));
  }
  flat.starts.push(uses.length);
}

/** Removes dead constants: instructions that encode a constant themselves do not read its register. */
export function dropUnread(flat: Flat): void {
  const { registers, regs, items, uses } = flat;
  const read = new Uint8Array(regs.length);
  for (let u = 0; u < uses.length; u++) {
    const use = uses[u]!;
    if ((use & isRead) !== 0) read[use >> 2] = 1;
  }
  const gone = new Uint8Array(items.length);
  let some = false;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (item.kind !== 'ins') continue;
    const made = item.args[0];
    if (!(made instanceof Reg) || read[made.id] === 1 || !registers.mayGo(item.row)) continue;
    gone[i] = 1;
    some = true;
  }
  if (some) drop(flat, gone);
}

/** Removes the marked items, of which there are some. */
export function drop({ items, blocks, loops, starts, uses }: Flat, gone: Uint8Array): void {
  const { length } = items;
  const before = new Int32Array(length + 1);
  // What stands before the first of them stays where it is.
  const first = gone.indexOf(1);
  for (let i = 0; i < first; i++) before[i] = i;
  let kept = first;
  let end = starts[first]!;
  let u = end;
  for (let i = first; i < length; i++) {
    before[i] = kept;
    const to = starts[i + 1]!;
    if (gone[i] === 1) {
      u = to;
      continue;
    }
    items[kept] = items[i]!;
    blocks[kept] = blocks[i]!;
    starts[kept++] = end;
    while (u < to) uses[end++] = uses[u++]!;
  }
  before[length] = kept;
  starts[kept] = end;
  items.length = blocks.length = kept;
  starts.length = kept + 1;
  uses.length = end;
  for (const loop of loops) {
    loop.start = before[loop.start]!;
    loop.end = before[loop.end + 1]! - 1;
  }
}

/** The target and source if an item is a copy, or null. */
export function copyOf(registers: Registers, item: Item): { readonly to: Reg; readonly from: Reg } | null {
  if (item.kind !== 'ins' || item.mask !== null) return null;
  const to = item.args[0];
  const from = item.args[1];
  return to instanceof Reg && from instanceof Reg && registers.isCopy(item) ? { to, from } : null;
}
