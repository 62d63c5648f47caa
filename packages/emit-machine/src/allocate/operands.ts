/**
 * Loads that one instruction reads become its operand in memory, where the machine has such a form: that is one instruction less, and needs no
 * register. A load moves to its reader only past instructions that leave memory and its address as they are.
 */
import type { Builder } from '../form/builder.ts';
import { type Arg, type Block, type Ins, isMemory, Reg } from '../form/code.ts';
import type { Registers } from '../form/machine.ts';

/** Where a load stands that no write of memory or of its address follows. */
interface Load {
  readonly at: number;
  readonly ins: Ins;
}

export function foldLoads({ root, regs }: Builder, { folded }: Registers): void {
  if (folded === undefined) return;
  const uses = new Int32Array(regs.length);
  countUses(root, uses);
  foldIn(root, uses, folded);
}

function countUses({ head, items }: Block, uses: Int32Array): void {
  for (let i = 0; i < head.length + items.length; i++) {
    const item = i < head.length ? head[i]! : items[i - head.length]!;
    if (item.kind === 'ins' || item.kind === 'divide')
      for (let k = 0; k < item.args.length; k++) countArg(item.args[k]!, uses);
    else if ('items' in item) countUses(item, uses);
  }
}

function countArg(a: Arg, uses: Int32Array): void {
  if (a instanceof Reg) uses[a.id]!++;
}

/** True for what may be a load with a single reader: its register is written and read once. */
function isLoad({ args, mask }: Ins, uses: Int32Array): boolean {
  const [to, from] = args;
  if (args.length !== 2 || mask !== null || !(to instanceof Reg) || from === undefined || !isMemory(from)) return false;
  return to.cls === 'v' && !to.mutable && to.home === null && uses[to.id] === 2 && from.base instanceof Reg;
}

function foldIn(block: Block, uses: Int32Array, folded: NonNullable<Registers['folded']>): void {
  const { items } = block;
  const loads = new Map<Reg, Load>();
  const gone = new Set<number>();
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    if ('items' in item) {
      foldIn(item, uses, folded);
      loads.clear();
      continue;
    }
    if (item.kind === 'divide') forget(loads, item.args[0]!);
    if (item.kind === 'label' || item.kind === 'jump') loads.clear();
    if (item.kind !== 'ins') continue;
    if (loads.size > 0 && item.mask === null) {
      for (let k = item.args.length; k-- > 1; ) {
        const a = item.args[k]!;
        const load = a instanceof Reg ? loads.get(a) : undefined;
        const made = load === undefined ? null : folded(load.ins, item);
        if (made === null) continue;
        items[at] = made;
        gone.add(load!.at);
        break;
      }
    }
    const { roles } = item.row;
    for (let k = 0; k < item.args.length; k++) {
      const a = item.args[k]!;
      if (roles[k]! < 2) continue;
      if (a instanceof Reg) forget(loads, a);
      else loads.clear();
    }
    if (isLoad(item, uses)) loads.set(item.args[0] as Reg, { at, ins: item });
  }
  if (gone.size === 0) return;
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
