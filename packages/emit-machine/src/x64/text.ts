/** Instructions as text, in the syntax of Intel's manuals as disassemblers print it. */
import { type MemoryPlace, type Place, poolBase } from '../form/code.ts';
import type { OperandKind, Row } from './rows.ts';

const wide = ['rax', 'rcx', 'rdx', 'rbx', 'rsp', 'rbp', 'rsi', 'rdi'];
const bytes = ['al', 'cl', 'dl', 'bl', 'spl', 'bpl', 'sil', 'dil'];

function general(number: number, size: number): string {
  if (number >= 8) return `r${number}${{ 8: '', 4: 'd', 2: 'w', 1: 'b' }[size]}`;
  const name = wide[number]!;
  if (size === 1) return bytes[number]!;
  return size === 8 ? name : size === 4 ? `e${name.slice(1)}` : name.slice(1);
}

/** Bytes of what stands at an operand's place, in memory and as a register. */
function bytesOf(kind: OperandKind, size: number): number {
  return {
    v: size,
    h: size / 2,
    q: size / 4,
    e: size / 8,
    x: 16,
    y: 32,
    s: 4,
    d: 8,
    k: 8,
    r: size,
    l: 4,
    o: 8,
    w: 2,
    b: 1,
    i: 0,
  }[kind];
}

const sizes: Readonly<Record<number, string>> = {
  64: 'ZMMWORD',
  32: 'YMMWORD',
  16: 'XMMWORD',
  8: 'QWORD',
  4: 'DWORD',
  2: 'WORD',
  1: 'BYTE',
};

function memory({ base, index, scale, offset }: MemoryPlace): string {
  if (base === poolBase) return `[constants+0x${offset.toString(16)}]`;
  const sign = offset < 0 ? '-' : '+';
  const scaled = index < 0 ? '' : `+${general(index, 8)}*${scale}`;
  return `[${general(base, 8)}${scaled}${offset === 0 && (base & 7) !== 5 ? '' : `${sign}0x${Math.abs(offset).toString(16)}`}]`;
}

const floatNames = ['eq', 'lt', 'le', 'unord', 'neq', 'nlt', 'nle', 'ord'];
const intNames = ['eq', 'lt', 'le', '', 'neq', 'nlt', 'nle', ''];

/** One instruction. */
export function instructionText(row: Row, size: number, places: readonly Place[], mask = 0, zero = false): string {
  const high = places.some((p, i) => typeof p === 'number' && p >= 16 && row.operands[i]!.field !== 'I');
  const evex = row.evex && (!row.vex || high || mask !== 0 || size === 64);
  let name = evex ? row.evexName : row.name;
  let count = places.length;
  // Comparisons carry their kind in their name.
  if (name.startsWith('vcmp') || /^vpcmpu?[dq]$/.test(name)) {
    const names = name.startsWith('vcmp') ? floatNames : intNames;
    name = name.replace(
      name.startsWith('vcmp') ? /[ps][sd]$/ : /u?[dq]$/,
      (end) => `${names[places[count - 1] as number]}${end}`,
    );
    count--;
  }
  const parts: string[] = [];
  for (let i = 0; i < count; i++) {
    const { kind } = row.operands[i]!;
    const p = places[i]!;
    let text: string;
    if (kind === 'i')
      text = `0x${(row.constant === 1 ? (p as number) & 255 : (p as number) < 0 ? BigInt.asUintN(size * 8, BigInt(p as number)) : (p as number)).toString(16)}`;
    else if (typeof p === 'object')
      text =
        row.name === 'lea' ? memory(p) : `${sizes[bytesOf(kind, size)]} ${row.spread ? 'BCST' : 'PTR'} ${memory(p)}`;
    else if (kind === 'k') text = `k${p}`;
    else if ('rlowb'.includes(kind)) text = general(p, bytesOf(kind, size));
    else text = `${{ 64: 'z', 32: 'y' }[bytesOf(kind, size)] ?? 'x'}mm${p}`;
    if (i === 0 && mask !== 0) text += `{k${mask}}${zero ? '{z}' : ''}`;
    parts.push(text);
  }
  return `${name} ${parts.join(',')}`.trim();
}
