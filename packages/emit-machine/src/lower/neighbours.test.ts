/** Which gathered elements are read as rows; that results are right is tested where code runs. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';

/** How many loads of single elements, and of vectors, a program has that writes vectors of what is at some places. */
function loadsOf(
  vectors: readonly (readonly number[])[],
  gated: boolean,
): { readonly single: number; readonly wide: number } {
  const b = new ProgramBuilder();
  const { e } = b;
  const [from, to] = [e.param(0, 'float32', 'read', 4096), e.param(1, 'float32', 'write', 4096)];
  b.loop(e.i32(8), (i) => {
    const gate = gated ? e.lt(e.i32(2), i) : undefined;
    vectors.forEach((places, at) => {
      const lanes = places.map((place): KNode => b.load(from, e.add(e.mul(i, 64), place), 1, gate, gate && e.f32(0)));
      b.store(to, e.add(e.mul(i, 64), at * 16), e.vec(lanes));
    });
  });
  const target = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192 } as const;
  const { text } = emitMachineCode(b.build({ name: 'rows', params: [from, to] }), target, true);
  const lines = text.split('\n');
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
  return { single: count(/vmovss xmm\d+,DWORD/), wide: count(/vmovups [xyz]mm\d+,[XYZ]MMWORD PTR \[(?!constants)/) };
}

const steps = (from: number, step: number): readonly number[] => Array.from({ length: 16 }, (_, k) => from + k * step);

describe('elements near each other', () => {
  it.each([false, true])('are read as rows, whether there is a gate: %s', (gated) => {
    expect(loadsOf([steps(0, 2)], gated)).toEqual({ single: 0, wide: 2 });
  });

  it('of sixteen rows are squares, the last of which ends where rows end', () => {
    // Elements 0, 2, 4 and 6 of rows that are 128 apart.
    const { single } = loadsOf(
      [0, 2, 4, 6].map((from) => steps(from, 128)),
      false,
    );
    expect(single).toBe(0);
  });
});
