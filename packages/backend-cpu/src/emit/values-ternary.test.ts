/** Operations of three operands on every dtype, on special values, scalar and in vectors of several widths, against plain TypeScript. */
import type { KNode, ProgramBuilder, TernaryOp } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import type { EmitTarget } from './target.ts';
import { arrays, as, features, fused, lanesOf, pairs, run, same, type Tested } from './fixtures/values.ts';

/** The later one only where it is beyond the other: NaN and zeros as comparisons see them. */
const larger = (now: number, later: number): number => {
  if (now < later) return later;
  return now;
};
const smaller = (now: number, later: number): number => {
  if (later < now) return later;
  return now;
};
const flipped =
  (f: (x: number, y: number) => number) =>
  (x: number, y: number): number =>
    f(y, x);

/** WHERE of a condition takes from x and y. */
function checkWhere(d: Tested, lanes: number, cond: number[], x: number[], y: number[], target?: EmitTarget): void {
  const got = run(
    d,
    lanes,
    [
      ['bool', cond],
      [d, x],
      [d, y],
    ],
    (b, [c, p, q]) => b.e.where(c!, p!, q!),
    target,
  );
  same(
    got,
    x.map((v, i) => (cond[i] ? v : y[i]!)),
    `WHERE ${d} x ${lanes}`,
  );
}

describe('ternary operations', () => {
  it('WHERE that picks the larger or the smaller number', () => {
    for (const d of ['float32', 'float64'] as const) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      for (const lanes of lanesOf(d)) {
        const shapes = [
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(p, q), q, p), f: larger },
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(q, p), q, p), f: smaller },
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(q, p), p, q), f: flipped(larger) },
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(p, q), p, q), f: flipped(smaller) },
        ];
        shapes.forEach(({ pick, f }, i) => {
          const got = run(
            d,
            lanes,
            [
              [d, x],
              [d, y],
            ],
            (b, [p, q]) => pick(p!, q!, b),
          );
          same(
            got,
            x.map((v, k) => f(v, y[k]!)),
            `picking ${i} of ${d} x ${lanes}`,
          );
        });
      }
    }
  });

  it('WHERE', () => {
    for (const d of Object.keys(arrays) as Tested[]) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      const cond = x.map((_, i) => (i % 3 === 0 ? 1 : 0));
      for (const lanes of lanesOf(d)) {
        checkWhere(d, lanes, cond, x, y);
        for (const zeroFirst of [true, false]) {
          const cleared = run(
            d,
            lanes,
            [
              ['bool', cond],
              [d, x],
            ],
            (b, [c, p]) => {
              const zero = b.e.constant(d, 0, lanes);
              return zeroFirst ? b.e.where(c!, zero, p!) : b.e.where(c!, p!, zero);
            },
          );
          same(
            cleared,
            x.map((v, i) => ((cond[i] === 1) === zeroFirst ? 0 : v)),
            `WHERE ${d} x ${lanes} with zero ${zeroFirst ? 'first' : 'second'}`,
          );
        }
        // Condition computed on the other width of lanes.
        const other = d === 'float64' ? 'float32' : 'float64';
        const keys = cond.map((c) => (c ? 5 : -5));
        const mixed = run(
          d,
          lanes,
          [
            [other, keys],
            [d, x],
            [d, y],
          ],
          (b, [c, p, q]) => b.e.where(b.e.lt(b.e.constant(other, 0, lanes), c!), p!, q!),
        );
        same(
          mixed,
          x.map((v, i) => (cond[i] ? v : y[i]!)),
          `WHERE ${d} x ${lanes}, condition on ${other}`,
        );
      }
    }
  });

  it.runIf(features.fusedMadd)('FMA and MULADD round once, scalars like vectors', () => {
    for (const d of ['float32', 'float64'] as const) {
      // Few enough bits that the sum is exact in float64 (float32), or a case where two roundings give zero (float64).
      const bits = d === 'float32' ? 24 : 53;
      const xs =
        d === 'float32'
          ? Array.from({ length: 64 }, (_, i) => Math.fround(1 + ((i * 2654435761) % 2 ** 23) / 2 ** 23))
          : [1 + 2 ** -40, 1 - 2 ** -45, 3 + 2 ** -30];
      const ys = [...xs].reverse();
      const zs = xs.map((x, i) => as(d, -x * ys[i]!));
      for (const op of ['FMA', 'MULADD'] as const) {
        const all = lanesOf(d).map((lanes) =>
          run(
            d,
            lanes,
            [
              [d, xs],
              [d, ys],
              [d, zs],
            ],
            (b, [x, y, z]) => b.e.intern(op, d, lanes, [x!, y!, z!]),
            fused,
          ),
        );
        for (const got of all) same(got, all[0]!, `${op} ${d}`);
        if (d === 'float32')
          same(
            all[0]!,
            xs.map((x, i) => Math.fround(x * ys[i]! + zs[i]!)),
            `${op} ${bits}`,
          );
        else expect(all[0]!.some((x) => x !== 0)).toBe(true);
      }
    }
  });

  it.runIf(features.laneSelect)('WHERE with relaxed lane selection', () => {
    for (const d of Object.keys(arrays) as Tested[]) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      const cond = x.map((_, i) => (i % 3 === 0 ? 1 : 0));
      for (const lanes of lanesOf(d)) {
        checkWhere(d, lanes, cond, x, y, fused);
      }
    }
  });

  it('MULADD without fused hardware, and on integers', () => {
    for (const d of ['float32', 'float64', 'int32'] as const) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      for (const lanes of lanesOf(d)) {
        const got = run(
          d,
          lanes,
          [
            [d, x],
            [d, y],
            [d, y],
          ],
          (b, [p, q, r]) => b.e.intern('MULADD' as TernaryOp, d, lanes, [p!, q!, r!]),
        );
        const product = (a: number, c: number): number => (d === 'int32' ? Math.imul(a, c) : as(d, a * c));
        same(
          got,
          x.map((v, i) => as(d, product(v, y[i]!) + y[i]!)),
          `MULADD ${d} x ${lanes}`,
        );
      }
    }
  });
});
