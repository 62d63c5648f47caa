/** Loops that end at a size given at dispatch: merged, cut, taken in groups and vectors, and nothing touched beyond the end. */
import { describe, expect, test } from 'vitest';
import { Exprs } from '../../ir/expr.ts';
import type { LoopKernel, LoopStore, Program } from '../../ir/ir.ts';
import { printLoopKernel } from '../../ir/print.ts';
import { linearize } from '../linearize/linearize.ts';
import { mergeRanges, optimize } from './optimize.ts';
import { nest, check, wideCaps, done, elementwise, reduced, softmaxAlong } from '../fixtures/sized-nests.ts';

describe('merged', () => {
  test('rows of fixed length with their number', () => {
    const text = printLoopKernel(mergeRanges(elementwise(2, 64, 48), new Exprs()));
    expect(text.match(/RANGE/g)).toHaveLength(1);
    expect(text).toMatch(/RANGE 3072/);
    expect(text).toMatch(/CONST 48/);
  });

  test('no fixed loop with a size inside it', () => {
    const k = nest(2, 64, ({ e, rows, input, output }) => {
      const [i, j] = [e.range(8), rows()];
      const store = output(0, [i, j], [8, 64], input(1, [i, j], [8, 64]));
      return [{ store: store as LoopStore['store'], ranges: [i, j] }];
    });
    expect(printLoopKernel(mergeRanges(k, new Exprs())).match(/RANGE/g)).toHaveLength(2);
    check(k, [2, 3, 7, 63, 64]);
  });
});

/** What the planner hands to it. */
describe('groups', () => {
  test('those beyond the end do nothing', () => {
    const program = check(elementwise(512, 12001, 64), [512, 700]);
    expect(program.grid[0]).toBeGreaterThan(3);
    expect(program.body.filter((n) => n.op === 'IF').length).toBeGreaterThan(0);
  });

  test('a group may be a single row, which is read outside all loops', () => {
    const k = nest(1, 9, ({ e, rows, input, output }) => {
      const [i, r] = [rows(), e.range(16384, 'reduce')];
      const row = input(2, [i], [9]);
      const sum = e.reduce('sum', e.mul(e.unary('EXP', input(1, [i, r], [9, 16384])), row), [r]);
      return [{ store: output(0, [i], [9], sum) as LoopStore['store'], ranges: [i] }];
    });
    expect(check(k, [1, 4], 1e-4).grid[0]).toBe(9);
  });

  test('take parts of rows that are long', () => {
    const k = nest(128, 255, ({ e, rows, input, output }) => {
      const [i, j] = [e.range(3), rows()];
      return [{ store: output(0, [i, j], [3, 255], input(1, [j, i], [255, 3])) as LoopStore['store'], ranges: [i, j] }];
    });
    check(k, [128, 129, 192, 255]);
    const both = nest(128, 131, ({ e, rows, input, output }) => {
      const [i, j] = [rows(), rows()];
      const value = e.mul(input(1, [i, j], [131, 131]), 2);
      return [{ store: output(0, [i, j], [131, 131], value) as LoopStore['store'], ranges: [i, j] }];
    });
    check(both, [129]);
  });

  test('what is known of the groups of one nest is not taken for those of the next', () => {
    const [n, fixed] = [511, 32];
    const k = nest(256, n, ({ e, rows, input, output }) => {
      const [a, b, row, c] = [rows(), e.range(fixed), e.range(2), rows()];
      return [
        { store: output(0, [a], [n], e.mul(input(1, [a], [n]), 2)) as LoopStore['store'], ranges: [a] },
        { store: output(2, [b], [fixed], e.neg(input(3, [b], [fixed]))) as LoopStore['store'], ranges: [b] },
        // As they lie at the size that is bound: the last group of a row ends before the next row.
        {
          store: e.store(
            e.param(4, 'float32', 'write', 2 * n),
            e.add(e.mul(row, e.scalar(0, 'int32', 256, n)), c),
            input(1, [c], [n]),
          ),
          ranges: [row, c],
        },
      ];
    });
    const params = [...k.params, k.stores[2]!.store.src[0]] as LoopKernel['params'];
    check({ ...k, params }, [256, 257, 450, 511]);
  });

  test('in each of several nests', () => {
    const [a, b] = [elementwise(1, 2000, 64), reduced('sum', 1, 2000, 64, [1])];
    const k = nest(1, 2000, ({ e, rows, input, output }) => {
      const [i, j, k, r] = [rows(), e.range(64), rows(), e.range(64, 'reduce')];
      const sum = e.reduce('sum', input(1, [k, r], [2000, 64]), [r]);
      return [
        { store: output(0, [i, j], [2000, 64], input(1, [i, j], [2000, 64])) as LoopStore['store'], ranges: [i, j] },
        { store: output(2, [k], [2000], sum) as LoopStore['store'], ranges: [k] },
      ];
    });
    for (const each of [a, b, k]) check(each, [1, 77], 1e-5);
  });
});

describe('vectors', () => {
  test('whole rows leave no rest', () => {
    const { body } = check(elementwise(1, 40, 64), [1, 7, 40]);
    expect(body.filter((n) => n.op === 'STORE' && n.src[2].lanes === 1)).toHaveLength(0);
  });

  test('the last one is moved back where the size is one at least', () => {
    const [some, few] = [elementwise(8, 100, 1), elementwise(3, 100, 1)].map((k) => check(k, [8, 9, 11, 50, 99, 100]));
    const single = ({ body }: Program): number => body.filter((n) => n.op === 'STORE' && n.src[2].lanes === 1).length;
    expect(single(some!)).toBe(0);
    expect(single(few!)).toBe(1);
    check(elementwise(3, 100, 1), [3, 4, 5]);
  });

  test.each(['sum', 'prod', 'max', 'argmin'] as const)('%s: what the last one has again does not count', (op) => {
    const { body } = check(reduced(op, 9, 61, 1, [0]), [9, 10, 15, 16, 17, 47, 61], 1e-5);
    expect(body.filter((n) => n.op === 'LOAD' && n.src[0].op === 'PARAM' && n.lanes === 1)).toHaveLength(0);
  });

  test('lengths below one vector are taken by narrower ones', () => {
    const singles = (k: LoopKernel): number => {
      const { body } = linearize(optimize(k, wideCaps), wideCaps);
      return body.filter((n) => n.op === 'STORE' && n.src[0].op === 'PARAM' && n.src[2].lanes === 1).length;
    };
    for (const low of [4, 8, 9]) {
      const k = elementwise(low, 100, 1);
      check(k, [low, low + 1, 15, 16, 17, 31, 100]);
      expect(singles(k)).toBe(0);
      check(softmaxAlong(low, 61, 5), [low, low + 1, 15, 16, 17, 24, 61]);
      for (const op of ['sum', 'max', 'argmin'] as const)
        check(reduced(op, low, 61, 1, [0]), [low, low + 1, 15, 16, 25, 61], 1e-5);
    }
  });

  test('softmax along a size', () => {
    for (const [low, sizes] of [
      [1, [1, 2, 5, 31]],
      [16, [16, 17, 23, 31, 61]],
    ] as const)
      check(softmaxAlong(low, 61, 5), sizes);
  });
});

describe('rows', () => {
  test.each([2, 3])('of %i elements, four at a time', (c) => {
    const program = check(elementwise(1, 67, c, true), [1, 3, 4, 5, 64, 66, 67]);
    expect(done(program)).toMatch(/peel/);
  });

  test.each(['sum', 'max', 'argmax'] as const)('%s of few columns', (op) => {
    check(reduced(op, 1, 67, 10, [0]), [1, 3, 4, 9, 66, 67]);
    check(reduced(op, 1, 67, 64, [0]), [1, 3, 4, 9, 66, 67]);
  });

  test.each([10, 32, 48])('sums of %i columns over batches of rows', (c) => {
    const k = nest(8, 521, ({ e, n, rows, input, output }) => {
      const [j, batch, row] = [e.range(c), e.range(4, 'reduce'), rows('reduce')];
      const sum = e.reduce('sum', input(1, [batch, row, j], [4, n, c]), [batch, row]);
      return [{ store: output(0, [j], [c], sum) as LoopStore['store'], ranges: [j] }];
    });
    check(k, [8, 35], 1e-4);
    // Registers hold several rows of so few columns.
    const { body } = linearize(optimize(k, wideCaps), wideCaps);
    expect(body.filter((n) => n.op === 'SHARED')).toHaveLength(0);
  });

  test.each(['sum', 'min', 'argmin'] as const)('%s of many columns, in memory', (op) => {
    check(reduced(op, 2, 80, 1000, [0]), [2, 3, 37, 80], 1e-5);
  });

  test.each(['sum', 'argmax'] as const)('%s of all', (op) => {
    check(reduced(op, 1, 67, 12, [0, 1]), [1, 2, 66, 67]);
  });

  test('positions where a size is inside another loop', () => {
    const k = nest(1, 19, ({ e, rows, input, output }) => {
      const [i, j] = [e.range(6, 'reduce'), rows('reduce')];
      const at = e.cast(e.reduce('argmax', input(1, [i, j], [6, 19]), [i, j]), 'float32');
      return [{ store: output(0, [], [], at) as LoopStore['store'], ranges: [] }];
    });
    check(k, [1, 2, 5, 18, 19]);
  });
});

describe('more memory than caches hold', () => {
  test('elementwise work in two streams', () => {
    const program = check(elementwise(1, 737317, 1), [9001]);
    expect(done(program)).toMatch(/unroll/);
  });

  test('transposes in squares', () => {
    for (const turned of [false, true]) {
      const k = nest(1, 70, ({ e, rows, input, output }) => {
        const [i, j] = [rows(), e.range(40)];
        const [to, from] = [[i, j] as const, [j, i] as const];
        const store = turned
          ? output(0, from, [40, 70], e.mul(input(1, to, [70, 40]), 2))
          : output(0, to, [70, 40], e.mul(input(1, from, [40, 70]), 2));
        return [{ store: store as LoopStore['store'], ranges: turned ? [j, i] : [i, j] }];
      });
      expect(done(check(k, [1, 3, 4, 17, 69, 70]))).toMatch(/tile/);
    }
  });

  test('rows of sums, interleaved', () => {
    const program = check(reduced('sum', 1, 66, 16700, [1]), [6], 1e-4);
    expect(done(program)).toMatch(/interleaved/);
  });
});
