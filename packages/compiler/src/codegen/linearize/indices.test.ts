/** Indices that are computed from numbers in memory: by vectors where lanes read at different places, once where they read at the same. */
import { describe, expect, test } from 'vitest';
import { interpret } from '../../interpreter/interpret.ts';
import { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel, Program } from '../../ir/ir.ts';
import { verifyProgram } from '../../ir/verify/verify.ts';
import { elementwise, simdCaps } from '../fixtures/nests.ts';
import { optimize } from '../loops/optimize.ts';
import { linearize } from './linearize.ts';

function programOf(kernel: LoopKernel): Program {
  const program = linearize(optimize(kernel, simdCaps), simdCaps);
  verifyProgram(program);
  return program;
}

/** Numbers as positions 0 .. n - 1: scaled, rounded down, limited. */
function position(e: Exprs, x: KNode, n: number): KNode {
  const at = e.cast(e.unary('FLOOR', e.mul(x, e.f32(1.5))), 'int32');
  return e.min(e.max(at, 0), n - 1);
}

const at = (x: number, n: number): number => Math.min(Math.max(Math.floor(Math.fround(x * 1.5)), 0), n - 1);
const numbers = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => ((i * 37) % 23) - 4.25);
const many = (program: Program, op: KNode['op'], lanes: number): number =>
  program.body.filter((n) => n.op === op && n.lanes === lanes).length;

describe('computed indices', () => {
  test.each([64, 67, 3])('of %i elements are computed by vectors', (n) => {
    const program = programOf(
      elementwise([n], (e, [i], input) => input(2, position(e, input(1, i as KNode, n), 20), 20)),
    );
    if (n === 64) {
      expect(many(program, 'FLOOR', 4)).toBeGreaterThan(0);
      expect(many(program, 'FLOOR', 1)).toBe(0);
    }
    const [x, table, out] = [numbers(n), numbers(20), new Float32Array(n)];
    interpret(program, [out, x, table], []);
    expect(Array.from(out)).toEqual(Array.from(x, (value) => table[at(value, 20)]));
  });

  test('of indices, with a part that only places decide', () => {
    const [rows, columns] = [5, 32];
    const program = programOf(
      elementwise([rows, columns], (e, [r, c], input) => {
        const flat = (p: KNode): KNode => e.add(e.mul(r as KNode, e.i32(columns)), p);
        const inner = position(e, input(1, flat(c as KNode), rows * columns), columns);
        return input(1, flat(position(e, input(1, flat(inner), rows * columns), columns)), rows * columns);
      }),
    );
    expect(many(program, 'FLOOR', 1)).toBe(0);
    const [x, out] = [numbers(rows * columns), new Float32Array(rows * columns)];
    interpret(program, [out, x], []);
    const want = Array.from(x, (value, i) => {
      const row = i - (i % columns);
      return x[row + at(x[row + at(value, columns)]!, columns)];
    });
    expect(Array.from(out)).toEqual(want);
  });

  test('that lanes have in common leave rows whole', () => {
    const [rows, columns] = [8, 16];
    const program = programOf(
      elementwise([rows, columns], (e, [r, c], input) => {
        const row = position(e, input(1, r as KNode, rows), 10);
        return input(2, e.add(e.mul(row, e.i32(columns)), c as KNode), 10 * columns);
      }),
    );
    expect(program.body.some((n) => n.op === 'LOAD' && n.lanes === 4)).toBe(true);
    expect(many(program, 'FLOOR', 4)).toBe(0);
    const [x, table, out] = [numbers(rows), numbers(10 * columns), new Float32Array(rows * columns)];
    interpret(program, [out, x, table], []);
    const want = Array.from(out, (_, i) => table[at(x[Math.floor(i / columns)]!, 10) * columns + (i % columns)]);
    expect(Array.from(out)).toEqual(want);
  });

  test('of fractions of places are computed by vectors, but where the compiler knows the places', () => {
    const [rows, columns, own] = [5, 50, 32];
    const program = programOf(
      elementwise([rows, columns], (e, [r, c], input) => {
        const at = e.cast(e.unary('FLOOR', e.mul(e.cast(c as KNode, 'float32'), e.f32(0.64))), 'int32');
        return input(1, e.add(e.mul(r as KNode, e.i32(own)), e.min(at, own - 1)), rows * own);
      }),
    );
    expect(many(program, 'FLOOR', 4)).toBeGreaterThan(0);
    expect(many(program, 'FLOOR', 1)).toBe(0);
    const [x, out] = [numbers(rows * own), new Float32Array(rows * columns)];
    interpret(program, [out, x], []);
    const fraction = Math.fround(0.64);
    const want = Array.from(
      out,
      (_, i) => x[Math.floor(i / columns) * own + Math.floor(Math.fround((i % columns) * fraction))],
    );
    expect(Array.from(out)).toEqual(want);
  });
});

describe('numbers of groups', () => {
  const [first, second, third] = [9, 7, 40];

  /** Three nests. The third reads so much further on that its place is the number which a group of the second has in its nest. */
  function nests(e: Exprs): LoopKernel {
    const memory = (slot: number, access: 'read' | 'write', length: number): KNodeOf<'PARAM'> =>
      e.param(slot, 'float32', access, length);
    const x = memory(0, 'read', third);
    const outputs = [first, second, third].map((length, i) => memory(i + 1, 'write', length));
    const [a, b, c] = [first, second, third].map((length) => e.range(length, 'grid')) as [Range, Range, Range];
    const values = [e.load(x, a), e.load(x, b), e.load(x, e.min(e.add(c, second), third - 1))];
    const stores = [a, b, c].map((r, i) => ({ store: e.store(outputs[i]!, r, values[i]!), ranges: [r] }));
    return { name: 'nests', params: [x, ...outputs], scalars: [], stores };
  }

  test.each([false, true])('have bounds in their own nest only; groups of threads: %s', (simt) => {
    const program = linearize(nests(new Exprs()), { ...simdCaps, simt });
    verifyProgram(program);
    const x = numbers(third);
    const [one, two, three] = [first, second, third].map((length) => new Float32Array(length));
    interpret(program, [x, one!, two!, three!], []);
    expect(one).toEqual(x.slice(0, first));
    expect(two).toEqual(x.slice(0, second));
    expect(Array.from(three!)).toEqual(Array.from(x, (_, i) => x[Math.min(i + second, third - 1)]));
  });
});
