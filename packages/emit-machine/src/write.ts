/** From assigned instructions to bytes: entry, items, end and faults, in this order. */
import { assign } from './allocate/assign.ts';
import type { Builder } from './form/builder.ts';
import type { Assigned, Label } from './form/code.ts';
import type { Machine } from './form/machine.ts';

export interface WrittenCode {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Instructions in the assembler's syntax, where asked for. */
  readonly text: string;
  readonly assigned: Assigned;
}

/**
 * Writes what a builder holds.
 *
 * @param told as for `assign`
 */
export function writeCode(builder: Builder, machine: Machine, listing = false, told = false): WrittenCode {
  const assigned = assign(builder, machine.registers, told);
  const lines: string[] = [];
  const writer = machine.writer(assigned, builder.constants.length, listing ? lines : null);
  const labels = new Map<Label, number>();
  const labelOf = (label: Label): number => {
    let number = labels.get(label);
    if (number === undefined) labels.set(label, (number = writer.label()));
    return number;
  };
  writer.enter();
  const faults: { readonly label: number; readonly code: number }[] = [];
  const exit = writer.label();
  for (let at = 0; at < assigned.items.length; at++) {
    const item = assigned.items[at]!;
    switch (item.kind) {
      case 'ins':
        writer.instruction(item.row, item.size, item.places, item.mask, item.zero);
        break;
      case 'label':
        writer.bind(labelOf(item.label), item.loop);
        break;
      case 'jump':
        writer.jump(labelOf(item.label), item.condition);
        break;
      case 'fault': {
        const label = labelOf(item.label);
        writer.jump(label, item.condition);
        faults.push({ label, code: item.code });
        break;
      }
      case 'same':
        break;
      default:
        item satisfies never;
    }
  }
  writer.result(0);
  writer.bind(exit, false);
  writer.leave();
  for (const { label, code } of faults) {
    writer.bind(label, false);
    writer.result(code);
    writer.jump(exit, null);
  }
  return { bytes: writer.finish(builder.constants), text: lines.join('\n'), assigned };
}
