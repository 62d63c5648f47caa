/** Reductions of many columns: accumulated in group memory, with the meaning of the nest. */
import { describe, expect, test } from 'vitest';
import { optimize } from './optimize.ts';
import { evaluateNest } from '../../interpreter/evaluate-nest.ts';
import { interpret } from '../../interpreter/interpret.ts';
import { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, Program } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import { linearize } from '../linearize/linearize.ts';
import { flat, layerNorm, reduction, simdCaps, softmax, wideCaps } from '../fixtures/nests.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';

/** Inputs are eighths, so that sums of thousands of them, and of their squares, are exact in any order. */
function check(k: LoopKernel, tolerance = 0, caps = simdCaps): Program {
  verifyLoopKernel(k);
  const shaped = optimize(k, caps);
  verifyLoopKernel(shaped);
  const program = linearize(shaped, caps);
  verifyProgram(program);
  const data = (): Float32Array[] =>
    k.params.map((p) =>
      Float32Array.from(
        { length: p.arg.length },
        (_, i) => Math.round(Math.sin((i + 1) * 12.9898 + p.arg.slot * 78.233) * 24) / 8,
      ),
    );
  const [want, got] = [data(), data()];
  evaluateNest(k, want, [0.5]);
  interpret(program, got, [0.5]);
  want.forEach((a, slot) => {
    a.forEach((x, i) => {
      const y = (got[slot] as Float32Array)[i] as number;
      if (!(Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(x))))
        throw new Error(`slot ${slot}[${i}]: ${x}, got ${y}`);
    });
  });
  return program;
}

function accumulates(p: Program): boolean {
  return p.body.some((n) => n.op === 'SHARED' && n.arg.name === 'columns');
}

describe('reductions of columns', () => {
  test.each<ReduceOp>(['sum', 'max', 'min', 'argmax'])('%s over rows of many shapes', (op) => {
    for (const shape of [
      [100, 700],
      [33, 2001],
      [1027, 64],
      [2100, 33],
      [40, 9000],
    ]) {
      expect(accumulates(check(reduction(op, shape, [0]))), shape.join()).toBe(true);
    }
  });

  test('over the middle axis, over two axes, of squares', () => {
    expect(accumulates(check(reduction('sum', [3, 64, 1100], [1])))).toBe(true);
    expect(accumulates(check(reduction('sum', [6, 35, 500], [0, 1])))).toBe(true);
    expect(accumulates(check(reduction('max', [6, 5, 35, 400], [0, 2])))).toBe(true);
    expect(accumulates(check(reduction('argmin', [6, 35, 500], [0, 1])))).toBe(true);
    expect(accumulates(check(reduction('sum', [70, 1000], [0], true)))).toBe(true);
  });

  test.each<ReduceOp>(['argmax', 'argmin'])('%s tells fractions apart', (op) => {
    const n = 80;
    const shape = [n, 1000];
    const program = linearize(optimize(reduction(op, shape, [0]), simdCaps), simdCaps);
    expect(accumulates(program)).toBe(true);
    // All between 0 and 1, the row sought beyond all others.
    const sign = op === 'argmax' ? 1 : -1;
    const x = Float32Array.from({ length: n * 1000 }, (_, i) => sign / (2 + Math.abs(41 - Math.floor(i / 1000))));
    const got = new Int32Array(1000);
    interpret(program, [got, x]);
    expect([...new Set(got)]).toEqual([41]);
  });

  test('softmax over columns: reductions that rest on each other', () => {
    expect(accumulates(check(softmax(70, 1100, 0, false), 1e-5))).toBe(true);
    check(softmax(70, 1100, 0, true), 1e-5);
    check(layerNorm(70, 1100), 1e-4);
  });

  test('two sums that share their outer loop and not the inner one', () => {
    const e = new Exprs();
    const [batch, row, other, j] = [e.range(6, 'reduce'), e.range(35, 'reduce'), e.range(40, 'reduce'), e.range(500)];
    const sumOver = (slot: number, along: Range): KNode => {
      const [x, { extent }] = [e.param(slot, 'float32', 'read', 6 * along.arg.extent * 500), along.arg];
      return e.reduce('sum', e.load(x, flat(e, [batch, along, j], [6, extent, 500])), [batch, along]);
    };
    const value = e.add(sumOver(1, row), sumOver(2, other));
    const out = e.param(0, 'float32', 'write', 500);
    const params = [out, ...[35, 40].map((rows, i) => e.param(i + 1, 'float32', 'read', 6 * rows * 500))];
    const k = { name: 'two', params, scalars: [], stores: [{ store: e.store(out, j, value), ranges: [j] }] };
    expect(accumulates(check(k as LoopKernel))).toBe(true);
  });

  test('few rows, few columns, little work stay in registers', () => {
    expect(accumulates(check(reduction('sum', [16, 5000], [0])))).toBe(false);
    expect(accumulates(check(reduction('sum', [9000, 8], [0])))).toBe(false);
    expect(accumulates(check(reduction('sum', [40, 200], [0])))).toBe(false);
  });

  test.each<ReduceOp>(['sum', 'max', 'argmin'])(
    '%s of as many columns as four wide vectors stays in registers',
    (op) => {
      for (const columns of [32, 48, 57, 64])
        expect(accumulates(check(reduction(op, [2100, columns], [0]), 0, wideCaps)), `${columns}`).toBe(false);
      expect(accumulates(check(reduction(op, [2100, 65], [0]), 0, wideCaps))).toBe(true);
    },
  );

  test('no more group memory than there is', () => {
    const small = { ...simdCaps, sharedBytes: 4096 };
    const program = linearize(optimize(reduction('sum', [64, 3000], [0]), small), small);
    const bytes = program.body.flatMap((n) => (n.op === 'SHARED' ? [n.arg.length * 4] : []));
    expect(Math.max(0, ...bytes)).toBeLessThanOrEqual(4096);
  });
});
