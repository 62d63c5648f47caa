/** Instructions of arm64 as text, in the assembler's syntax as disassemblers print it. */
import { type MemoryPlace, type Place, poolBase } from '../form/code.ts';
import type { OperandKind, Row } from './rows.ts';

/** Conditions by their code. */
export const conditionNames = [
  'eq',
  'ne',
  'cs',
  'cc',
  'mi',
  'pl',
  'vs',
  'vc',
  'hi',
  'ls',
  'ge',
  'lt',
  'gt',
  'le',
] as const;

function general(number: number, size: number, stack: boolean): string {
  const letter = size === 8 ? 'x' : 'w';
  if (number === 31) return stack ? 'sp' : `${letter}zr`;
  return `${letter}${number}`;
}

function memory({ base, offset }: MemoryPlace): string {
  if (base === poolBase) return `constants+0x${offset.toString(16)}`;
  return `[${general(base, 8, true)}${offset === 0 ? '' : `, #${offset}`}]`;
}

const hex = (x: number | bigint): string => `#0x${x.toString(16)}`;

/** What an operand is in text, without those before it: several words where it is an extended register, or a number with its shift. */
function operandText(kind: OperandKind, p: number, size: number): readonly string[] {
  switch (kind) {
    case 'r':
      return [general(p, size, false)];
    case 'w':
      return [general(p, 4, false)];
    case 'x':
      return [general(p, 8, false)];
    case 'X':
      return [general(p, 8, true)];
    case 'ext':
      return [general(p, 8, false), 'uxtx'];
    case 'both':
      return [`v${p}.16b`];
    case 'list':
      return [`{v${p}.16b}`];
    case 'b':
    case 'h':
    case 's':
    case 'd':
    case 'q':
      return [`${kind}${p}`];
    case 'S':
    case 'D':
      return [`v${p}.${kind.toLowerCase()}`];
    case 'by':
      return p === 0 ? [] : [`lsl #${p}`];
    case 'uxtw':
      return [p === 0 ? 'uxtw' : `uxtw #${p}`];
    case 'u12':
    case 'u16':
      return [hex(p)];
    case 'u12h':
      return [hex(p), 'lsl #12'];
    case 'ones':
      return [hex((1n << BigInt(p)) - 1n)];
    case 'cond':
    case 'not':
      return [conditionNames[p]!];
    case 'lsl':
    case 'shr':
    case 'shl32':
    case 'shl64':
    case 'shr32':
    case 'shr64':
    case 'bytes':
      return [`#${p}`];
    default:
      return [`v${p}.${kind}`];
  }
}

/** The number that a move with a shift by `shift` bits makes: with bit 29 clear it is the inverse (MOVN). */
function movedText({ code }: Row, value: number, shift: number, size: number): string {
  const moved = BigInt(value) << BigInt(shift);
  return hex(BigInt.asUintN(size * 8, code >>> 29 === 0 ? ~moved : moved));
}

/** One instruction. */
export function instructionText(row: Row, size: number, places: readonly Place[]): string {
  let { name } = row;
  const parts: string[] = [];
  // Stores name what they store first, as others do.
  const order = row.operands[0]?.kind === 'm' ? [1, 0] : row.operands.map((_, i) => i);
  for (const i of order) {
    const { kind } = row.operands[i]!;
    const p = places[i]!;
    if (typeof p === 'object') {
      if (p.base !== poolBase && (p.offset < 0 || p.offset % row.bytes !== 0)) name = name.replace(/^(ld|st)r/, '$1ur');
      parts.push(memory(p));
    } else if (kind === 'lane') parts.push(`${parts.pop()}[${p}]`);
    else if (kind !== 'hw') parts.push(...operandText(kind, p, size));
    else if (name === 'movk') parts.push(...operandText('by', p, size));
    else {
      parts.pop();
      parts.push(movedText(row, places[i - 1] as number, p, size));
    }
  }
  if (name === 'bti') parts.push('c');
  return `${name} ${parts.join(', ')}`.trim();
}
