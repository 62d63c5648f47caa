/** Races that are found without data: against the interpreter, which sees every access, and by hand. */
import { describe, expect, it } from 'vitest';
import { interpret } from '../../interpreter/interpret.ts';
import { ProgramBuilder } from '../builder/builder.ts';
import type { KNode, Program } from '../ir.ts';
import { verifyShared } from './races.ts';

/** Numbers below `n`, drawn from a seed (mulberry32). */
function drawing(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const length = 16;

/**
 * A program of loads, stores, atomics, conditions, loops, registers and barriers, where nothing depends on data. `parts`: some barriers are for parts
 * of the group.
 */
function randomProgram(seed: number, threads: number, parts: readonly (number | null)[]): Program {
  const draw = drawing(seed);
  const b = new ProgramBuilder();
  const { e } = b;
  const y = e.param(0, 'int32', 'write', threads);
  const memory = b.shared('s', 'int32', length);
  const thread = e.special('local', 0, threads);
  const register = b.reg('r', 'int32');
  b.store(register, 0, e.i32(0));
  b.loop(length / threads, (i) => b.store(memory, e.add(e.mul(i, threads), thread), e.i32(1)));
  b.barrier();
  const index = (counter: KNode): KNode => {
    const own = e.mul(thread, [0, 1, 1, 4, 4][draw(5)]!);
    const turn = e.mul(counter, draw(3));
    const held = draw(3) === 0 ? b.load(register, 0) : e.i32(draw(4));
    return e.irem(e.add(e.add(own, turn), held), length);
  };
  const statements = (depth: number, counter: KNode): void => {
    for (let count = 2 + draw(3); count > 0; count--) {
      const kind = draw(depth > 2 ? 5 : 8);
      if (kind === 0) b.store(memory, index(counter), e.i32(seed), draw(2) === 0 ? e.lt(thread, draw(5)) : undefined);
      else if (kind === 1) b.store(y, thread, b.load(memory, index(counter)));
      else if (kind === 2) b.atomic('add', memory, index(counter), thread);
      else if (kind === 3) b.store(register, 0, e.add(b.load(register, 0), draw(2) === 0 ? thread : e.i32(1)));
      else if (kind === 4 || kind === 5) b.barrier(parts[draw(parts.length)]!);
      else if (kind === 6) b.loop(2 + draw(2), (i) => statements(depth + 1, i));
      else
        b.ifThen(e.eq(e.irem(e.add(thread, draw(3)), 2), 0), () => {
          b.store(memory, index(counter), e.i32(2));
          b.store(register, 0, e.i32(draw(4)));
        });
    }
  };
  statements(0, e.i32(0));
  b.store(y, thread, b.load(register, 0));
  return b.build({ name: `random${seed}`, group: [threads, 1, 1] });
}

const races = (run: () => void): boolean => {
  try {
    run();
    return false;
  } catch (error) {
    if (/race|without a barrier between/.test((error as Error).message)) return true;
    throw error;
  }
};

describe('races in group memory', () => {
  it.each([
    ['for all', 4, [null]],
    ['for parts', 8, [null, 2, 4, 8]],
  ] as const)(
    'are those that the interpreter finds, where nothing depends on data and barriers are %s',
    (_, threads, parts) => {
      let found = 0;
      for (let seed = 1; seed <= 600; seed++) {
        const program = randomProgram(seed, threads, parts);
        const expected = races(() => interpret(program, [new Int32Array(threads)]));
        expect(
          races(() => verifyShared(program)),
          `seed ${seed}`,
        ).toBe(expected);
        if (expected) found++;
      }
      expect(found).toBeGreaterThan(100);
      expect(found).toBeLessThan(590);
    },
  );

  /** Threads write what a thread so far away reads, with barriers for parts between. */
  const shifted = (distance: number, ...parts: readonly (number | null)[]): Program => {
    const b = new ProgramBuilder();
    const { e } = b;
    const thread = e.special('local', 0, 8);
    const memory = b.shared('s', 'int32', 8);
    b.store(memory, thread, thread);
    for (const part of parts) b.barrier(part);
    b.store(e.param(0, 'int32', 'write', 8), thread, b.load(memory, e.xor(thread, distance)));
    return b.build({ name: 'shifted', group: [8, 1, 1] });
  };

  it.each([
    [1, [2], true],
    [2, [2], false],
    [2, [4], true],
    [3, [4], true],
    [4, [4], false],
    [4, [2, 4], false],
    [4, [4, null], true],
    [7, [8], true],
  ] as const)(
    'between threads %d apart, with barriers for parts of %j: in order is %s',
    (distance, parts, isOrdered) => {
      const program = shifted(distance, ...parts);
      expect(races(() => verifyShared(program))).toBe(!isOrdered);
      expect(races(() => interpret(program, [new Int32Array(8)]))).toBe(!isOrdered);
    },
  );

  it('between parts that one barrier after the other brings together are none', () => {
    // Thread 0 writes; thread 1 reads it, and leaves it to thread 2.
    const program = (second: number): Program => {
      const b = new ProgramBuilder();
      const { e } = b;
      const thread = e.special('local', 0, 4);
      const memory = b.shared('s', 'int32', 1);
      b.ifThen(e.eq(thread, 0), () => b.store(memory, 0, e.i32(5)));
      b.barrier(2);
      b.ifThen(e.eq(thread, 1), () => b.store(memory, 0, e.i32(6)));
      b.barrier(second);
      b.store(e.param(0, 'int32', 'write', 4), thread, b.load(memory, 0));
      return b.build({ name: 'handed', group: [4, 1, 1] });
    };
    const out = new Int32Array(4);
    interpret(program(4), [out]);
    expect([...out]).toEqual([6, 6, 6, 6]);
    expect(() => interpret(program(2), [out])).toThrow(/race: threads 0 and 2 touch s\[0\] without a barrier between/);
    expect(() => verifyShared(program(4))).not.toThrow();
    expect(() => verifyShared(program(2))).toThrow(/LOAD of thread 2 reads element 0 .* which thread 0 writes/);
  });

  /** One thread of a group, which `chosen` says, writes an element that all read. */
  function elected(chosen: (b: ProgramBuilder, thread: KNode) => KNode, barrier: boolean): Program {
    const b = new ProgramBuilder();
    const { e } = b;
    const thread = e.special('local', 0, 8);
    const memory = b.shared('s', 'int32', 1);
    b.ifThen(chosen(b, thread), () => b.store(memory, 0, thread));
    if (barrier) b.barrier();
    b.store(e.param(0, 'int32', 'write', 8), thread, b.load(memory, 0));
    return b.build({ name: 'elected', group: [8, 1, 1] });
  }

  it('name the threads, the element and the node', () => {
    const first = (b: ProgramBuilder, thread: KNode): KNode => b.e.eq(thread, 0);
    expect(() => verifyShared(elected(first, true))).not.toThrow();
    expect(() => verifyShared(elected(first, false))).toThrow(
      /\[verify\] elected: LOAD of thread 1 reads element 0 of group memory, which thread 0 writes, without a barrier between/,
    );
  });

  it('that data may avoid pass', () => {
    const byData = (b: ProgramBuilder, thread: KNode): KNode =>
      b.e.eq(thread, b.load(b.e.param(1, 'int32', 'read', 1), 0));
    expect(() => verifyShared(elected(byData, false))).not.toThrow();
  });

  it('are found after kernels passed that differ in a group index, in a gate, or in the length of group memory', () => {
    const program = (least: number, most: number, length: number, at: number): Program => {
      const b = new ProgramBuilder();
      const { e } = b;
      const thread = e.special('local', 0, 8);
      const memory = b.shared('s', 'int32', length);
      const open = e.and(e.lt(thread, most), e.le(least, thread));
      b.store(memory, e.irem(thread, length), thread, open);
      b.store(e.param(0, 'int32', 'write', 64), e.add(thread, at), b.load(memory, thread));
      return b.build({ name: 'differing', group: [8, 1, 1] });
    };
    for (const at of [0, 8, 56]) expect(() => verifyShared(program(0, 8, 8, at))).not.toThrow();
    expect(() => verifyShared(program(4, 5, 4, 0))).toThrow(/LOAD of thread 0 reads element 0/);
    expect(() => verifyShared(program(0, 1, 4, 0))).not.toThrow();
    expect(() => verifyShared(program(0, 8, 4, 8))).toThrow(/STORE of thread 4 writes element 0/);
  });

  it('are looked for as long as that is quick', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const thread = e.special('local', 0, 64);
    const memory = b.shared('s', 'int32', 64);
    b.loop(2 ** 30, (i) => b.store(memory, e.irem(e.add(thread, e.mul(i, 0)), 64), i));
    const program = b.build({ name: 'long', group: [64, 1, 1] });
    expect(() => verifyShared(program)).not.toThrow();
  });
});
