/** Reductions that a group's threads share, by subgroups of several sizes whose threads are neighbours or not. */
import { describe, expect, it } from 'vitest';
import type { EngineCaps } from '@polygrad/core/engine';
import { groupCases, programDifference } from '@polygrad/testing';
import type { TypedArray } from '../../shape/dtype.ts';
import { optimize } from '../loops/optimize.ts';
import { ProgramBuilder } from '../../ir/builder/builder.ts';
import { Exprs, uniqueNode } from '../../ir/expr.ts';
import { check } from '../fixtures/lowered.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { KNode, Program } from '../../ir/ir.ts';
import { linearize } from './linearize.ts';
import { layerNorm, reduction, simdCaps } from '../fixtures/nests.ts';
import { printProgram } from '../../ir/print.ts';
import { verifyProgram } from '../../ir/verify/verify.ts';

const groups: EngineCaps = { ...simdCaps, simt: true, vectorBytes: 16, maxGroup: 256, sharedBytes: 16384 };
const withSubgroups = (least: number, most = least, numbered = true): EngineCaps => ({
  ...groups,
  subgroups: { least, most, numbered },
});
const count = (p: Program, op: KNode['op']): number => p.body.filter((n) => n.op === op).length;

describe('threads of a group', () => {
  it.each([1, 4, 8, 32, 64, 128])('reduce by subgroups of %s, whichever threads form them', (size) => {
    for (const c of groupCases(withSubgroups(size))) {
      verifyProgram(c.program);
      for (const dealt of [false, true]) {
        const data = c.data.map((a) => a.slice());
        interpret(c.program, data, [], { size, dealt });
        expect(programDifference(c, data, c.expected as readonly TypedArray[], { zeroSign: true }), c.name).toBe(null);
      }
    }
  });

  it('of one subgroup need no group memory and no barrier', () => {
    const rows = { least: 32, most: 32, numbered: false };
    const shaped = (caps: EngineCaps): Program => linearize(optimize(reduction('max', [40_000, 64], [1]), caps), caps);
    const p = shaped({ ...groups, subgroups: rows });
    expect([count(p, 'SUBGROUP'), count(p, 'BARRIER'), count(p, 'SHARED')]).toEqual([1, 0, 0]);
    // Sizes that are not fixed, and no numbers: as without subgroups.
    for (const subgroups of [undefined, { least: 16, most: 32, numbered: false }])
      expect(count(shaped({ ...groups, subgroups }), 'SUBGROUP')).toBe(0);
    const several = shaped({ ...groups, subgroups: { least: 16, most: 32, numbered: true } });
    expect([count(several, 'SUBGROUP'), count(several, 'BARRIER'), count(several, 'SHARED')]).toEqual([1, 2, 1]);
  });

  it('give what the nest gives, rows kept in registers, NaN among them', () => {
    for (const caps of [withSubgroups(4), withSubgroups(32), { ...withSubgroups(8), sharedIsMemory: true }]) {
      for (const op of ['sum', 'max', 'argmin'] as const)
        check(reduction(op, [3, 1000], [1]), caps, 1e-5, (a) => {
          if (a.length > 1500) a[1500] = Number.NaN;
        });
      check(layerNorm(2, 1000), caps, 1e-5);
    }
  });
});

describe('SUBGROUP', () => {
  const program = (body: readonly KNode[]): Program => ({
    name: 'bad',
    params: [],
    scalars: [],
    grid: [1, 1, 1],
    group: [8, 1, 1],
    body: body as Program['body'],
    cost: { flops: 0, bytes: 0 },
  });

  it('takes scalars of four bytes, maxima integers', () => {
    const e = new Exprs();
    const bad = (x: KNode, op: 'sum' | 'max'): void =>
      verifyProgram(program([x, uniqueNode('SUBGROUP', x.dtype, x.lanes, [x], { op })]));
    bad(e.f32(1), 'sum');
    bad(e.i32(1), 'max');
    expect(() => bad(e.f32(1), 'max')).toThrow('max takes integers');
    expect(() => bad(e.constant('float64', 1), 'sum')).toThrow('a scalar of four bytes: got float64');
    expect(() => bad(e.constant('float32', 1, 4), 'sum')).toThrow('float32 x 4');
  });

  it('stands where all threads get to', () => {
    const inside = (kind: 'local' | 'leader' | 'subgroup' | 'group' | 'subgroups'): Program => {
      const b = new ProgramBuilder();
      const { e } = b;
      const y = e.param(0, 'float32', 'write', 8);
      b.ifThen(e.lt(e.special(kind, 0), e.i32(1)), () => {
        b.store(y, e.special('local', 0, 8), b.subgroup('sum', e.scalar(0, 'float32')));
      });
      return b.build({ name: 'inside', group: [8, 1, 1] });
    };
    for (const kind of ['group', 'subgroups'] as const) verifyProgram(inside(kind));
    for (const kind of ['local', 'leader', 'subgroup'] as const)
      expect(() => verifyProgram(inside(kind)), kind).toThrow('in a block that not all threads may enter');
    expect(printProgram(inside('group'))).toContain('= SUBGROUP sum %');
  });

  it('of a literal is the literal, for maxima and minima', () => {
    const b = new ProgramBuilder();
    const five = b.e.i32(5);
    expect([b.subgroup('max', five), b.subgroup('min', five)]).toEqual([five, five]);
    expect(b.subgroup('sum', five).op).toBe('SUBGROUP');
  });
});
