/**
 * Kernels of much work have many threads: what a large device with groups of threads is given, over operations and shapes. Counted on the
 * null engine, which runs nothing.
 */
import { afterAll, describe, expect, it } from 'vitest';
import type { EngineCaps } from '../../engine/engine.ts';
import { setEngine } from '../../engine/registry.ts';
import {
  argMax,
  conv2d,
  cumProd,
  cumSum,
  flush,
  grads,
  indexAdd,
  keep,
  logSumExp,
  profile,
  rand,
  softmax,
  type Tensor,
} from '../../index.ts';
import { threadCaps } from '@polygrad/compiler/contraction/fixtures/cases';
import { createNullEngine } from '@polygrad/testing';

const caps: EngineCaps = { ...threadCaps, maxGroup: 256, sharedBytes: 16384, maxBindings: 8, maxBufferBytes: 2 ** 32 };
const engine = createNullEngine(caps);
await setEngine(engine);
afterAll(() => engine.dispose());

/** Work that is worth many threads, and threads that it must have at least. */
const muchWork = 1e7;
const leastThreads = 4096;

/** Kernels of much work with few threads, in words. */
async function starved(shapes: readonly (readonly number[])[], f: (...args: Tensor[]) => Tensor | readonly Tensor[]) {
  const args = shapes.map((shape) => keep(rand(shape)));
  flush();
  const { kernels } = await profile(() => {
    const out = f(...args);
    for (const t of Array.isArray(out) ? (out as Tensor[]) : [out as Tensor]) keep(t);
  });
  for (const t of args) t.dispose();
  expect(kernels.length).toBeGreaterThan(0);
  return kernels
    .map(({ name, grid, group, flops, bytes }) => ({
      name,
      threads: grid[0] * grid[1] * grid[2] * group[0] * group[1] * group[2],
      work: Math.max(flops, bytes / 4),
    }))
    .filter(({ work, threads }) => work > muchWork && threads < leastThreads)
    .map(({ name, work, threads }) => `${name}: ${work.toExponential(1)} by ${threads} threads`);
}

/** Ten million elements, from one line to one column. */
const long = [
  [10_000_000],
  [3, 3_000_000],
  [3_000_000, 3],
  [31, 300_000],
  [300_000, 33],
  [257, 40_000],
  [100_000, 100],
  [100, 100_000],
  [64, 3, 50_000],
] as const;

describe('kernels of much work have many threads', () => {
  it.each(long.map((shape) => [shape.join(' x '), shape] as const))('along the axes of %s', async (_, shape) => {
    const found: string[] = [];
    // Lines of a few dozen elements are too short to share.
    // Recurrences (the gradient of cumProd) of more than a few lines stay whole: products of their coefficients may overflow.
    for (const axis of shape.map((_, i) => i))
      for (const f of [
        (x: Tensor) => x.sum(axis),
        (x: Tensor) => x.max(axis),
        (x: Tensor) => argMax(x, axis),
        (x: Tensor) => softmax(x, axis),
        (x: Tensor) => logSumExp(x, axis),
        (x: Tensor) => cumSum(x, axis),
        ...(shape.length < 2 ? [(x: Tensor) => grads((t: Tensor) => cumProd(t, axis).sum())(x)] : []),
        (x: Tensor) => grads((t: Tensor) => t.max(axis).sum())(x),
      ])
        if ((shape[axis] as number) > 64) found.push(...(await starved([shape], f)));
    expect(found).toEqual([]);
  });

  it.each([
    [10, 10, 1_000_000],
    [1, 1, 10_000_000],
    [2, 2, 1_000_000],
    [3, 3, 1_000_000],
    [10, 3, 1_000_000],
    [5, 7, 1_000_000],
    [4, 100, 100_000],
    [100, 100, 100_000],
    [33, 257, 100_000],
    [10, 784, 60_000],
    [1, 1000, 100_000],
    [512, 512, 10_000],
  ])('products with %i x %i results of %i', async (m, n, k) => {
    const found = [
      await starved([[m, k], [k, n]], (a, b) => a.matmul(b)), // biome-ignore format: pairs
      await starved([[k, m], [k, n]], (a, b) => a.transpose().matmul(b)), // biome-ignore format: pairs
      await starved([[m, k], [n, k]], (a, b) => a.matmul(b.transpose())), // biome-ignore format: pairs
    ];
    expect(found.flat()).toEqual([]);
  });

  it.each([
    [64, 3, 224, 64, 7],
    [64, 3, 32, 16, 3],
    [128, 1, 28, 8, 5],
    [1, 3, 1000, 3, 3],
  ])(
    'gradients of convolutions of %i images, %i channels of %i squared, by %i kernels of %i',
    async (n, c, h, o, k) => {
      const f = (x: Tensor, w: Tensor): Tensor => conv2d(x, w, { padding: 'same' }).square().sum();
      expect(await starved([[n, c, h, h], [o, c, k, k]], (x, w) => grads(f)(x, w))).toEqual([]); // biome-ignore format: pairs
    },
  );

  it.each([
    [10, 1, 1_000_000],
    [1_000_000, 1, 1_000_000],
    [1000, 64, 100_000],
  ])('sums into %i rows of %i by %i updates', async (rows, width, updates) => {
    const add = (x: Tensor, v: Tensor): Tensor => indexAdd(x, rand([updates]).mul(rows).cast('int32'), v, 0);
    expect(await starved([[rows, width], [updates, width]], add)).toEqual([]); // biome-ignore format: pairs
  });
});
