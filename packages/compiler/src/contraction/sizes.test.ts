/** Contractions with loops that end at a size given at dispatch: rows, sums and batches, for many sizes of one lowering. */
import { describe, expect, it } from 'vitest';
import {
  checkSizes,
  machineCapsOf,
  type Making,
  type Parts,
  processorCaps,
  threadCaps,
  vectorCaps,
} from './fixtures/cases.ts';
import { base } from './fixtures/convolutions.ts';
import {
  allCaps,
  bothCaps,
  checkConvolution,
  checkProduct as check,
  checkRandom,
  dice,
  geometries,
  product,
  type Product,
} from './fixtures/sized.ts';
import { processorContraction } from './transposed-results.ts';
import { isWhole, sampled } from '../fixtures/everyday.ts';

const classes: readonly (readonly [number, number])[] = [
  [4, 7],
  [8, 17],
  [32, 67],
];

/** The size that tells whether tiles are worth it. */
const typical = ([least, most]: readonly [number, number]): number => Math.round(Math.sqrt(least * most));

/** How long another loop must be for that, where all others have so many turns. */
const enough = (sizes: readonly [number, number], others: number): number =>
  Math.ceil(4096 / (typical(sizes) * others));

/** A processor whose facts are known, with vectors of several widths. */
const machine = machineCapsOf(64);

const epilogues = [undefined, 'relu', 'add', 'mask'] as const;

describe('sizes given at dispatch', () => {
  const transposes = [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ] as const;

  for (const [transposeA, transposeB] of isWhole ? transposes : transposes.slice(1, 3)) {
    const name = `${transposeA ? 'A^T' : 'A'} ${transposeB ? 'B^T' : 'B'}`;

    it(`rows, ${name}`, () => {
      const roll = dice(3);
      for (const [i, sizes] of classes.entries()) {
        const [n, k] = [roll(8, 40), roll(8, 60)];
        const epilogue = epilogues[(i + Number(transposeA) + 2 * Number(transposeB)) % 4];
        check({ sizes, m: -1, n, k: Math.max(k, enough(sizes, n)), transposeA, transposeB, epilogue }, roll);
      }
    });

    it(`sum, ${name}`, () => {
      const roll = dice(4);
      for (const sizes of classes) {
        const [n, m] = [roll(10, 40), roll(7, 40)];
        check({ sizes, m: Math.max(m, enough(sizes, n)), n, k: -1, transposeA, transposeB }, roll);
        check({ sizes, m: 9, n: 70, k: -roll(2, 5), transposeA, transposeB }, roll);
      }
    });

    it(`batches, ${name}`, () => {
      const roll = dice(5);
      for (const sizes of classes) {
        const [m, n, k] = [roll(5, 12), roll(8, 20), roll(5, 20)];
        const all = Math.max(k, enough(sizes, n * Math.min(m, 6)));
        check({ sizes, batch: -1, m, n, k: all, transposeA, transposeB }, roll);
        check({ sizes, batch: -3, m: 2, n, k: all, transposeA, transposeB, heads: true }, roll);
      }
    });

    it(`rows and sum, ${name}`, () => {
      const roll = dice(6);
      // Classes take turns; the long tests have all of them.
      const [first, second] = [0, 1].map((i) => classes[(i + Number(transposeA) + 2 * Number(transposeB)) % 3]!);
      const k = (sizes: readonly [number, number], n: number) => -enough(sizes, typical(sizes) * n);
      const n = roll(10, 40);
      check({ sizes: first!, m: -1, n, k: k(first!, n), transposeA, transposeB, epilogue: 'relu' }, roll);
      check({ sizes: second!, m: -roll(2, 4), n: 36, k: k(second!, 36), transposeA, transposeB }, roll);
      check({ sizes: [16, 31], batch: 3, m: -1, n: 32, k: -1, transposeA, transposeB, heads: true }, roll);
    });
  }

  it('rows and batches at once', () => {
    const roll = dice(7);
    for (const sizes of classes.slice(0, 2)) check({ sizes, batch: -1, m: -1, n: 24, k: 19 }, roll);
  });

  it('large enough for panels and parts of sums', () => {
    const roll = dice(8);
    check({ sizes: [64, 131], m: -1, n: 90, k: 290 }, roll, 'float32', bothCaps);
    check({ sizes: [64, 131], m: 64, n: 128, k: -1, transposeA: true }, roll, 'float32', bothCaps);
    check({ sizes: [8, 17], m: 12, n: 530, k: -3, transposeB: true }, roll, 'float32', bothCaps);
    check({ sizes: [32, 67], m: -1, n: 65, k: 48 }, roll);
  });

  it('float64', () => {
    const roll = dice(9);
    check({ sizes: [16, 31], m: -1, n: 21, k: 33, epilogue: 'relu' }, roll, 'float64');
    check({ sizes: [16, 31], m: -1, n: 21, k: 33, epilogue: 'sign' }, roll, 'float64');
    check({ sizes: [16, 31], m: 13, n: 21, k: -2, transposeA: true }, roll, 'float64');
    check({ sizes: [16, 31], batch: -1, m: 13, n: 21, k: 7 }, roll, 'float64');
  });

  it('random products', () => {
    const roll = dice(10);
    for (let i = 0; i < 6; i++) checkRandom(roll);
  });

  it('lanes run along a fixed loop of a sum whose other loop ends at the size', () => {
    const build = (making: Making): Parts => {
      const { e, at, param } = making;
      const size = making.size(4, 11);
      const [i, j, k, s] = [making.range(16), making.range(18), making.range(64), making.range(11, size)];
      const [a, b, y] = [param(16 * 11 * 64), param(18 * 11 * 64), param(16 * 18, 'write')];
      return {
        a: e.load(a, at([i, 11 * 64], [s, 64], [k, 1])),
        b: e.load(b, at([j, 11 * 64], [s, 64], [k, 1])),
        k: [k, s],
        loops: [i, j],
        stores: (sum) => [[y, at([i, 18], [j, 1]), sum]],
      };
    };
    for (const caps of allCaps) {
      const { lowered, worst } = checkSizes('float32', build, [4, 7, 11], caps);
      expect(lowered).not.toBeNull();
      expect(worst).toBeLessThanOrEqual(1);
    }
  });

  it('parts of a sum of one step each: those beyond the size are empty', () => {
    const build = (making: Making): Parts => {
      const { e, at, param } = making;
      const size = making.size(2, 5);
      const [i, j, k, s] = [making.range(8), making.range(8), making.range(3200), making.range(5, size)];
      const [a, b, y] = [param(5 * 8 * 3200), param(5 * 3200 * 8), param(8 * 8, 'write')];
      return {
        a: e.load(a, at([s, 8 * 3200], [i, 3200], [k, 1])),
        b: e.load(b, at([s, 3200 * 8], [k, 8], [j, 1])),
        k: [s, k],
        loops: [i, j],
        stores: (sum) => [[y, at([i, 8], [j, 1]), sum]],
      };
    };
    for (const caps of bothCaps) {
      const { lowered, worst } = checkSizes('float32', build, [2, 3, 5], caps);
      expect(worst).toBeLessThanOrEqual(1);
      if (caps === vectorCaps) expect(lowered?.dispatches.at(-1)?.program.name).toContain('combine');
    }
  });

  it('columns that end at a size are no lanes beside fewer than four rows', () => {
    for (const caps of bothCaps) {
      const rows: Product = { sizes: [32, 67], m: 1, n: -1, k: -1 };
      expect(checkSizes('float32', product(rows), [40], caps).lowered).toBeNull();
    }
  });

  // The greatest, the least, whole tiles alone, and what vectors of each width leave.
  const lengths = ([least, most]: readonly [number, number]): number[] =>
    [least, least + 1, 16, 24, 31, 32, 48, 49, most].filter((n) => n >= least && n <= most);

  it.each([
    ['rows by rows', { m: -1, n: -1, k: 32, transposeB: true }],
    ['rows by columns', { m: -1, n: -1, k: 32 }],
    ['columns by rows', { m: -1, n: -1, k: 32, transposeA: true, transposeB: true }],
    ['every loop', { m: -1, n: -1, k: -1, transposeB: true }],
    ['columns alone', { m: 9, n: -1, k: 70, transposeA: true }],
    ['columns of heads', { m: -1, n: -1, k: 24, transposeB: true, heads: true }],
  ] as const)('columns: %s', (_, shape) => {
    for (const [sizes, dense] of [
      [[9, 50], true],
      [[16, 37], false],
    ] as const) {
      const build = product({ sizes, batch: 2, ...shape, dense, epilogue: epilogues[(shape.m + sizes[0]) % 4] });
      for (const caps of [...bothCaps, machine, processorCaps]) {
        const template = caps === machine ? processorContraction : undefined;
        const { lowered, worst } = checkSizes('float32', build, caps.simt ? [24] : lengths(sizes), caps, template);
        expect(worst).toBeLessThanOrEqual(1);
        if (!caps.simt) expect(lowered).not.toBeNull();
      }
    }
  });

  it('copies no factor whose strides are sizes', () => {
    const build = product({ sizes: [16, 37], batch: 2, m: -1, n: 32, k: -1, dense: true });
    const { lowered, worst } = checkSizes('float32', build, [16, 29, 37], vectorCaps);
    expect(worst).toBeLessThanOrEqual(1);
    expect(lowered!.dispatches.map(({ program }) => program.name)).toEqual(['contraction']);
  });
});

describe('convolutions of a batch given at dispatch', () => {
  for (const [name, change] of sampled(Object.entries(geometries), 2)) {
    it(name, () => {
      const g = { ...base, outputs: 9, size: [6, 10], ...change } as const;
      checkConvolution({ ...g, least: 4, images: 7 }, 'forward', true, [vectorCaps, threadCaps]);
      checkConvolution({ ...g, least: 8, images: 11 }, 'kernelGradient', false, bothCaps);
    });
  }

  it('depthwise', () => {
    const g = { ...base, groups: 9, inputs: 1, outputs: 1, last: true, size: [5, 6], least: 4, images: 7 } as const;
    checkConvolution(g, 'forward', true);
    checkConvolution(g, 'kernelGradient');
  });
});
