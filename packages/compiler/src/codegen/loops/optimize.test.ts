/** Every family of kernels lowered for every kind of engine: what they compute. */
import { describe, test } from 'vitest';
import type { EngineCaps } from '@polygrad/core/engine';
import type { Exprs } from '../../ir/expr.ts';
import { check } from '../fixtures/lowered.ts';
import type { KNode } from '../../ir/ir.ts';
import type { ReduceOp } from '../../ir/operations.ts';
import {
  elementwise,
  flat,
  layerNorm,
  matmul,
  maxPool,
  optimizerStep,
  reduction,
  simdCaps,
  softmax,
  wideCaps,
} from '../fixtures/nests.ts';

const engines: Record<string, EngineCaps> = {
  simd: simdCaps,
  'wide vectors': wideCaps,
  scalar: { ...simdCaps, vectorBytes: 4, nativeOps: new Set() },
  simt: { ...simdCaps, simt: true, vectorBytes: 4, maxGroup: 256, sharedBytes: 16384 },
  'simt with vectors': { ...simdCaps, simt: true, maxGroup: 256, sharedBytes: 16384 },
  'emulated simt': { ...simdCaps, simt: true, maxGroup: 256, sharedBytes: 16384, sharedIsMemory: true },
};

for (const [name, caps] of Object.entries(engines)) {
  describe(`optimize and linearize, ${name} engine`, () => {
    test('elementwise over every tail length', () => {
      for (let n = 1; n <= 37; n++)
        check(
          elementwise([n], (e, [i], x) => e.add(x(1, i as KNode, n), e.f32(1))),
          caps,
        );
    });
    test('broadcast, transpose, flip and slices', () => {
      check(
        elementwise([5, 21], (e, [i, j], x) => e.mul(x(1, flat(e, [i!, j!], [5, 21]), 105), x(2, j!, 21))),
        caps,
      );
      check(
        elementwise([5, 21], (e, [i, j], x) => e.mul(x(1, i!, 5), x(2, flat(e, [j!, i!], [21, 5]), 105))),
        caps,
      );
      check(
        elementwise([5, 21], (e, [i, j], x) => x(1, e.sub(e.i32(104), flat(e, [i!, j!], [5, 21])), 105)),
        caps,
      );
      check(
        elementwise([3, 4, 5], (e, [i, j, k], x) =>
          x(1, flat(e, [e.add(i!, e.i32(1)), k!, e.mul(j!, e.i32(2))], [5, 5, 8]), 200),
        ),
        caps,
      );
    });
    test('transposes large enough for tiles', () => {
      check(
        elementwise([20, 67], (e, [i, j], x) => x(1, flat(e, [j!, i!], [67, 20]), 1340)),
        caps,
      );
      check(
        elementwise([3, 9, 64], (e, [i, j, k], x) =>
          e.add(x(1, flat(e, [k!, j!, i!], [64, 9, 3]), 1728), x(2, k!, 64)),
        ),
        caps,
      );
    });
    test('transposes in squares, with rests of rows and columns, and rows that share sets of a cache', () => {
      for (const [m, n, row] of [
        [18, 23, 18],
        [12, 40, 13],
        [7, 70, 1024],
        [9, 35, 1023],
      ] as const) {
        check(
          elementwise([m, n], (e, [i, j], x) =>
            e.add(x(1, flat(e, [j!, i!], [n, row]), n * row), x(2, flat(e, [i!, j!], [m, n]), m * n)),
          ),
          caps,
        );
      }
      // Two operands of which one is crowded, in a loop around.
      check(
        elementwise([2, 8, 33], (e, [b, i, j], x) =>
          e.mul(x(1, flat(e, [b!, j!, i!], [2, 33, 1024]), 67584), x(2, flat(e, [j!, b!, i!], [33, 2, 8]), 528)),
        ),
        caps,
      );
    });
    test('rows looked up by their numbers and transposed', () => {
      for (const [m, n] of [
        [18, 23],
        [70, 9],
        [16, 64],
      ] as const) {
        check(
          elementwise([m, n], (e, [i, j], x) => {
            const row = e.cast(e.mul(x(2, j!, n), e.f32(5)), 'int32');
            const known = e.min(e.max(e.add(row, e.i32(15)), e.i32(0)), e.i32(n - 1));
            return x(1, flat(e, [known, i!], [n, m]), n * m);
          }),
          caps,
        );
      }
    });
    test('indices that are data, and reshapes that do not cancel', () => {
      check(
        elementwise([4, 9], (e, [i, j]) => e.cast(e.sub(j!, i!), 'float32')),
        caps,
      );
      check(
        elementwise([37], (e, [i], x) => e.add(x(1, e.irem(i!, e.i32(5)), 5), x(2, e.idiv(i!, e.i32(5)), 8))),
        caps,
      );
      check(
        elementwise([6, 8], (e, [i, j]) => e.where(e.lt(i!, j!), e.f32(1), e.cast(i!, 'float32'))),
        caps,
      );
    });
    test('a diagonal written: loops of an index modulo what does not divide their length', () => {
      for (const [n, by, first] of [
        [65, 9, 0],
        [70, 8, 3],
        [50, 13, 12],
        [12, 11, 1],
        [40, 3, 2],
      ] as const) {
        const count = Math.ceil((n - first) / by);
        check(
          elementwise([3, n], (e, [i, j]) => {
            const at = e.sub(j!, first);
            const on = e.and(e.le(e.i32(0), at), e.eq(e.irem(at, e.i32(by)), e.i32(0)));
            const line = e.param(1, 'float32', 'read', 3 * count);
            return e.load(line, flat(e, [i!, e.idiv(at, e.i32(by))], [3, count]), on, e.f32(0));
          }),
          caps,
        );
      }
    });
    test('quarter turns', () => {
      for (const [m, n, row] of [
        [20, 24, 24],
        [32, 70, 70],
        [18, 33, 512],
        [9, 12, 12],
      ] as const) {
        check(
          elementwise([n, m], (e, [i, j], x) => x(1, flat(e, [j!, e.sub(e.i32(n - 1), i!)], [m, row]), m * row)),
          caps,
        );
        check(
          elementwise([n, m], (e, [i, j], x) => x(1, flat(e, [e.sub(e.i32(m - 1), j!), i!], [m, row]), m * row)),
          caps,
        );
      }
    });
    test('reshapes of what is repeated: loops of an index modulo a part of their length', () => {
      for (const [m, n, by] of [
        [5, 34, 17],
        [9, 42, 7],
        [6, 30, 3],
        [4, 48, 12],
      ] as const) {
        check(
          elementwise([m, n], (e, [i, j], x) => x(1, e.add(e.mul(i!, e.i32(by)), e.irem(j!, e.i32(by))), m * by)),
          caps,
        );
        check(
          elementwise([m, n], (e, [i, j], x) => {
            const each = e.idiv(j!, e.i32(by));
            return e.add(x(1, flat(e, [i!, each], [m, n / by]), (m * n) / by), x(2, e.irem(j!, e.i32(by)), by));
          }),
          caps,
        );
      }
    });
    test('rows narrower than a vector, with a bias, apart and in turn', () => {
      for (const [rows, width] of [
        [40, 3],
        [23, 3],
        [31, 2],
        [3, 3],
        [37, 5],
        [19, 10],
      ] as const) {
        const at = (e: Exprs, i: KNode, j: KNode): KNode => flat(e, [i, j], [rows, width]);
        check(
          elementwise([rows, width], (e, [i, j], x) => e.mul(x(1, at(e, i!, j!), rows * width), x(2, j!, width))),
          caps,
        );
        check(
          elementwise([2, rows, width], (e, [k, i, j], x) =>
            e.binary(
              'MAX',
              x(1, flat(e, [k!, e.mul(i!, e.i32(2)), j!], [2, rows * 2, width]), rows * width * 4),
              x(2, flat(e, [k!, j!, i!], [2, width, rows]), rows * width * 2),
            ),
          ),
          caps,
        );
      }
    });
    test('gates: padding and pooling', () => {
      const pad = elementwise([9, 12], (e, [i, j], _) => {
        const [y, x] = [e.sub(i!, e.i32(2)), e.sub(j!, e.i32(1))];
        const inside = [e.le(e.i32(0), y), e.lt(y, e.i32(5)), e.le(e.i32(0), x), e.lt(x, e.i32(10))].reduce((a, b) =>
          e.and(a, b),
        );
        return e.load(e.param(1, 'float32', 'read', 50), flat(e, [y, x], [5, 10]), inside, e.f32(7));
      });
      check(pad, caps);
      check(maxPool(9, 13, 2, 0), caps);
      check(maxPool(8, 11, 3, 1), caps);
      check(maxPool(12, 17, 5, 2), caps);
    });
    test('conditions that cut a long loop: padding, concatenation, a window over the border', () => {
      const concat = (e: Exprs, i: KNode | null, j: KNode, n: readonly [number, number]): KNode => {
        const first = e.lt(j, e.i32(n[0]));
        const rows = i === null ? [] : [i];
        const [a, b] = n.map((w) => (i === null ? [w] : [3, w])) as [number[], number[]];
        const x = e.load(
          e.param(
            1,
            'float32',
            'read',
            a.reduce((p, q) => p * q),
          ),
          flat(e, [...rows, j], a),
          first,
        );
        const rest = flat(e, [...rows, e.sub(j, e.i32(n[0]))], b);
        return e.where(
          first,
          x,
          e.load(
            e.param(
              2,
              'float32',
              'read',
              b.reduce((p, q) => p * q),
            ),
            rest,
            e.not(first),
          ),
        );
      };
      check(
        elementwise([3, 50], (e, [i, j]) => concat(e, i as KNode, j as KNode, [21, 29])),
        caps,
      );
      check(
        elementwise([90], (e, [j]) => concat(e, null, j as KNode, [33, 57])),
        caps,
      );
      check(maxPool(6, 41, 3, 1), caps);
      check(maxPool(5, 33, 5, 2), caps);
    });
    test('gather through an index tensor', () => {
      const k = elementwise([11, 6], (e, [i, j], x) => {
        const row = e.min(e.binary('MAX', e.load(e.param(2, 'int32', 'read', 11), i!), e.i32(0)), e.i32(3));
        return x(1, flat(e, [row, j!], [4, 6]), 24);
      });
      check(k, caps);
    });
    for (const op of ['sum', 'prod', 'max', 'min', 'argmax', 'argmin'] as ReduceOp[]) {
      test(`${op} over each axis and all of them`, () => {
        for (const shape of [[1], [5], [4, 9], [9, 18], [3, 5, 6], [2, 40], [40, 3]]) {
          const axes = shape.map((_, i) => i);
          for (const subset of [...axes.map((a) => [a]), axes, axes.slice(1), axes.slice(0, -1)]) {
            check(reduction(op, shape, subset), caps, 1e-5);
          }
        }
      });
    }
    test('reduction tails of every residue', () => {
      for (let n = 1; n <= 40; n++) check(reduction('sum', [2, n], [1], true), caps, 1e-5);
    });
    test('ties and NaN in argument reductions: the first winner, NaN before all', () => {
      for (const op of ['argmax', 'argmin', 'max', 'min'] as ReduceOp[]) {
        for (const n of [7, 32, 50]) {
          check(reduction(op, [3, n], [1]), caps, 0, (a) => a.fill(1));
          check(reduction(op, [3, n], [1]), caps, 0, (a) => a.set(a.map((_, i) => i % 4)));
          check(reduction(op, [3, n], [1]), caps, 0, (a, slot) => {
            if (slot === 1) for (const i of [5, 6, n + 3, 2 * n]) a[i] = Number.NaN;
          });
          check(reduction(op, [n, 5], [0]), caps, 0, (a, slot) => {
            if (slot === 1) for (const i of [5, 12, 31]) a[i] = Number.NaN;
          });
          check(reduction(op, [3, n], [1]), caps, 0, (a) => a.fill(op.endsWith('max') ? -Infinity : Infinity));
        }
      }
    });
    test('reductions long enough for a group of threads', () => {
      for (const op of ['sum', 'max', 'argmin'] as ReduceOp[]) {
        check(reduction(op, [300], [0]), caps, 1e-5);
        check(reduction(op, [3, 517], [1]), caps, 1e-5);
        check(reduction(op, [256, 3], [0]), caps, 1e-5);
      }
      check(softmax(3, 301, 1, true), caps);
      check(softmax(260, 5, 0, false), caps);
      check(layerNorm(2, 260), caps, 1e-5);
      // Rows of whole vectors, whole turns and neither, few and many of them.
      for (const [rows, length] of [
        [3, 512],
        [2, 1000],
        [33, 64],
        [40, 132],
        [2, 5000],
      ] as const) {
        check(softmax(rows, length, 1, true), caps);
        check(layerNorm(rows, length), caps, 1e-5);
      }
      check(reduction('prod', [3, 300], [1]), caps, 1e-5, (a) => a.set(a.map((_, i) => 1 + (i % 7) / 1000)));
      check(reduction('max', [3, 300], [1]), caps, 0, (a) => a.fill(-Infinity));
      check(reduction('min', [3, 1000], [1]), caps, 0, (a, slot) => {
        if (slot === 1) a[1500] = Number.NaN;
      });
      check(matmul(3, 4, 200, false), caps, 1e-5);
    });
    test('softmax over rows and columns, with and without a stage', () => {
      for (const [r, c] of [
        [3, 10],
        [5, 37],
        [19, 6],
        [1, 4],
      ] as const) {
        for (const axis of [0, 1] as const)
          for (const staged of [false, true]) check(softmax(r, c, axis, staged), caps);
      }
    });
    test('layer norm: nested reductions, two outputs of different shape', () => {
      check(layerNorm(3, 7), caps, 1e-5);
      check(layerNorm(5, 48), caps, 1e-5);
    });
    test('contractions as plain nests', () => {
      check(matmul(5, 19, 7, false), caps, 1e-5);
      check(matmul(6, 5, 23, true), caps, 1e-5);
    });
    test('independent nests side by side, in place', () => {
      check(optimizerStep([10, 3, 100]), caps);
      check(optimizerStep([70000, 5]), caps);
    });
    test('work in several groups with uneven last ones', () => {
      check(
        elementwise([50_021], (e, [i], x) => e.mul(x(1, i!, 50_021), e.f32(2))),
        caps,
      );
      check(
        elementwise([37, 2001], (e, [i, j], x) => e.add(x(1, flat(e, [i!, j!], [37, 2001]), 37 * 2001), x(2, i!, 37))),
        caps,
      );
      // The contract's bound: gamma_K times the sum of magnitudes, which are 6 / pi on average.
      const bound = ((257 * 2 ** -24) / (1 - 257 * 2 ** -24)) * 257 * (6 / Math.PI);
      check(reduction('sum', [300, 257], [1]), caps, bound);
      check(reduction('sum', [257, 300], [0]), caps, bound);
    });
    test('empty tensors and empty reductions', () => {
      check(
        elementwise([0, 4], (e, [i, j], x) => x(1, flat(e, [i!, j!], [0, 4]), 0)),
        caps,
      );
      for (const op of ['sum', 'prod'] as ReduceOp[]) check(reduction(op, [3, 0], [1]), caps);
    });
  });
}
