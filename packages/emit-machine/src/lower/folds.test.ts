/** Which trees of lanes become operations on halves of vectors; that results are right is tested where code runs. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';
import type { MachineTarget } from '../target.ts';

const widest: MachineTarget = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192 };

type Combine = (x: KNode, y: KNode) => KNode;

/** The tree of every `step`th value from `first` on. */
function tree(values: readonly KNode[], combine: Combine, first = 0, step = 1): KNode {
  if (step === values.length) return values[first]!;
  return combine(tree(values, combine, first, step * 2), tree(values, combine, first + step, step * 2));
}

/** Names of instructions of a program that reads a vector and writes what `write` makes of its lanes. */
function names(
  lanes: number,
  write: (b: ProgramBuilder, lanes: readonly KNode[], store: (value: KNode) => void) => void,
  target = widest,
  dtype: 'float32' | 'int32' = 'float32',
): string[] {
  const b = new ProgramBuilder();
  const { e } = b;
  const [from, to] = [e.param(0, dtype, 'read', 64), e.param(1, dtype, 'write', 8)];
  const vector = b.load(from, e.i32(0), lanes);
  let at = 0;
  write(
    b,
    Array.from({ length: lanes }, (_, i) => e.lane(vector, i)),
    (value) => b.store(to, e.i32(at++), value),
  );
  const { text } = emitMachineCode(b.build({ name: 'folds', params: [from, to] }), target, true);
  return text.split('\n').map((line) => line.trim().split(' ')[0]!);
}
const count = (all: readonly string[], name: RegExp): number => all.filter((one) => name.test(one)).length;

describe('lanes of a vector', () => {
  it.each([
    { lanes: 4, vectors: 1 },
    { lanes: 8, vectors: 2 },
    { lanes: 16, vectors: 3 },
    { lanes: 32, vectors: 4 },
  ])('are added up by halves: $lanes', ({ lanes, vectors }) => {
    const made = names(lanes, ({ e }, all, store) => store(tree(all, (x, y) => e.add(x, y))));
    expect(count(made, /^vaddps$/)).toBe(vectors);
    expect(count(made, /^vaddss$/)).toBe(1);
  });

  it('are added up by halves on arm64', () => {
    const target: MachineTarget = { isa: 'arm64', vectorBytes: 16, sharedBytes: 65536, scalarOffset: 8192 };
    const made = names(8, ({ e }, all, store) => store(tree(all, (x, y) => e.add(x, y))), target);
    // Two vectors, their halves, and two lanes.
    expect(count(made, /^fadd$/)).toBe(3);
  });

  it('are compared by halves where they are positions; sums of integers are not', () => {
    const least = names(16, ({ e }, all, store) => store(tree(all, (x, y) => e.min(x, y))), widest, 'int32');
    expect(count(least, /^vpminsd$/)).toBe(3);
    const sum = names(16, ({ e }, all, store) => store(tree(all, (x, y) => e.add(x, y))), widest, 'int32');
    expect(count(sum, /^vpaddd$/)).toBe(0);
  });

  it('are added up one by one in another order', () => {
    const made = names(16, ({ e }, all, store) => store(all.reduce((x, y) => e.add(x, y))));
    expect(count(made, /^vaddps$/)).toBe(0);
    expect(count(made, /^vaddss$/)).toBe(15);
  });

  it('are added up one by one where another value needs a part', () => {
    const made = names(8, ({ e }, all, store) => {
      const [even, odd] = [tree(all, (x, y) => e.add(x, y), 0, 2), tree(all, (x, y) => e.add(x, y), 1, 2)];
      store(e.add(even, odd));
      store(even);
    });
    expect(count(made, /^vaddss$/)).toBe(7);
  });

  it('are added up one by one where a store stands between', () => {
    const made = names(8, ({ e }, all, store) => {
      const even = tree(all, (x, y) => e.add(x, y), 0, 2);
      store(all[1]!);
      store(
        e.add(
          even,
          tree(all, (x, y) => e.add(x, y), 1, 2),
        ),
      );
    });
    expect(count(made, /^vaddss$/)).toBe(7);
  });
});

describe('neighbours in memory', () => {
  const stored = (between: boolean): string[] => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [from, to] = [e.param(0, 'float32', 'read', 64), e.param(1, 'float32', 'write', 8)];
    const parts = b.shared('parts', 'float32', 64);
    b.store(parts, e.i32(0), b.load(from, e.i32(0), 16));
    const values = Array.from({ length: 16 }, (_, i) => {
      const value = b.load(parts, e.i32(i + 3));
      if (between && i === 7) b.store(parts, e.i32(4), b.load(from, e.i32(20)));
      return value;
    });
    b.store(
      to,
      e.i32(0),
      tree(values, (x, y) => e.add(x, y)),
    );
    return emitMachineCode(b.build({ name: 'folds', params: [from, to] }), widest, true)
      .text.split('\n')
      .map((line) => line.trim().split(' ')[0]!);
  };

  it('are loaded as a vector', () => {
    expect(count(stored(false), /^vaddps$/)).toBe(3);
  });

  it('are loaded one by one where some are written between', () => {
    expect(count(stored(true), /^vaddps$/)).toBe(0);
  });
});
