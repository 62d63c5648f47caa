/**
 * Loads of an element into all lanes that one instruction reads become its operand in memory, where the machine has such a form: that is
 * one instruction less, and needs no register. A load moves to its reader only past instructions that leave memory and its address as
 * they are.
 */
import type { Builder } from '../form/builder.ts';
import { type Arg, type Block, type Ins, isMemory, Reg } from '../form/code.ts';
import type { Folds, Registers } from '../form/machine.ts';
import { isWritten } from './flat.ts';

/** Where a load stands that no write of memory or of its address follows. */
interface Load {
  readonly at: number;
  readonly ins: Ins;
}

export function foldLoads({ root, regs, spreads }: Builder, { folds }: Registers): void {
  if (folds === undefined || !spreads) return;
  const reads = new Uint8Array(regs.length);
  countReads(root, reads);
  foldIn(root, reads, folds);
}

/** Counts how often registers are read or written, up to three times. */
function countReads(block: Block, reads: Uint8Array): void {
  for (const items of [block.head, block.items])
    for (let i = 0; i < items.length; i++) {
      const item = items[i]!;
      if (item.kind === 'loop' || item.kind === 'if') countReads(item, reads);
      else if (item.kind === 'ins') {
        const { args } = item;
        for (let k = 0; k < args.length; k++) {
          const a = args[k]!;
          if (a instanceof Reg && reads[a.id]! < 3) reads[a.id]!++;
        }
      }
    }
}

/** True for a load with a single reader: its register is written and read once. */
function isLoad({ args, mask }: Ins, reads: Uint8Array): boolean {
  if (mask !== null) return false;
  const [to, from] = args;
  if (!(to instanceof Reg) || from === undefined || !isMemory(from)) return false;
  return !to.mutable && reads[to.id] === 2 && from.base instanceof Reg;
}

function foldIn(block: Block, reads: Uint8Array, folds: Folds): void {
  const { items } = block;
  const loads = new Map<Reg, Load>();
  let gone: Set<number> | null = null;
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    if (item.kind === 'loop' || item.kind === 'if') {
      foldIn(item, reads, folds);
      loads.clear();
      continue;
    }
    if (item.kind === 'divide') forget(loads, item.args[0]!);
    if (item.kind === 'label' || item.kind === 'jump') loads.clear();
    if (item.kind !== 'ins') continue;
    if (loads.size > 0) {
      const { args, mask, row } = item;
      for (let k = args.length; mask === null && k-- > 1; ) {
        const a = args[k]!;
        const load = a instanceof Reg ? loads.get(a) : undefined;
        const made = load === undefined ? null : folds.folded(load.ins, item);
        if (made === null) continue;
        items[at] = made;
        (gone ??= new Set()).add(load!.at);
        break;
      }
      const { roles } = row;
      for (let k = 0; k < args.length; k++) {
        if (roles[k]! < isWritten) continue;
        const a = args[k]!;
        if (a instanceof Reg) forget(loads, a);
        else loads.clear();
      }
    }
    if (folds.loads.has(item.row) && isLoad(item, reads)) loads.set(item.args[0] as Reg, { at, ins: item });
  }
  if (gone === null) return;
  let kept = 0;
  for (let at = 0; at < items.length; at++) if (!gone.has(at)) items[kept++] = items[at]!;
  items.length = kept;
}

/** A general register is written: loads whose address it is part of stay where they are. */
function forget(loads: Map<Reg, Load>, written: Arg): void {
  if (loads.size === 0 || !(written instanceof Reg) || written.cls !== 'g') return;
  for (const [to, { ins }] of loads) {
    const from = ins.args[1]!;
    if (isMemory(from) && (from.base === written || from.index === written)) loads.delete(to);
  }
}
