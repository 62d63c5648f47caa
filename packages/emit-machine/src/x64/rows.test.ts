/** Every row of the table against a disassembler: what we write is what it reads. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Place } from '../form/code.ts';
import { Assembler } from './encode.ts';
import { type Operand, type Row, rows } from './rows.ts';
import { instructionText } from './text.ts';

const { status } = spawnSync('objdump', ['--version'], { stdio: 'ignore' });
if (status !== 0) console.warn('objdump is not installed: the instruction table is not compared with a disassembler');

/** One instruction to write and to read. */
interface Sample {
  readonly row: Row;
  readonly size: number;
  readonly places: readonly Place[];
  readonly mask: number;
  readonly zero: boolean;
}

const memories: readonly Place[] = [
  { base: 0, index: -1, scale: 1, offset: 0 },
  { base: 4, index: -1, scale: 1, offset: 64 },
  { base: 5, index: 12, scale: 4, offset: 0 },
  { base: 13, index: 9, scale: 8, offset: -128 },
  { base: 12, index: 3, scale: 2, offset: 4100 },
  { base: 7, index: 1, scale: 1, offset: -36 },
];

function sizesOf(row: Row): number[] {
  const kinds = row.operands.map((o) => o.kind).join('');
  if (row.name === 'vinsertf64x4' || row.name === 'vextractf64x4') return [64];
  if (row.name === 'vextractf32x4') return [64];
  if (kinds.includes('y')) return [32];
  if (/[vhqe]/.test(kinds)) {
    const all = row.vex ? (row.evex ? [16, 32, 64] : [16, 32]) : [16, 32, 64];
    // Doubles are spread over more than 16 bytes only; vmovddup spreads one over these.
    if (row.name === 'vbroadcastsd') return [32, 64];
    // There are no lanes to move between in 16 bytes.
    if (row.name === 'vpermps') return [32, 64];
    if (row.name === 'vmovddup') return [16];
    return all;
  }
  if (kinds.includes('r')) return [4, 8];
  return [16];
}

function registersOf({ kind, field }: Operand, row: Row, variant: number): number {
  if (field === 'I') return row.name.startsWith('v') ? 1 : [1, 100, 100000, -7][variant % 4]!;
  if (kind === 'k') return [1, 5, 7, 2][variant % 4]!;
  if ('rlowb'.includes(kind)) return [0, 6, 9, 13, 15, 3][variant % 6]!;
  return row.evex && (variant & 1) === 1 ? [17, 9, 30, 25][(variant >> 1) % 4]! : [0, 9, 7, 15][variant % 4]!;
}

function* samples(): Generator<Sample> {
  for (const [key, row] of rows) {
    for (const size of sizesOf(row)) {
      for (let variant = 0; variant < 8; variant++) {
        const memoryAt = row.operands.findIndex((o) => o.field === 'M');
        const only = memoryAt < 0 ? null : row.operands[memoryAt]!.only;
        const inMemory = memoryAt >= 0 && only !== 'register' && (only === 'memory' || variant >= 4);
        const places = row.operands.map((o, i): Place => {
          if (i === memoryAt && inMemory) return memories[variant % memories.length]!;
          if (o.field === 'I' && row.constant === 1 && !row.name.startsWith('v')) return 5;
          if (o.field === 'I' && key === 'movabs') return 0x123456789ab;
          return registersOf(o, row, variant + i * 3);
        });
        const lanes =
          row.evex && row.operands[0]?.kind === 'v' && row.operands[0].field !== 'M' && row.operands.length > 1;
        const masked = lanes && variant === 3;
        yield { row, size, places, mask: masked ? 3 : 0, zero: masked };
      }
    }
  }
}

describe.skipIf(status !== 0)('the instruction table', () => {
  it('is what objdump reads', () => {
    const all = [...samples()];
    const assembler = new Assembler();
    const starts: number[] = [];
    for (const { row, size, places, mask, zero } of all) {
      starts.push(assembler.length);
      assembler.emit(row, size, places, mask, zero);
    }
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-rows-'));
    const file = join(folder, 'code.bin');
    writeFileSync(file, assembler.finish(new Uint8Array()));
    const args = ['-D', '-b', 'binary', '-m', 'i386:x86-64', '-M', 'intel', '--insn-width=16', file];
    const { stdout } = spawnSync('objdump', args, { encoding: 'utf8', maxBuffer: 1 << 28 });
    rmSync(folder, { recursive: true });
    const read = new Map<number, string>();
    for (const line of stdout.split('\n')) {
      const match = /^\s*([0-9a-f]+):\t[0-9a-f ]+\t(.*)$/.exec(line);
      if (match)
        read.set(
          Number.parseInt(match[1]!, 16),
          match[2]!
            .replace(/\s+/g, ' ')
            .replace(/ [#<].*$/, '')
            .trim(),
        );
    }
    const wrong = all.flatMap(({ row, size, places, mask, zero }, i) => {
      const want = instructionText(row, size, places, mask, zero);
      const got = read.get(starts[i]!);
      return got === want ? [] : [`${want} was read as ${got}`];
    });
    expect(wrong).toEqual([]);
    expect(all.length).toBeGreaterThan(1500);
  });
});
