import { describe, expect, test } from 'vitest';
import { ProgramBuilder } from '../builder/builder.ts';
import { Exprs, uniqueNode } from '../expr.ts';
import type { KNode, LoopKernel, Program } from '../ir.ts';
import { reduction } from '../../codegen/fixtures/nests.ts';
import { printLoopKernel, printProgram } from '../print.ts';
import { verifyLoopKernel, verifyProgram } from './verify.ts';

function program(body: readonly KNode[]): Program {
  return {
    name: 'bad',
    params: [],
    scalars: [],
    grid: [1, 1, 1],
    group: [1, 1, 1],
    body: body as Program['body'],
    cost: { flops: 0, bytes: 0 },
  };
}

/** A program with one store, and its body to break. */
function example(): { e: Exprs; body: Program['body']; whole: Program } {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 8);
  const y = e.param(1, 'float32', 'write', 8);
  b.loop(8, (i) => b.store(y, i, e.add(b.load(x, i), e.f32(1))));
  const whole = b.build({ name: 'example' });
  return { e, body: whole.body, whole };
}

describe('verifyProgram names what is wrong', () => {
  test('a source after its use, a node outside its block, an open block', () => {
    const { body, whole } = example();
    verifyProgram(whole);
    expect(() => verifyProgram({ ...whole, body: [...body].reverse() })).toThrow(/not defined before it|ends/);
    expect(() => verifyProgram({ ...whole, body: body.slice(0, -1) })).toThrow('1 blocks are not closed');
    const load = body.find((n) => n.op === 'LOAD') as KNode;
    expect(() => verifyProgram({ ...whole, body: [...body, uniqueNode('NEG', 'float32', 1, [load], null)] })).toThrow(
      'source 0 (LOAD)',
    );
  });
  test('dtypes and lanes', () => {
    const e = new Exprs();
    const [f, i] = [e.f32(1), e.i32(1)];
    expect(() => verifyProgram(program([f, i, uniqueNode('ADD', 'float32', 1, [f, i], null)]))).toThrow(
      'one dtype: got float32 and int32',
    );
    expect(() => verifyProgram(program([i, uniqueNode('DIV', 'int32', 1, [i, i], null)]))).toThrow('DIV');
    expect(() => verifyProgram(program([f, uniqueNode('LT', 'float32', 1, [f, f], null)]))).toThrow(
      'cannot be float32',
    );
    const v = e.constant('float32', 1, 4);
    expect(() => verifyProgram(program([f, v, uniqueNode('ADD', 'float32', 4, [v, f], null)]))).toThrow(
      '4 lanes but a source has 1',
    );
  });
  test('memory: constant indices out of range, writes to read-only parameters, gates', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const x = e.param(0, 'float32', 'read', 8);
    b.store(e.param(1, 'float32', 'write', 1), 0, b.load(x, 5, 4));
    expect(() => verifyProgram(b.build({ name: 'far' }))).toThrow('index is in 5 .. 5, allowed is 0 .. 4');
    const c = new ProgramBuilder();
    c.store(c.e.param(0, 'float32', 'read', 8), 0, c.e.f32(1));
    expect(() => verifyProgram(c.build({ name: 'write' }))).toThrow('only read');
  });
});

test('barriers for parts: sizes, and where they stand', () => {
  const meeting = (part: number, threads: number, some = false): Program => {
    const b = new ProgramBuilder();
    const thread = b.e.special('local', 0, threads);
    const meet = (): void => b.barrier(part);
    if (some) b.ifThen(b.e.lt(thread, part), meet);
    else meet();
    b.store(b.e.param(0, 'int32', 'write', threads), thread, thread);
    return b.build({ name: 'meeting', group: [threads, 1, 1] });
  };
  for (const [part, threads] of [
    [2, 8],
    [8, 8],
    [16, 48],
  ] as const)
    verifyProgram(meeting(part, threads));
  for (const [part, threads] of [
    [1, 8],
    [6, 24],
    [16, 8],
    [32, 48],
  ] as const)
    expect(() => verifyProgram(meeting(part, threads))).toThrow(
      `is for parts of ${part} of ${threads} threads: give a power of two that divides them`,
    );
  expect(() => verifyProgram(meeting(4, 8, true))).toThrow('not all threads may enter');
  expect(printProgram(meeting(4, 8))).toContain('BARRIER 4');
});

describe('verifyLoopKernel', () => {
  test('unbound and twice bound ranges', () => {
    const k = reduction('sum', [3, 4], [1]);
    verifyLoopKernel(k);
    const [entry] = k.stores;
    expect(() => verifyLoopKernel({ ...k, stores: [{ store: entry!.store, ranges: [] }] })).toThrow(
      'not bound by the store',
    );
    const own = entry!.store.src[2].src[1] as (typeof entry & object)['ranges'][number];
    expect(() =>
      verifyLoopKernel({ ...k, stores: [{ store: entry!.store, ranges: [...entry!.ranges, own] }] }),
    ).toThrow('loop of its store');
  });

  test('threads that reduce together what is of one of them', () => {
    const e = new Exprs();
    const [x, y] = [e.param(0, 'float32', 'read', 64), e.param(1, 'float32', 'write', 8)];
    const sums = (one: 'local' | 'serial', shared: 'local' | 'reduce'): LoopKernel => {
      const [i, r] = [e.range(8, one), e.range(8, shared)];
      const store = e.store(y, i, e.reduce('sum', e.load(x, e.add(e.mul(i, 8), r)), [r]));
      return { name: 'sums', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
    };
    verifyLoopKernel(sums('local', 'reduce'));
    verifyLoopKernel(sums('serial', 'local'));
    expect(() => verifyLoopKernel(sums('local', 'local'))).toThrow('is of one thread');
  });
});

test('text of kernels and programs', () => {
  expect(printLoopKernel(reduction('sum', [3, 4], [1]))).toBe(`kernel sum
  %0: int32 = RANGE 3 loop
  %1: float32 = PARAM slot 0 write [3]
  %2: float32 = PARAM slot 1 read [12]
  %3: int32 = CONST 4
  %4: int32 = MUL %0 %3
  %5: int32 = RANGE 4 reduce
  %6: int32 = ADD %4 %5
  %7: float32 = LOAD %2 %6
  %8: float32 = REDUCE sum %7 %5
  for %0 in 3 loop: STORE %1 %0 %8`);
  expect(printProgram(example().whole)).toBe(`program example grid 1x1x1 group 1x1x1
  %0: int32 = CONST 8
  %1: float32 = PARAM slot 1 write [8]
  %2: float32 = PARAM slot 0 read [8]
  %3: float32 = CONST 1
  %4: int32 = LOOP %0
    %5: float32 = LOAD %2 %4
    %6: float32 = ADD %5 %3
    STORE %1 %4 %6
  ENDLOOP`);
});
