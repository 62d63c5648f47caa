/** Sums of which one element counts: read in place of summed, with the result of the sum. */
import { describe, expect, test } from 'vitest';
import { interpret } from '../../interpreter/interpret.ts';
import { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, Program } from '../../ir/ir.ts';
import { verifyProgram } from '../../ir/verify/verify.ts';
import { flat, kernelOf, simdCaps } from '../fixtures/nests.ts';
import { linearize } from '../linearize/linearize.ts';
import { optimize } from './optimize.ts';
import { readPicks } from './picks.ts';

const [rows, columns] = [5, 40];

/** For each row a sum over columns of `element` where the column is the number of the row, of slot 2. */
function picking(
  element: (e: Exprs, x: KNode, row: Range, column: Range) => KNode,
  target: (e: Exprs, number: KNode, column: Range) => KNode = (_, number) => number,
): LoopKernel {
  const e = new Exprs();
  const [row, column] = [e.range(rows), e.range(columns, 'reduce')];
  const x = e.load(e.param(1, 'float32', 'read', rows * columns), flat(e, [row, column], [rows, columns]));
  const number = e.load(e.param(2, 'int32', 'read', rows), row);
  const chosen = e.where(e.eq(column, target(e, number, column)), element(e, x, row, column), e.f32(0));
  const store = e.store(e.param(0, 'float32', 'write', rows), row, e.reduce('sum', chosen, [column]));
  return kernelOf('picks', [{ store, ranges: [row] }]);
}

function programOf(kernel: LoopKernel): Program {
  const program = linearize(optimize(readPicks(kernel, new Exprs()), simdCaps), simdCaps);
  verifyProgram(program);
  return program;
}

function run(kernel: LoopKernel, x: Float32Array, numbers: Int32Array): { sums: number[]; program: Program } {
  const out = new Float32Array(rows);
  const program = programOf(kernel);
  interpret(program, [out, x, numbers], []);
  return { sums: Array.from(out), program };
}

const x = Float32Array.from({ length: rows * columns }, (_, i) => ((i * 37) % 23) - 4.25);
const numbers = Int32Array.of(3, 0, 39, -1, 40);
const picked = Array.from(numbers, (n, row) => (n < 0 || n >= columns ? 0 : x[row * columns + n]!));
const loopsOver = (p: Program): number => p.body.filter((n) => n.op === 'LOOP').length;

describe('sums of which one element counts', () => {
  test('read that element, and are 0 where no element is meant', () => {
    const { sums, program } = run(
      picking((_, value) => value),
      x,
      numbers,
    );
    expect(sums).toEqual(picked);
    expect(loopsOver(program)).toBeLessThan(2);
  });

  test('read it where a difference is compared, too', () => {
    const { sums, program } = run(
      picking(
        (_, value) => value,
        (e, number, column) => e.add(e.sub(e.mul(column, e.i32(2)), number), 1),
      ),
      x,
      numbers,
    );
    // column = 2 column - number + 1.
    expect(sums).toEqual(Array.from(numbers, (n, row) => (n < 1 || n > columns ? 0 : x[row * columns + n - 1]!)));
    expect(loopsOver(program)).toBeLessThan(2);
  });

  test('are never -0, and know nothing of other elements', () => {
    const others = new Float32Array(rows * columns).fill(Number.NaN);
    numbers.forEach((n, row) => {
      if (n >= 0 && n < columns) others[row * columns + n] = -0;
    });
    const { sums } = run(
      picking((_, value) => value),
      others,
      numbers,
    );
    expect(sums.map((s) => Object.is(s, 0))).toEqual(sums.map(() => true));
  });

  test('compute what the element is made of, sums of its row too', () => {
    const kernel = picking((e, value, row) => {
      const own = e.range(columns, 'reduce');
      const all = e.load(e.param(1, 'float32', 'read', rows * columns), flat(e, [row, own], [rows, columns]));
      return e.sub(value, e.reduce('max', all, [own]));
    });
    const { sums } = run(kernel, x, numbers);
    const largest = (row: number): number => Math.max(...x.subarray(row * columns, (row + 1) * columns));
    expect(sums).toEqual(
      picked.map((v, row) => (numbers[row]! < 0 || numbers[row]! >= columns ? 0 : v - largest(row))),
    );
  });

  test('stay sums where several elements may count', () => {
    const kernel = picking(
      (_, value) => value,
      (e, number, column) => e.add(number, e.irem(column, 2)),
    );
    const { sums } = run(kernel, x, numbers);
    const expected = Array.from(numbers, (n, row) => {
      let sum = 0;
      for (let c = 0; c < columns; c++) if (c === n + (c % 2)) sum += x[row * columns + c]!;
      return sum;
    });
    expect(sums).toEqual(expected);
  });
});
