/** Every tile that is measured for a class of sizes computes right results at its least and greatest size, and at one between. */
import { describe, expect, it } from 'vitest';
import { matrixLowering } from '@polygrad/core/engine/threads';
import { findContraction } from '../contraction.ts';
import { checkSizes, makeCase, processorCaps, threadCaps } from '../fixtures/cases.ts';
import { base, convolution } from '../fixtures/convolutions.ts';
import { product } from '../fixtures/sized.ts';
import { sampled } from '../../fixtures/everyday.ts';

const bounds = [8, 19] as const;
const cases = {
  rows: product({ sizes: bounds, m: -1, n: 33, k: 20 }),
  sum: product({ sizes: bounds, m: 18, n: 34, k: -1, transposeA: true }),
  'batch, with something done to the sums': product({ sizes: bounds, m: 9, n: 17, k: 10, batch: -1, epilogue: 'relu' }),
  'rows and columns, few': product({ sizes: bounds, m: -1, n: 3, k: 120 }),
  images: convolution({ ...base, images: 19, least: 8, size: [5, 6], inputs: 4 }, 'forward'),
  'the sum over images': convolution({ ...base, images: 19, least: 8, size: [5, 6], inputs: 4 }, 'kernelGradient'),
};

describe.each(sampled(Object.keys(cases), 2))('tiles for a class of sizes: %s', (name) => {
  const build = cases[name as keyof typeof cases];
  it.each(['threads', 'processors'] as const)('of %s', (kind) => {
    const caps = { ...(kind === 'threads' ? threadCaps : processorCaps), lowering: matrixLowering };
    const { kernel, e } = makeCase('float32', build);
    const ways = caps.lowering.ways!(findContraction(kernel, e)!, kernel, e, caps).map(([tile]) => tile);
    expect(ways.length).toBeGreaterThan(2);
    for (const [i, tile] of ways.entries()) {
      const { worst } = checkSizes('float32', build, [8, 11, 19], caps, (nest, own) => {
        const c = findContraction(nest, own)!;
        return caps.lowering.ways!(c, nest, own, caps)[i]![1]();
      });
      expect(worst, tile).toBeLessThanOrEqual(1);
    }
  });
});
