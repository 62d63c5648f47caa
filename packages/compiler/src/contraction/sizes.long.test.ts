/** What takes long to interpret of contractions with sizes: large ones, every tile of threads, many random ones, every kind of target. */
import { describe, expect, it } from 'vitest';
import { worthwhile } from './contraction.ts';
import type { ContractionTemplate } from './template.ts';
import { checkSizes, makeCase, processorCaps, threadCaps } from './fixtures/cases.ts';
import { base } from './fixtures/convolutions.ts';
import {
  checkConvolution,
  checkProduct as check,
  checkRandom,
  dice,
  geometries,
  product,
  type Product,
  sizesOf,
} from './fixtures/sized.ts';
import { candidateTiles } from './simt/choose.ts';
import { lowerSimt } from './simt/gemm.ts';

describe('products', () => {
  it('rows and batches at once', () => check({ sizes: [32, 67], batch: -1, m: -1, n: 24, k: 19 }, dice(7)));

  it('large enough for panels, copies by groups, domains and parts of sums', () => {
    const roll = dice(8);
    check({ sizes: [64, 131], m: -1, n: 90, k: 290 }, roll);
    check({ sizes: [64, 131], m: -1, n: 128, k: 64 }, roll);
    check({ sizes: [64, 131], m: 64, n: 128, k: -1, transposeA: true }, roll);
    check({ sizes: [8, 17], m: -1, n: 530, k: 40 }, roll);
    check({ sizes: [8, 17], m: 12, n: 530, k: -3, transposeB: true }, roll);
    check({ sizes: [128, 257], m: 9, n: 16, k: -4, transposeA: true }, roll);
    check({ sizes: [32, 67], m: -1, n: 65, k: 48 }, roll);
  });

  it.each([undefined, 'relu', 'add', 'mask'] as const)('rows, then %s', (epilogue) => {
    const roll = dice(3);
    for (const sizes of [
      [4, 7],
      [8, 17],
      [32, 67],
    ] as const)
      for (const transposeA of [false, true])
        for (const transposeB of [false, true])
          check({ sizes, m: -1, n: roll(18, 40), k: roll(60, 80), transposeA, transposeB, epilogue }, roll);
  });

  it.each([false, true])('rows and sum, transposed A: %s', (transposeA) => {
    const roll = dice(6);
    for (const sizes of [
      [4, 7],
      [8, 17],
      [32, 67],
    ] as const)
      for (const transposeB of [false, true]) {
        const [n, c] = [roll(10, 40), roll(2, 4)];
        const typical = Math.round(Math.sqrt(sizes[0] * sizes[1]));
        const k = -Math.ceil(4096 / (typical * typical * n));
        check({ sizes, m: -1, n, k, transposeA, transposeB, epilogue: 'relu' }, roll);
        check({ sizes, m: -c, n: 36, k, transposeA, transposeB }, roll);
      }
  });

  it.each([10, 11, 12])('random ones, seed %i', (seed) => {
    const roll = dice(seed);
    for (let i = 0; i < 40; i++) checkRandom(roll);
  });

  it('every tile of threads', () => {
    const products: readonly Product[] = [
      { sizes: [8, 15], m: -1, n: 40, k: 20, epilogue: 'relu' },
      { sizes: [8, 15], m: 12, n: 36, k: -3, transposeA: true },
      { sizes: [16, 31], batch: 2, m: -1, n: 8, k: -1, heads: true, epilogue: 'add' },
      { sizes: [64, 127], m: 2, n: -2, k: 33, transposeB: true },
      { sizes: [64, 127], m: 3, n: 2, k: -9 },
    ];
    for (const caps of [threadCaps, processorCaps]) {
      for (const p of products) {
        const build = product(p);
        const { kernel, e } = makeCase('float32', build);
        const count = candidateTiles(worthwhile(kernel, e, caps)!, caps).length;
        expect(count).toBeGreaterThan(3);
        for (let i = 0; i < count; i++) {
          const byTile: ContractionTemplate = (given, factory) => {
            const c = worthwhile(given, factory, caps)!;
            return lowerSimt(c, factory, caps, candidateTiles(c, caps)[i]!);
          };
          const { worst } = checkSizes('float32', build, sizesOf(p.sizes, dice(i), caps), caps, byTile);
          expect(worst, `${JSON.stringify(p)} ${i}`).toBeLessThanOrEqual(1);
        }
      }
    }
  });
});

describe('convolutions', () => {
  for (const [name, change] of Object.entries(geometries)) {
    it(name, () => {
      const g = { ...base, outputs: 9, size: [6, 10], ...change } as const;
      checkConvolution({ ...g, least: 4, images: 7 }, 'forward', true);
      checkConvolution({ ...g, least: 8, images: 11 }, 'kernelGradient');
    });
  }
});
