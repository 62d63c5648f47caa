/** Products of matrices through tiles: transposes, batches, odd sizes, views, gates, epilogues. */
import { describe, expect, it } from 'vitest';
import type { KNode } from '../ir/ir.ts';
import { buffersOf, checkCase, type Making, makeCase, type Parts, runLowered, vectorCaps } from './fixtures/cases.ts';
import { product } from './fixtures/products.ts';
import { lowerContraction } from '@polygrad/core/internals';

describe('much arithmetic behind a product', () => {
  const steps = 12;

  it.each([
    [16, 16, 16],
    [17, 23, 13],
    [37, 40, 30],
    [3, 70, 50],
  ])('is written once for all results of a tile: %d x %d, sums of %d', (m, n, k) => {
    const build = product({ m, n, k }, (making, sum, i, j) => {
      const { e } = making;
      const [y, out] = [making.param(m * n), making.param(m * n, 'write')];
      const at = making.at([i, n], [j, 1]);
      const read = e.load(y, at);
      const value = Array.from({ length: steps }).reduce<KNode>((x) => e.add(e.mul(x, 0.5), read), sum);
      return [[out, at, value]];
    });
    const { copies: _, ...lowering } = vectorCaps.lowering;
    const [once, each] = [vectorCaps, { ...vectorCaps, lowering }].map((caps) => {
      const { lowered, worst } = checkCase('float32', build, caps);
      expect(worst).toBeLessThanOrEqual(1);
      const results = buffersOf(makeCase('float32', build).kernel, (x) => x);
      runLowered(lowered!, results);
      const products = lowered!.dispatches.flatMap(({ program }) =>
        program.body.filter((x) => x.op === 'MUL' && x.dtype === 'float32'),
      );
      return { results, bodies: products.length / steps };
    });
    // The same operations on the same numbers.
    expect(once!.results).toEqual(each!.results);
    expect(once!.bodies).toBeLessThanOrEqual(each!.bodies / 2);
  });
});

describe('tiled products', () => {
  for (const dtype of ['float32', 'float64'] as const) {
    for (const [transposeA, transposeB] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const) {
      it(`${dtype} ${transposeA ? 'A^T' : 'A'} ${transposeB ? 'B^T' : 'B'}`, () => {
        for (const [m, n, k] of [
          [16, 16, 16],
          [17, 23, 13],
          [33, 40, 29],
          [4, 8, 130],
        ] as const) {
          const { lowered, worst } = checkCase(dtype, product({ m, n, k, transposeA, transposeB }));
          expect(lowered).not.toBeNull();
          expect(worst).toBeLessThanOrEqual(1);
        }
      });
    }
  }

  it('every size from 1 to 70', () => {
    for (let x = 1; x <= 70; x++) {
      const [m, n, k] = [
        [x, 13, 17],
        [14, x, 17],
        [13, 18, x],
      ][x % 3] as [number, number, number];
      const { worst } = checkCase('float32', product({ m, n, k }));
      expect(worst, `${m} x ${n} x ${k}`).toBeLessThanOrEqual(1);
    }
  });

  it('large enough for panels, groups and odd rests', () => {
    for (const [m, n, k] of [
      [13, 90, 290],
      [9, 20, 512],
    ] as const) {
      for (const [transposeA, transposeB] of [
        [false, false],
        [true, true],
      ] as const) {
        const { worst } = checkCase('float32', product({ m, n, k, transposeA, transposeB }));
        expect(worst, `${m} x ${n} x ${k}`).toBeLessThanOrEqual(1);
      }
    }
  });

  it('one or two rows and one column more than whole tiles', () => {
    for (const dtype of ['float32', 'float64'] as const) {
      for (const [m, n, k, transposeA] of [
        [41, 33, 19, false],
        [38, 41, 10, false],
        [37, 33, 18, true],
        [45, 37, 9, false],
      ] as const) {
        const { lowered, worst } = checkCase(dtype, product({ m, n, k, transposeA }));
        expect(lowered?.dispatches.length).toBe(1);
        expect(worst, `${m} x ${n} x ${k}`).toBeLessThanOrEqual(1);
      }
    }
    const batches = checkCase('float32', product({ batch: 3, m: 33, n: 41, k: 17 }));
    expect(batches.worst).toBeLessThanOrEqual(1);
    const added = product({ m: 41, n: 41, k: 17 }, (making, sum, i, j) => {
      const y = making.param(41 * 41, 'readwrite');
      const index = making.at([i, 41], [j, 1]);
      return [[y, index, making.e.add(sum, making.e.load(y, index))]];
    });
    expect(checkCase('float32', added).worst).toBeLessThanOrEqual(1);
  });

  it('groups take whole rows of the results, but for the last ones', () => {
    const groupsOf = (m: number, n: number): number | undefined => {
      const { kernel, e } = makeCase('float32', product({ m, n, k: 65 }));
      return lowerContraction(kernel, e, vectorCaps)?.dispatches[0]?.program.grid[0];
    };
    expect(groupsOf(64, 64)).toBe(16);
    expect(groupsOf(65, 65)).toBe(16 + 2);
  });

  it('sums over vectors where both factors are consecutive along the sum', () => {
    for (const [m, n, k] of [
      [2, 40, 65],
      [41, 3, 66],
      [16, 18, 131],
    ] as const) {
      for (const dtype of ['float32', 'float64'] as const) {
        expect(checkCase(dtype, product({ m, n, k, transposeB: true })).worst).toBeLessThanOrEqual(1);
        expect(checkCase(dtype, product({ m, n, k })).worst).toBeLessThanOrEqual(1);
      }
    }
  });

  it('few rows and many columns: groups copy the columns themselves', () => {
    for (const [m, n, k] of [
      [13, 530, 40],
      [33, 517, 24],
    ] as const) {
      const { lowered, worst } = checkCase('float32', product({ m, n, k }));
      expect(worst).toBeLessThanOrEqual(1);
      expect(lowered?.dispatches.length).toBe(1);
    }
  });

  it('factors that stay near the processor are copied by the groups that need them, or read in place', () => {
    for (const [m, n, k, copied] of [
      [129, 129, 129, true],
      [66, 131, 40, false],
    ] as const) {
      const { lowered, worst } = checkCase('float32', product({ m, n, k }));
      const own = lowered?.dispatches.map(({ program }) => program.body.some(({ op }) => op === 'SHARED'));
      expect(own).toEqual([copied]);
      expect(worst).toBeLessThanOrEqual(1);
    }
  });

  it('batches, many of little work and few of much', () => {
    for (const [batch, m, n, k] of [
      [7, 12, 20, 9],
      [100, 5, 6, 7],
      [3, 40, 33, 50],
    ] as const) {
      for (const [transposeA, transposeB] of [
        [false, false],
        [false, true],
        [true, false],
      ] as const) {
        const { lowered, worst } = checkCase('float32', product({ batch, m, n, k, transposeA, transposeB }));
        expect(lowered).not.toBeNull();
        expect(worst).toBeLessThanOrEqual(1);
      }
    }
  });

  it('bias, relu and a second output in one kernel', () => {
    for (const [m, n] of [
      [18, 21],
      [16, 24],
      [5, 70],
    ] as const) {
      const { worst } = checkCase(
        'float32',
        product({ m, n, k: 31 }, (making, sum, i, j) => {
          const { e, at } = making;
          const bias = making.param(n);
          const [y, z] = [making.param(m * n, 'write'), making.param(m * n, 'write')];
          const pre = e.add(sum, e.load(bias, j));
          return [
            [y, at([i, n], [j, 1]), e.max(pre, e.constant(making.dtype, 0))],
            [z, at([j, m], [i, 1]), pre],
          ];
        }),
      );
      expect(worst).toBeLessThanOrEqual(1);
    }
  });

  it('adds in place', () => {
    const { worst } = checkCase(
      'float32',
      product({ m: 37, n: 27, k: 33 }, (making, sum, i, j) => {
        const y = making.param(37 * 27, 'readwrite');
        const index = making.at([i, 27], [j, 1]);
        return [[y, index, making.e.add(sum, making.e.load(y, index))]];
      }),
    );
    expect(worst).toBeLessThanOrEqual(1);
  });

  it('epilogues with smaller numbers go through memory', () => {
    const { lowered, worst } = checkCase(
      'float64',
      product({ m: 20, n: 26, k: 40 }, (making, sum, i, j) => {
        const { e, at } = making;
        const [y, sign] = [making.param(520, 'write'), making.param(520, 'write', 'float32')];
        const positive = e.lt(e.constant(making.dtype, 0), sum);
        return [
          [y, at([i, 26], [j, 1]), sum],
          [sign, at([i, 26], [j, 1]), e.where(positive, e.f32(1), e.f32(-1))],
        ];
      }),
    );
    expect(lowered?.dispatches.at(-1)?.program.name).toContain('epilogue');
    expect(worst).toBeLessThanOrEqual(1);
  });

  it('a mask as second output', () => {
    const { worst } = checkCase(
      'float32',
      product({ m: 20, n: 26, k: 40 }, (making, sum, i, j) => {
        const [y, positive] = [making.param(520, 'write'), making.param(520, 'write', 'bool')];
        const index = making.at([i, 26], [j, 1]);
        return [
          [y, index, sum],
          [positive, index, making.e.lt(making.e.constant(making.dtype, 1e3), sum)],
        ];
      }),
    );
    expect(worst).toBeLessThanOrEqual(1);
  });

  it('strided, offset, reversed and gated factors, and factors with a prologue', () => {
    const build = (m: Making): Parts => {
      const { e, at } = m;
      const a = m.param(6000);
      const b = m.param(9000);
      const [i, j, k] = [m.range(21), m.range(30), m.range(40)];
      const y = m.param(630, 'write');
      const inside = e.and(e.le(m.i(3), i), e.lt(k, m.i(38)));
      const x = e.load(a, at([i, 130], [k, -3], 500), inside);
      const w = e.load(b, at([k, 200], [j, 2], 17));
      return {
        a: e.max(x, e.constant(m.dtype, 0)),
        b: w,
        k: [k],
        loops: [i, j],
        stores: (sum) => [[y, at([i, 30], [j, 1]), sum]],
      };
    };
    for (const dtype of ['float32', 'float64'] as const) expect(checkCase(dtype, build).worst).toBeLessThanOrEqual(1);
  });

  it('several ranges of each role, in any order of the result', () => {
    const build = (m: Making): Parts => {
      const { e, at } = m;
      const [a, b, y] = [m.param(5 * 6 * 7 * 8), m.param(7 * 8 * 9 * 10), m.param(5 * 6 * 9 * 10, 'write')];
      const [i, i2, k, k2, j, j2] = [5, 6, 7, 8, 9, 10].map((n) => m.range(n)) as [
        KNode,
        ...KNode[],
      ] as never as ReturnType<Making['range']>[];
      const [p, p2, q, q2, r, r2] = [i, i2, k, k2, j, j2] as [never, never, never, never, never, never];
      return {
        a: e.load(a, at([p, 6 * 56], [q, 6 * 8], [p2, 8], [q2, 1])),
        b: e.load(b, at([q2, 7 * 90], [r2, 63], [q, 9], [r, 1])),
        k: [q, q2],
        loops: [r2, p, r, p2],
        stores: (sum) => [[y, at([r2, 270], [p, 54], [r, 6], [p2, 1]), sum]],
      };
    };
    expect(checkCase('float32', build).worst).toBeLessThanOrEqual(1);
  });

  it('makes the same groups for any number of threads', () => {
    const texts = [1, 16].map((parallelism) => {
      const { kernel, e } = makeCase('float32', product({ m: 200, n: 200, k: 64 }));
      const lowered = lowerContraction(kernel, e, { ...vectorCaps, parallelism });
      return lowered?.dispatches.map((d) => d.program.grid.join('x')).join(' ');
    });
    expect(texts[0]).toBe(texts[1]);
    expect(Number(texts[0]?.split(' ').at(-1)?.split('x')[0])).toBeGreaterThanOrEqual(16);
  });

  it.each([
    ['long sums in memory order', { m: 16, n: 8, k: 16 }, ['']],
    ['long sums of a factor that is copied', { m: 16, n: 8, k: 16, transposeB: true }, ['_pack', '']],
    ['too few of them', { m: 8, n: 8, k: 16, transposeB: true }, null],
    ['short sums of few products', { m: 16, n: 8, k: 8 }, null],
    ['short sums in memory order', { m: 64, n: 8, k: 8 }, ['']],
    ['short sums of a factor that registers hold', { m: 64, n: 8, k: 8, transposeB: true }, null],
    ['many of these', { m: 256, n: 8, k: 8, transposeB: true }, ['_pack', '']],
    ['short sums of a larger factor', { m: 64, n: 64, k: 8, transposeB: true }, ['_pack', '']],
  ])('takes or leaves %s', (_, shape, dispatches) => {
    const { lowered } = checkCase('float32', product(shape));
    const endings = lowered?.dispatches.map(({ program }) => /_pack$/.exec(program.name)?.[0] ?? '');
    expect(endings ?? null).toEqual(dispatches);
  });

  it('leaves integers and sums of little work to the plain loop nest', () => {
    const small = makeCase('float32', product({ m: 4, n: 4, k: 4 }));
    expect(lowerContraction(small.kernel, small.e, vectorCaps)).toBeNull();
    const whole = makeCase('int32', product({ m: 40, n: 40, k: 40 }));
    expect(lowerContraction(whole.kernel, whole.e, vectorCaps)).toBeNull();
  });
});
