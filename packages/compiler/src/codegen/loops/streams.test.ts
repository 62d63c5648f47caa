/** Nests over more memory than caches hold: two streams in one loop, every element once, sums in the same order. */
import { describe, expect, test } from 'vitest';
import { optimize } from './optimize.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { LoopKernel } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import { linearize } from '../linearize/linearize.ts';
import { elementwise, reduction, simdCaps } from '../fixtures/nests.ts';
import { verifyLoopKernel, verifyProgram } from '../../ir/verify/verify.ts';

function run(
  kernel: LoopKernel,
  inputs: readonly Float32Array[],
  length: number,
): { out: Float32Array | Int32Array; loops: number } {
  const shaped = optimize(kernel, simdCaps);
  verifyLoopKernel(shaped);
  const program = linearize(shaped, simdCaps);
  verifyProgram(program);
  const out = kernel.params[0]?.dtype === 'int32' ? new Int32Array(length) : new Float32Array(length);
  out.fill(-7);
  interpret(program, [out, ...inputs]);
  return { out, loops: program.body.filter((n) => n.op === 'LOOP').length };
}

function numbers(length: number, step: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => ((i * step) % 1021) / 1021 - 0.5);
}

describe('streams', () => {
  test.each([
    { n: 45 * 16384, loops: 1 },
    { n: 45 * 16384 + 37, loops: 2 },
  ])('elementwise work over three arrays of $n', ({ n, loops }) => {
    const [a, b] = [numbers(n, 7), numbers(n, 11)];
    const kernel = elementwise([n], (e, [i], input) => e.sub(input(1, i!, n), input(2, i!, n)));
    const result = run(kernel, [a, b], n);
    let wrong = 0;
    for (let i = 0; i < n; i++) if (result.out[i] !== Math.fround(a[i]! - b[i]!)) wrong++;
    expect(wrong).toBe(0);
    // One loop over both halves of a chunk; the rest, known to be 37, as vectors and one element.
    expect(result.loops).toBe(loops);
  });

  test.each<{ op: ReduceOp; shape: [number, number] }>([
    { op: 'sum', shape: [514, 4100] },
    { op: 'max', shape: [130, 16700] },
    { op: 'argmin', shape: [22, 100001] },
    { op: 'max', shape: [1023, 2061] },
  ])('$op over rows of $shape', ({ op, shape: [rows, columns] }) => {
    const x = numbers(rows * columns, 13);
    const { out } = run(reduction(op, [rows, columns], [1]), [x], rows);
    for (let r = 0; r < rows; r++) {
      const row = x.subarray(r * columns, (r + 1) * columns);
      const least = row.reduce((u, v) => Math.min(u, v));
      if (op === 'sum') {
        const want = row.reduce((u, v) => u + v, 0);
        const magnitude = row.reduce((u, v) => u + Math.abs(v), 0);
        expect(Math.abs((out[r] as number) - want)).toBeLessThanOrEqual(columns * 2 ** -24 * magnitude);
      } else expect(out[r]).toBe(op === 'max' ? row.reduce((u, v) => Math.max(u, v)) : row.indexOf(least));
    }
  });

  test.each<{ op: ReduceOp; shape: [number, number]; sums: number }>([
    { op: 'sum', shape: [512, 4], sums: 4 },
    { op: 'sum', shape: [510, 8], sums: 6 },
    { op: 'sum', shape: [513, 5], sums: 3 },
    { op: 'max', shape: [512, 12], sums: 6 },
    { op: 'sum', shape: [509, 15], sums: 3 },
    { op: 'argmax', shape: [512, 8], sums: 2 },
  ])('$op of few columns: $shape', ({ op, shape: [rows, columns], sums }) => {
    const x = numbers(rows * columns, 13);
    const kernel = reduction(op, [rows, columns], [0]);
    const { out } = run(kernel, [x], columns);
    for (let c = 0; c < columns; c++) {
      const column = Float32Array.from({ length: rows }, (_, r) => x[r * columns + c] as number);
      const most = column.reduce((u, v) => Math.max(u, v));
      if (op === 'sum') {
        const want = column.reduce((u, v) => u + v, 0);
        const magnitude = column.reduce((u, v) => u + Math.abs(v), 0);
        expect(Math.abs((out[c] as number) - want)).toBeLessThanOrEqual(rows * 2 ** -24 * magnitude);
      } else expect(out[c]).toBe(op === 'max' ? most : column.indexOf(most));
    }
    // Vectors of results that are computed side by side.
    const program = linearize(optimize(kernel, simdCaps), simdCaps);
    const registers = program.body.filter((n) => n.op === 'REG' && n.lanes === 4 && n.dtype === 'float32');
    expect((registers[0]?.arg as { length?: number } | undefined)?.length).toBe(sums);
  });

  test('a row summed beside another gives the bits it gives alone', () => {
    const [rows, columns] = [514, 4100];
    const x = numbers(rows * columns, 13);
    const together = run(reduction('sum', [rows, columns], [1]), [x], rows).out;
    for (const r of [0, 1, 258, 511, 513]) {
      const alone = run(reduction('sum', [1, columns], [1]), [x.slice(r * columns, (r + 1) * columns)], 1).out;
      expect(together[r]).toBe(alone[0]);
    }
  });
});
