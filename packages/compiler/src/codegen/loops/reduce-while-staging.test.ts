/** Reductions over a stage are computed while it is filled, but for those that read it elsewhere. */
import { describe, expect, test } from 'vitest';
import { optimize } from './optimize.ts';
import { Exprs } from '../../ir/expr.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { KNode, LoopKernel, Program } from '../../ir/ir.ts';
import { linearize } from '../linearize/linearize.ts';
import { simdCaps, softmax } from '../fixtures/nests.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';

function lowered(kernel: LoopKernel): Program {
  const shaped = optimize(kernel, simdCaps);
  verifyLoopKernel(shaped);
  const program = linearize(shaped, simdCaps);
  verifyProgram(program);
  return program;
}

const loops = (program: Program): number => program.body.filter((n) => n.op === 'LOOP').length;

/** out[i, j] = (y[i, j] - f(i)) over a stage of y[i, s] = 2 x[i, s], where f reduces `term` of the stage over r. */
function staged(
  rows: number,
  columns: number,
  term: (e: Exprs, read: (at: KNode) => KNode, r: KNode) => KNode,
): LoopKernel {
  const e = new Exprs();
  const [i, j, s, r] = [e.range(rows), e.range(columns), e.range(columns, 'reduce'), e.range(columns, 'reduce')];
  const input = e.param(1, 'float32', 'read', rows * columns);
  const at = (q: KNode): KNode => e.add(e.mul(i, e.i32(columns)), q);
  const stage = e.stage('shared', e.mul(e.load(input, at(s)), e.f32(2)), [s]);
  const sum = e.reduce(
    'sum',
    term(e, (q) => e.load(stage, q), r),
    [r],
  );
  const out = e.param(0, 'float32', 'write', rows * columns);
  const value = e.sub(e.load(stage, j), sum);
  return {
    name: 'staged',
    params: [out, input],
    scalars: [],
    stores: [{ store: e.store(out, at(j), value), ranges: [i, j] }],
  };
}

/** A sum inside the sum: both could be taken while the stage is filled, not with the same loop. */
function timesSumBefore(e: Exprs, read: (at: KNode) => KNode, r: KNode): KNode {
  const before = e.range(64, 'reduce');
  return e.mul(read(r), e.reduce('sum', e.where(e.lt(before, r), read(before), e.f32(0)), [before]));
}

describe('reductions over a stage', () => {
  test('are left where a loop inside them, under another one, has the name of the stage', () => {
    // out[j] = y[j] - sum_r y[r] sum_q (r < q) sum_s x[s] (s < q), where y is staged over s too.
    const n = 4;
    const e = new Exprs();
    const [j, s, r, q] = [e.range(n), e.range(n, 'reduce'), e.range(n, 'reduce'), e.range(n, 'reduce')];
    const input = e.param(1, 'float32', 'read', n);
    const stage = e.stage('shared', e.mul(e.load(input, s), e.f32(2)), [s]);
    const below = e.reduce('sum', e.where(e.lt(s, q), e.load(input, s), e.f32(0)), [s]);
    const above = e.reduce('sum', e.where(e.lt(r, q), below, e.f32(0)), [q]);
    const sum = e.reduce('sum', e.mul(e.load(stage, r), above), [r]);
    const out = e.param(0, 'float32', 'write', n);
    const store = e.store(out, j, e.sub(e.load(stage, j), sum));
    const program = lowered({
      name: 'nested',
      params: [out, input],
      scalars: [],
      stores: [{ store, ranges: [j] }],
    });
    const x = Float32Array.from([3, 1, 4, 1]);
    const got = new Float32Array(n);
    interpret(program, [got, x]);
    const y = Array.from(x, (v) => 2 * v);
    const prefix = (end: number): number => Array.from(x.subarray(0, end)).reduce((a, v) => a + v, 0);
    const expected = y.reduce((total, v, row) => {
      let inner = 0;
      for (let col = row + 1; col < n; col++) inner += prefix(col);
      return total + v * inner;
    }, 0);
    expect(Array.from(got)).toEqual(y.map((v) => v - expected));
  });

  // One loop is over the rows. Each pass has one over four vectors, others over what is left if that is more than one step.
  test.each([
    { columns: 64, count: 4 },
    { columns: 67, count: 4 },
    { columns: 300, count: 7 },
  ])('softmax of rows of $columns goes through them three times', ({ columns, count }) => {
    const rows = 5;
    const x = Float32Array.from({ length: rows * columns }, (_, k) => ((k * 37) % 101) / 20 - 2);
    const program = lowered(softmax(rows, columns, 1, true));
    expect(loops(program)).toBe(count);
    const out = new Float32Array(rows * columns);
    interpret(program, [out, x]);
    for (let i = 0; i < rows; i++) {
      const row = Array.from(x.subarray(i * columns, (i + 1) * columns));
      const top = Math.max(...row);
      const total = row.reduce((sum, v) => sum + Math.exp(v - top), 0);
      for (const [k, v] of row.entries()) expect(out[i * columns + k]).toBeCloseTo(Math.exp(v - top) / total, 7);
    }
  });

  test.each<
    [string, (e: Exprs, read: (at: KNode) => KNode, r: KNode) => KNode, (y: number[], k: number) => number, number]
  >([
    ['its squares', (e, read, r) => e.mul(read(r), read(r)), (y, k) => y[k]! * y[k]!, 2],
    [
      'its products with the sums before them',
      timesSumBefore,
      (y, k) => y[k]! * y.slice(0, k).reduce((a, b) => a + b, 0),
      4,
    ],
    ['it backwards', (e, read, r) => e.mul(read(r), read(e.sub(e.i32(63), r))), (y, k) => y[k]! * y[63 - k]!, 3],
  ])('a sum of %s', (_, term, want, expectedLoops) => {
    const [rows, columns] = [3, 64];
    const x = Float32Array.from({ length: rows * columns }, (_, k) => ((k * 29) % 17) - 8);
    const program = lowered(staged(rows, columns, term));
    expect(loops(program)).toBe(expectedLoops + 1);
    const out = new Float32Array(rows * columns);
    interpret(program, [out, x]);
    for (let i = 0; i < rows; i++) {
      const y = Array.from(x.subarray(i * columns, (i + 1) * columns), (v) => 2 * v);
      const sum = y.reduce((s, __, k) => s + want(y, k), 0);
      for (const [k, v] of y.entries()) expect(out[i * columns + k]).toBe(v - sum);
    }
  });
});
