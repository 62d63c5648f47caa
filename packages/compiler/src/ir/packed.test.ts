import { describe, expect, it } from 'vitest';
import { randomProgram } from '@polygrad/testing';
import { ProgramBuilder } from './builder/builder.ts';
import type { Program } from './ir.ts';
import { packProgram, sameCode } from './packed.ts';
import { unpackProgram } from './unpacked.ts';
import { printProgram } from './print.ts';
import { verifyProgram } from './verify/verify.ts';

/** `out[i] = k * i` for `length` elements. */
function line(k: number, length: number, name = 'line', grid = 1): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const out = e.param(0, 'int32', 'write', length);
  b.loop(4, (i) => b.store(out, e.add(i, e.special('group', 0, grid)), e.mul(i, k)));
  return b.build({ name, grid: [grid, 1, 1] });
}

describe('packed programs', () => {
  it('are the same programs when unpacked', () => {
    for (let seed = 0; seed < 60; seed++) {
      const { program } = randomProgram(seed);
      const packed = packProgram(program);
      const again = unpackProgram(packed);
      expect(printProgram(again)).toBe(printProgram(program));
      expect({ ...again, params: [], body: [] }).toEqual({ ...program, params: [], body: [] });
      expect(again.params.map(({ arg }) => arg)).toEqual(program.params.map(({ arg }) => arg));
      verifyProgram(again);
      expect(sameCode(packed, packProgram(again))).toBe(true);
    }
  });

  it('are the same code whatever they are called and however long their tensors are', () => {
    const packed = packProgram(line(3, 4));
    expect(sameCode(packed, packProgram(line(3, 4)))).toBe(true);
    expect(sameCode(packed, packProgram(line(3, 99, 'other')))).toBe(true);
    expect(sameCode(packed, packProgram(line(5, 4)))).toBe(false);
    expect(sameCode(packed, packProgram(line(3, 4, 'line', 2)))).toBe(false);
  });

  it('are other code where what is known of signs differs, or the kind of zero, or memory of the group', () => {
    const sum = (low: number, zero: number, length: number): Program => {
      const b = new ProgramBuilder();
      const { e } = b;
      const out = e.param(0, 'float32', 'write', 4);
      const shared = b.shared('shared', 'float32', length);
      b.store(shared, e.i32(0), e.f32(zero));
      const at = low < 0 ? e.scalar(0, 'int32') : e.special('group', 0, 4);
      b.store(out, at, b.load(shared, e.i32(0)));
      return b.build({ name: 'sum' });
    };
    const packed = packProgram(sum(0, 0, 4));
    expect(sameCode(packed, packProgram(sum(0, 0, 4)))).toBe(true);
    expect(sameCode(packed, packProgram(sum(-1, 0, 4)))).toBe(false);
    expect(sameCode(packed, packProgram(sum(0, -0, 4)))).toBe(false);
    expect(sameCode(packed, packProgram(sum(0, 0, 8)))).toBe(false);
  });
});
