/** Operations of two operands on every dtype, on special values, scalar and in vectors of several widths, against plain TypeScript. */
import type { BinaryOp, KOp } from '@polygrad/core/kernel';
import { describe, it } from 'vitest';
import { as, binary, isFloat, lanesOf, pairs, run, same, special } from './fixtures/values.ts';

describe('binary operations', () => {
  for (const [op, { on, f, out }] of Object.entries(binary)) {
    it(op, () => {
      for (const d of on) {
        const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
        const to = out ?? d;
        for (const lanes of lanesOf(d)) {
          const got = run(
            to,
            lanes,
            [
              [d, x],
              [d, y],
            ],
            (b, [p, q]) => b.e.binary(op as BinaryOp, p!, q!),
          );
          same(
            got,
            x.map((v, i) => as(to, f(v, y[i]!, d))),
            `${op} ${d} x ${lanes}`,
          );
        }
      }
    });
  }

  it('MAX, MIN, IDIV, IREM and shifts against constants', () => {
    for (const d of ['float32', 'float64', 'int32', 'uint32'] as const) {
      const xs = special[d].map((x) => as(d, x));
      const ops = isFloat(d) ? ['MAX', 'MIN'] : ['MAX', 'MIN', 'IDIV', 'IREM', 'SHL', 'SHR'];
      for (const op of ops) {
        for (const c of isFloat(d)
          ? [0, -0, 1.5, -1, Infinity, -Infinity]
          : d === 'int32'
            ? [0, 1, -1, 3, 8, -8, -2147483648]
            : [0, 1, 3, 8, 4294967295]) {
          for (const lanes of lanesOf(d)) {
            for (const swap of [false, true]) {
              if (swap && op !== 'MAX' && op !== 'MIN') continue;
              const got = run(d, lanes, [[d, xs]], (b, [x]) => {
                const k = b.e.constant(d, c, lanes);
                return b.e.intern(op as KOp, d, lanes, swap ? [k, x!] : [x!, k]);
              });
              same(
                got,
                xs.map((x) => as(d, binary[op as KOp]!.f(x, c, d))),
                `${op} ${d} x ${lanes} with ${c}`,
              );
            }
          }
        }
      }
    }
  });
});

describe('division of numbers known not to be negative', () => {
  it('by constants', () => {
    const xs = [0, 1, 2, 3, 6, 7, 8, 9, 10, 640, 641, 999_999_999, 1_000_000_007, 2147483646, 2147483647, 1431655765];
    for (const c of [1, 2, 3, 5, 7, 8, 10, 14, 28, 641, 65536, 1_000_003, 715827883, 2147483647]) {
      for (const lanes of [1, 4, 8]) {
        for (const op of ['IDIV', 'IREM'] as const) {
          const got = run('int32', lanes, [['int32', xs]], (b, [x]) =>
            b.e.binary(op, b.e.and(x!, b.e.i32(0x7fffffff)), b.e.i32(c)),
          );
          same(
            got,
            xs.map((x) => binary[op]!.f(x, c, 'int32')),
            `${op} x ${lanes} by ${c}`,
          );
        }
      }
    }
  });
});
