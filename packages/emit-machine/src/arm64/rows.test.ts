/** Every row of the table against a disassembler: what we write is what it reads. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Place } from '../form/code.ts';
import { Assembler, holdsOffset } from './encode.ts';
import { type Operand, type Row, rows } from './rows.ts';
import { instructionText } from './text.ts';

const objdump = 'aarch64-linux-gnu-objdump';
const { status } = spawnSync(objdump, ['--version'], { stdio: 'ignore' });
if (status !== 0) {
  if ((process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('arm64'))
    throw new Error(`POLYGRAD_REQUIRE names arm64, but there is no ${objdump}: tooling/devices/install.sh arm64`);
  console.warn(`${objdump} is not installed: the instruction table of arm64 is not compared with a disassembler`);
}

/** One instruction to write and to read. */
interface Sample {
  readonly row: Row;
  readonly size: number;
  readonly places: readonly Place[];
}

function placeOf({ kind }: Operand, row: Row, size: number, variant: number): Place {
  const pick = <T>(...list: readonly T[]): T => list[variant % list.length]!;
  switch (kind) {
    case 'm': {
      const offset = pick(0, 255, -256, row.bytes, row.bytes * 4095, -8);
      return { base: pick(0, 31, 17, 9), index: -1, scale: 1, offset };
    }
    case 'u12':
    case 'u12h':
      return pick(1, 0, 4095, 100);
    case 'u16':
      // What two instructions can say has another name in one of them.
      return row.name === 'mov' ? pick(1, 7, 0x1234, 0x8000) : pick(1, 7, 0xffff, 0x8000);
    case 'hw':
      return size === 8 ? pick(0, 16, 32, 48) : pick(0, 16);
    case 'lsl':
    case 'shr':
      return pick(1, 5, size * 8 - 1);
    case 'by':
      return pick(0, 1, 31);
    case 'uxtw':
      return pick(0, 1, 2, 3, 4);
    case 'ones':
      return pick(1, 5, 8, size * 8 - 1);
    case 'shl32':
      return pick(0, 1, 31);
    case 'shl64':
      return pick(0, 1, 63);
    case 'shr32':
      return pick(1, 32, 7);
    case 'shr64':
      return pick(1, 64, 7);
    case 'lane':
      return row.operands.some((o) => o.kind === 'D')
        ? pick(0, 1)
        : row.name === 'fmla'
          ? pick(0, 1)
          : pick(1, 3, 2, 0);
    case 'bytes':
      return pick(1, 4, 8, 15);
    case 'cond':
    case 'not':
      return pick(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
    default:
      return pick(0, 31, 5, 16, 30, 9);
  }
}

function* samples(): Generator<Sample> {
  for (const [key, row] of rows) {
    if (key === 'mov:constant' || key === 'adr') continue;
    for (const size of row.sized ? [4, 8] : [8]) {
      for (let variant = 0; variant < 14; variant++) {
        const places = row.operands.map((o, i) => placeOf(o, row, size, variant + i * 5));
        // Registers of the stack have other names where a form for others exists; moves from 31 have another one, too.
        const general = row.operands.map((o, i) =>
          ['r', 'w', 'x', 'X', 'ext'].includes(o.kind) && places[i] === 31 ? 30 : places[i]!,
        );
        yield { row, size, places: general };
      }
    }
  }
}

describe.skipIf(status !== 0)('the instruction table of arm64', () => {
  it('is what objdump reads', () => {
    const all = [...samples()].filter(({ row, places }) =>
      places.every((p) => typeof p === 'number' || holdsOffset(row, p.offset)),
    );
    const assembler = new Assembler();
    for (const { row, size, places } of all) assembler.emit(row, size, places);
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-rows-'));
    const file = join(folder, 'code.bin');
    writeFileSync(file, assembler.finish(new Uint8Array()));
    const { stdout } = spawnSync(objdump, ['-D', '-z', '-b', 'binary', '-m', 'aarch64', file], {
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    rmSync(folder, { recursive: true });
    const read = new Map<number, string>();
    for (const line of stdout.split('\n')) {
      const match = /^\s*([0-9a-f]+):\t[0-9a-f]+ \t(.*)$/.exec(line);
      if (match)
        read.set(
          Number.parseInt(match[1]!, 16),
          match[2]!
            .replace(/\s+/g, ' ')
            .replace(/ \/\/.*$/, '')
            .trim(),
        );
    }
    const wrong = all.flatMap(({ row, size, places }, i) => {
      const want = instructionText(row, size, places);
      const got = read.get(i * 4);
      return got === want ? [] : [`${want} was read as ${got}`];
    });
    expect(wrong).toEqual([]);
    expect(all.length).toBeGreaterThan(1500);
  });

  it('reads jumps, constants and addresses', () => {
    const assembler = new Assembler();
    const [back, ahead] = [assembler.label(), assembler.label()];
    assembler.bind(back);
    assembler.jump(ahead, 'l', false);
    assembler.jump(back, null, false);
    assembler.jump(back, 'a', true);
    assembler.emit(rows.get('ldr:q')!, 8, [3, { base: -1, index: -1, scale: 1, offset: 16 }]);
    assembler.emit(rows.get('adr')!, 8, [4, { base: -1, index: -1, scale: 1, offset: 32 }]);
    assembler.bind(ahead);
    assembler.emit(rows.get('ret')!, 8, []);
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-rows-'));
    const file = join(folder, 'code.bin');
    writeFileSync(file, assembler.finish(new Uint8Array(64)));
    const { stdout } = spawnSync(objdump, ['-D', '-b', 'binary', '-m', 'aarch64', file], { encoding: 'utf8' });
    rmSync(folder, { recursive: true });
    const text = stdout.replace(/\s+/g, ' ').replace(/ \/\/ b\.\S+/g, '');
    expect(text).toMatch(
      /b\.lt 0x18 .*4: \w+ b 0x0 8: \w+ b\.ls 0x10 .*c: \w+ b 0x0 10: \w+ ldr q3, 0x50 14: \w+ adr x4, 0x60 18: \w+ ret/,
    );
  });
});
