/** Operations of one operand on every dtype, on special values, scalar and in vectors of several widths, against plain TypeScript. */
import type { KOp, UnaryOp } from '@polygrad/core/kernel';
import { describe, it } from 'vitest';
import { as, int, lanesOf, pairs, run, same, special, type Tested } from './fixtures/values.ts';

const roundEven = (x: number): number => {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 52) return x;
  const r = Math.round(x);
  const even = Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : r;
  return even === 0 ? (Object.is(x, -0) || x < 0 ? -0 : 0) : even;
};
const unary: Partial<Record<KOp, { on: Tested[]; f: (x: number) => number; out?: Tested }>> = {
  NEG: { on: ['float32', 'float64', 'int32', 'uint32'], f: (x) => -x },
  ABS: { on: ['float32', 'float64', 'int32', 'uint32'], f: Math.abs },
  SQRT: { on: ['float32', 'float64'], f: Math.sqrt },
  FLOOR: { on: ['float32', 'float64'], f: Math.floor },
  CEIL: { on: ['float32', 'float64'], f: Math.ceil },
  TRUNC: { on: ['float32', 'float64'], f: Math.trunc },
  ROUND: { on: ['float32', 'float64'], f: roundEven },
  RECIP: { on: ['float32', 'float64'], f: (x) => 1 / x },
  ISNAN: { on: ['float32', 'float64'], f: (x) => Number(Number.isNaN(x)), out: 'bool' },
};

describe('unary operations', () => {
  for (const [op, { on, f, out }] of Object.entries(unary)) {
    it(op, () => {
      for (const d of on) {
        const xs = special[d].map((x) => as(d, x));
        const to = out ?? d;
        for (const lanes of lanesOf(d)) {
          const got = run(to, lanes, [[d, xs]], (b, [x]) => b.e.unary(op as UnaryOp, x!));
          same(
            got,
            xs.map((x) => (int(to) ? as(to, f(x)) : as(to, f(x)))),
            `${op} ${d} x ${lanes}`,
          );
        }
      }
    });
  }

  it('NOT', () => {
    for (const lanes of [1, 4, 8]) {
      same(
        run('int32', lanes, [['int32', special.int32]], (b, [x]) => b.e.not(x!)),
        special.int32.map((x) => ~x),
        'NOT int32',
      );
      same(
        run('bool', lanes, [['bool', [0, 1]]], (b, [x]) => b.e.not(x!)),
        [1, 0],
        'NOT bool',
      );
      for (const d of ['float32', 'float64', 'int32'] as const) {
        const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
        same(
          run(
            'bool',
            lanes,
            [
              [d, x],
              [d, y],
            ],
            (b, [p, q]) => b.e.ne(p!, q!),
          ),
          x.map((v, i) => Number(v !== y[i])),
          `NE ${d} x ${lanes}`,
        );
      }
    }
  });
});
