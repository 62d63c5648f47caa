/** From assigned instructions to bytes: entry and end of the function, jumps, faults. */
import { assign, type Assigned } from './allocate/assign.ts';
import { type Builder, parameterOffset } from './builder.ts';
import type { Label } from './code.ts';
import { Assembler } from './x64/encode.ts';
import { rowOf } from './x64/rows.ts';
import { instructionText } from './x64/text.ts';

const [rax, rsp] = [0, 4];
/** Registers that a function leaves as they were (System V). */
const preserved = [3, 5, 12, 13, 14, 15];
/** Registers of the four parameters. */
const parameters = [
  [7, parameterOffset.args],
  [6, parameterOffset.from],
  [2, parameterOffset.to],
  [1, parameterOffset.scratch],
] as const;

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
export function writeCode(builder: Builder, listing = false, told = false): WrittenCode {
  const assigned = assign(builder, told);
  const { items, frameBytes, general } = assigned;
  const assembler = new Assembler();
  const lines: string[] = [];
  const emit: Assembler['emit'] = (row, size, places, mask = 0, zero = false) => {
    if (listing) lines.push(`    ${instructionText(row, size, places, mask, zero)}`);
    assembler.emit(row, size, places, mask, zero);
  };
  const labels = new Map<Label, number>();
  const labelOf = (label: Label): number => {
    let number = labels.get(label);
    if (number === undefined) labels.set(label, (number = assembler.label()));
    return number;
  };
  const bind = (number: number): void => {
    if (listing) lines.push(`L${number}:`);
    assembler.bind(number);
  };
  const saved = preserved.filter((r) => general.has(r));
  const stack = (offset: number): { base: number; index: number; scale: number; offset: number } => ({
    base: rsp,
    index: -1,
    scale: 1,
    offset,
  });
  for (const r of saved) emit(rowOf('push'), 8, [r]);
  emit(rowOf('mov'), 8, [rax, rsp]);
  emit(rowOf('sub:constant'), 8, [rsp, frameBytes + 64]);
  emit(rowOf('and:constant'), 8, [rsp, -64]);
  emit(rowOf('mov:store'), 8, [stack(frameBytes), rax]);
  for (const [r, offset] of parameters) emit(rowOf('mov:store'), 8, [stack(offset), r]);
  const faults: { readonly label: number; readonly code: number }[] = [];
  const exit = assembler.label();
  for (const item of items) {
    switch (item.kind) {
      case 'ins':
        emit(item.row, item.size, item.places, item.mask, item.zero);
        break;
      case 'label':
        if (item.loop) assembler.align(16);
        bind(labelOf(item.label));
        break;
      case 'jump': {
        const label = labelOf(item.label);
        if (listing) lines.push(`    ${item.condition === null ? 'jmp' : `j${item.condition}`} L${label}`);
        assembler.jump(label, item.condition);
        break;
      }
      case 'fault': {
        const label = labelOf(item.label);
        if (listing) lines.push(`    j${item.condition} L${label}`);
        assembler.jump(label, item.condition);
        faults.push({ label, code: item.code });
        break;
      }
      case 'same':
        break;
      default:
        item satisfies never;
    }
  }
  emit(rowOf('xor'), 4, [rax, rax]);
  bind(exit);
  emit(rowOf('mov'), 8, [rsp, stack(frameBytes)]);
  for (const r of saved.toReversed()) emit(rowOf('pop'), 8, [r]);
  emit(rowOf('vzeroupper'), 16, []);
  emit(rowOf('ret'), 8, []);
  for (const { label, code } of faults) {
    bind(label);
    emit(rowOf('mov:constant'), 4, [rax, code]);
    if (listing) lines.push(`    jmp L${exit}`);
    assembler.jump(exit);
  }
  return { bytes: assembler.finish(builder.constants), text: lines.join('\n'), assigned };
}
