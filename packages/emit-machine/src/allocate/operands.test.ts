/** Which loads become operands in memory; that results are right is tested where code runs. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';
import type { MachineTarget } from '../target.ts';

const widest: MachineTarget = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192 };

interface Parts {
  readonly b: ProgramBuilder;
  readonly element: KNode;
  readonly vector: KNode;
  readonly sum: KNode;
  readonly store: (value: KNode) => void;
}

/** The instructions of a program that adds products of an element and vectors. */
function listing(write: (parts: Parts) => void, target = widest, lanes = 16): string[] {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 256);
  const to = e.param(1, 'float32', 'readwrite', 256);
  let at = 0;
  const store = (value: KNode): void => b.store(to, e.i32(lanes * at++), value);
  const vector = b.load(x, e.i32(0), lanes);
  const sum = b.load(x, e.i32(lanes), lanes);
  write({ b, element: b.load(to, e.i32(200)), vector, sum, store });
  const { text } = emitMachineCode(b.build({ name: 'operands', params: [x, to] }), target, true);
  return text.split('\n').map((line) => line.trim());
}

const count = (all: readonly string[], text: string | RegExp): number =>
  all.filter((line) => line.match(text) !== null).length;

describe('an element in all lanes', () => {
  it.each([
    ['its only factor', 64 as const, 16],
    ['a factor in half as many lanes', 64 as const, 8],
  ])('is an operand in memory: %s', (_name, vectorBytes, lanes) => {
    const target = { ...widest, vectorBytes };
    const made = listing(
      ({ b: { e }, element, vector, sum, store }) => store(e.ternary('MULADD', e.splat(element, lanes), vector, sum)),
      target,
      lanes,
    );
    expect(count(made, /^vfmadd...ps .*DWORD BCST \[/)).toBe(1);
    expect(count(made, 'vbroadcastss')).toBe(0);
  });

  it('is in a register where two read it', () => {
    const made = listing(({ b: { e }, element, vector, sum, store }) => {
      const all = e.splat(element, 16);
      store(e.ternary('MULADD', all, vector, sum));
      store(e.ternary('MULADD', all, sum, vector));
    });
    expect(count(made, 'BCST')).toBe(0);
    expect(count(made, 'vbroadcastss')).toBe(1);
  });

  it('is in a register where its reader stands behind a store', () => {
    const made = listing(({ b: { e }, element, vector, sum, store }) => {
      store(e.add(vector, vector));
      store(e.ternary('MULADD', e.splat(element, 16), vector, sum));
    });
    expect(count(made, 'BCST')).toBe(0);
    expect(count(made, 'vbroadcastss')).toBe(1);
  });

  it('is in a register with AVX2', () => {
    const made = listing(
      ({ b: { e }, element, vector, sum, store }) => store(e.ternary('MULADD', e.splat(element, 8), vector, sum)),
      { ...widest, isa: 'x64-v3', vectorBytes: 32 },
      8,
    );
    expect(count(made, 'BCST')).toBe(0);
    expect(count(made, 'vbroadcastss')).toBe(1);
  });
});
