/** Instructions of arm64 as text, in the assembler's syntax as disassemblers print it. */
import { type MemoryPlace, type Place, poolBase } from '../form/code.ts';
import type { Row } from './rows.ts';

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
      continue;
    }
    switch (kind) {
      case 'r':
        parts.push(general(p, size, false));
        break;
      case 'w':
        parts.push(general(p, 4, false));
        break;
      case 'x':
        parts.push(general(p, 8, false));
        break;
      case 'X':
        parts.push(general(p, 8, true));
        break;
      case 'ext':
        parts.push(general(p, 8, false), 'uxtx');
        break;
      case 'both':
        parts.push(`v${p}.16b`);
        break;
      case 'list':
        parts.push(`{v${p}.16b}`);
        break;
      case 'b':
      case 'h':
      case 's':
      case 'd':
      case 'q':
        parts.push(`${kind}${p}`);
        break;
      case 'S':
      case 'D':
        parts.push(`v${p}.${kind.toLowerCase()}`);
        break;
      case 'lane':
        parts.push(`${parts.pop()}[${p}]`);
        break;
      case 'by':
        if (p !== 0) parts.push(`lsl #${p}`);
        break;
      case 'uxtw':
        parts.push(p === 0 ? 'uxtw' : `uxtw #${p}`);
        break;
      case 'u12h':
        parts.push(hex(p), 'lsl #12');
        break;
      case 'hw': {
        const value = BigInt(places[i - 1] as number);
        if (name === 'movk') {
          if (p !== 0) parts.push(`lsl #${p}`);
          break;
        }
        parts.pop();
        const inverse = row.code >>> 29 === 0;
        parts.push(hex(BigInt.asUintN(size * 8, inverse ? ~(value << BigInt(p)) : value << BigInt(p))));
        break;
      }
      case 'ones':
        parts.push(hex((1n << BigInt(p)) - 1n));
        break;
      case 'cond':
      case 'not':
        parts.push(conditionNames[p]!);
        break;
      case 'lsl':
      case 'shr':
      case 'shl32':
      case 'shl64':
      case 'shr32':
      case 'shr64':
        parts.push(`#${p}`);
        break;
      case 'bytes':
        parts.push(`#${p}`);
        break;
      case 'u12':
      case 'u16':
        parts.push(hex(p));
        break;
      default:
        parts.push(`v${p}.${kind}`);
    }
  }
  if (name === 'bti') parts.push('c');
  return `${name} ${parts.join(', ')}`.trim();
}
