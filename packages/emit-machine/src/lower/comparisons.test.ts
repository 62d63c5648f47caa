/** Which comparisons are made where they are asked for, and which flags are still known; that results are right is tested where code runs. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';
import type { MachineTarget } from '../target.ts';
import { Flags } from '../x64/flags.ts';
import { rowOf } from '../x64/rows.ts';

const target: MachineTarget = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192 };

/** Names of instructions of a program that reads two numbers and writes what `write` says. */
function names(write: (b: ProgramBuilder, x: KNode, y: KNode, store: (value: KNode) => void) => void): string[] {
  const b = new ProgramBuilder();
  const { e } = b;
  const [from, to] = [e.param(0, 'int32', 'read', 2), e.param(1, 'int32', 'write', 4)];
  let at = 0;
  write(b, b.load(from, e.i32(0)), b.load(from, e.i32(1)), (value) => b.store(to, e.i32(at++), value));
  const { text } = emitMachineCode(b.build({ name: 'compares', params: [from, to] }), target, true);
  return text.split('\n').map((line) => line.trim().split(' ')[0]!);
}
const count = (all: readonly string[], name: RegExp): number => all.filter((one) => name.test(one)).length;

describe('comparisons of integers', () => {
  it('are made once for all choices that ask, without a bool', () => {
    const made = names(({ e }, x, y, store) => {
      const less = e.lt(x, y);
      store(e.where(less, x, y));
      store(e.where(less, y, x));
    });
    expect(count(made, /^set/)).toBe(0);
    expect(count(made, /^cmovl$/)).toBe(2);
    // The other one ends the loop over groups.
    expect(count(made, /^cmp$/)).toBe(2);
  });

  it('are bools where somebody else asks too', () => {
    const made = names(({ e }, x, y, store) => {
      const less = e.lt(x, y);
      store(e.where(less, x, y));
      store(e.cast(less, 'int32'));
    });
    expect(count(made, /^setl$/)).toBe(1);
  });

  it('are bools where a register that is compared is written between those who ask', () => {
    const write = (between: boolean): string[] =>
      names((b, x, y, store) => {
        const { e } = b;
        const cell = b.reg('cell', 'int32');
        b.store(cell, e.i32(0), x);
        const less = e.lt(b.load(cell, e.i32(0)), y);
        store(e.where(less, y, e.i32(3)));
        if (between) b.store(cell, e.i32(0), e.i32(4));
        store(e.where(less, e.i32(5), y));
        store(b.load(cell, e.i32(0)));
      });
    expect(count(write(false), /^set/)).toBe(0);
    expect(count(write(false), /^cmovl$/)).toBe(2);
    expect(count(write(true), /^setl$/)).toBe(1);
    expect(count(write(true), /^cmovl$/)).toBe(0);
  });

  it('decide whether is stored, once for stores that follow under one condition', () => {
    const made = names((b, x, y) => {
      const { e } = b;
      const to = e.param(1, 'int32', 'write', 4);
      const [less, other] = [e.lt(x, y), e.lt(y, x)];
      for (const [at, gate] of [less, less, other].entries()) b.store(to, e.i32(at), x, gate);
    });
    expect(count(made, /^(set|test)/)).toBe(0);
    expect(count(made, /^cmp$/)).toBe(3);
    expect(count(made, /^jge$/)).toBe(2);
  });

  it('take a constant on either side', () => {
    const made = names(({ e }, x, y, store) => store(e.where(e.lt(e.i32(7), x), x, y)));
    expect(count(made, /^cmovg$/)).toBe(1);
  });
});

describe('flags', () => {
  const [cmp, test, mov, add, and] = ['cmp', 'test', 'mov', 'add', 'and'].map(rowOf) as [
    ReturnType<typeof rowOf>,
    ReturnType<typeof rowOf>,
    ReturnType<typeof rowOf>,
    ReturnType<typeof rowOf>,
    ReturnType<typeof rowOf>,
  ];

  it('hold a comparison until they, or one of its registers, are written', () => {
    const flags = new Flags();
    expect(flags.pass(cmp, 4, [1, 2])).toBe(false);
    expect(flags.pass(mov, 8, [3, 1])).toBe(false);
    expect(flags.pass(cmp, 4, [1, 2])).toBe(true);
    expect(flags.pass(cmp, 8, [1, 2])).toBe(false);
    expect(flags.pass(cmp, 8, [2, 1])).toBe(false);
    for (const change of [() => flags.pass(mov, 8, [1, 3]), () => flags.pass(add, 4, [5, 6]), () => flags.forget()]) {
      flags.pass(cmp, 4, [1, 2]);
      change();
      expect(flags.pass(cmp, 4, [1, 2])).toBe(false);
    }
    // A vector of the same number is another register.
    flags.pass(cmp, 4, [1, 2]);
    flags.pass(rowOf('vmovss'), 16, [1, 0]);
    expect(flags.pass(cmp, 4, [1, 2])).toBe(true);
  });

  it('hold what a test of the last AND finds, and nothing of memory', () => {
    const flags = new Flags();
    flags.pass(and, 4, [1, 2]);
    expect(flags.pass(test, 4, [1, 1])).toBe(true);
    const memory = { base: 3, index: -1, scale: 1, offset: 0 };
    flags.pass(cmp, 4, [1, memory]);
    expect(flags.pass(cmp, 4, [1, memory])).toBe(false);
  });
});

describe('comparisons of floats', () => {
  const listed = (write: (b: ProgramBuilder, x: KNode, y: KNode, store: (value: KNode) => void) => void): string[] => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [from, to] = [e.param(0, 'float32', 'read', 32), e.param(1, 'float32', 'write', 64)];
    let at = 0;
    write(b, b.load(from, e.i32(0), 16), b.load(from, e.i32(16), 16), (value) => b.store(to, e.i32(16 * at++), value));
    const { text } = emitMachineCode(b.build({ name: 'extrema', params: [from, to] }), target, true);
    return text.split('\n').map((line) => line.trim().split(' ')[0]!);
  };

  it('are not made for a choice that is one instruction', () => {
    const made = listed(({ e }, x, y, store) => store(e.where(e.lt(x, y), y, x)));
    expect(count(made, /^vmaxps$/)).toBe(1);
    expect(count(made, /^vcmp/)).toBe(0);
  });

  it('are made where they are stored', () => {
    const made = listed(({ e }, x, y, store) => store(e.cast(e.lt(x, y), 'float32')));
    expect(count(made, /^vcmp/)).toBe(1);
    const b = new ProgramBuilder();
    const { e } = b;
    const [from, to] = [e.param(0, 'float32', 'read', 32), e.param(1, 'bool', 'write', 16)];
    b.store(to, e.i32(0), e.lt(b.load(from, e.i32(0), 16), b.load(from, e.i32(16), 16)));
    const { text } = emitMachineCode(b.build({ name: 'less', params: [from, to] }), target, true);
    expect(text).toMatch(/vcmp/);
  });

  it('are made where somebody else asks too', () => {
    const made = listed(({ e }, x, y, store) => {
      const less = e.lt(x, y);
      store(e.where(less, y, x));
      store(e.where(less, x, e.constant('float32', 3, 16)));
    });
    expect(count(made, /^vcmp/)).toBe(1);
  });
});
