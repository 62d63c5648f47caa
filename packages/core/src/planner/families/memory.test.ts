/** Memory of plans for classes of sizes: temporaries take what the bound size needs, not what the greatest of the class would. */
import { createNullEngine } from '@polygrad/testing';
import { afterEach, expect, it } from 'vitest';
import {
  concat,
  matmul,
  memory,
  relu,
  scope,
  setDynamicSizes,
  setEngine,
  softmax,
  stats,
  sum,
  tensor,
  zeros,
} from '../../index.ts';

afterEach(() => {
  setDynamicSizes('automatic');
});

/** Layers on `n` rows. */
const layers = (n: number): number[] => {
  scope(() => {
    let x = tensor(new Float32Array(n * 64), { shape: [n, 64] });
    const weights = zeros([64, 64]);
    for (let i = 0; i < 3; i++) x = relu(matmul(x, weights));
    return sum(x);
  }).dispose();
  return [n];
};

/** Weights of attention, with scores in memory. */
const scores = (n: number): number[] => {
  scope(() => {
    const x = tensor(new Float32Array(4 * n * 16), { shape: [4, n, 16] });
    return matmul(softmax(matmul(x, x.transpose(-1, -2)), -1), x);
  }).dispose();
  return [n];
};

/** Products of two kinds of scores at once, which are stored side by side in memory. */
const joined = (n: number): number[] => {
  scope(() => {
    const x = tensor(new Float32Array(4 * n * 16), { shape: [4, n, 16] });
    const s = matmul(x, x.transpose(-1, -2));
    return sum(matmul(concat([softmax(s, -1), relu(s)], 0), concat([x, x], 0)));
  }).dispose();
  return [n];
};

/** Groups of threads, whose plans serve sizes between two powers of two. */
const threads = { simt: true, maxGroup: 256, sharedBytes: 16384 };

/** The most memory in use at `n`, after sizes that share a plan with it where they may. */
async function peakAt(
  f: (n: number) => number[],
  n: number,
  sizes: 'automatic' | 'never',
  options: Parameters<typeof createNullEngine>[0] = {},
): Promise<number> {
  setDynamicSizes(sizes);
  await setEngine(createNullEngine(options));
  const before = 'simt' in options ? [257, 258] : [9, 10];
  for (const size of [...before, n]) f(size);
  if (sizes === 'automatic') expect(stats().families).toBe(1);
  return memory().peakBytes;
}

/** Copies that products make of factors have room for the greatest size. */
const copies = 2 * 4 * 16 * 511 * 4;

it('rows take as much as in a plan of their own', async () => {
  const own = await peakAt(layers, 40, 'never');
  expect(await peakAt(layers, 40, 'automatic')).toBeLessThan(1.1 * own);
});

it('rows take as much as in a plan of their own where groups have several threads', async () => {
  const own = await peakAt(layers, 260, 'never', threads);
  expect(await peakAt(layers, 260, 'automatic', threads)).toBeLessThan(1.1 * own);
});

it('square matrices take as much as in a plan of their own', async () => {
  for (const n of [16, 64, 200, 511]) {
    const own = await peakAt(scores, n, 'never');
    expect(await peakAt(scores, n, 'automatic')).toBeLessThan(Math.max(1.1 * own, own + copies));
  }
});

it('so do matrices that are joined', async () => {
  const own = await peakAt(joined, 40, 'never');
  expect(await peakAt(joined, 40, 'automatic')).toBeLessThan(own + 2 * copies);
});
