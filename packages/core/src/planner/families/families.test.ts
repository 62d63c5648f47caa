/** Plans that sizes share, on the engine that checks every access: when they are made and bound, what breaks a guess, what is let go. */
import { stateOf } from '../../runtime/run.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { clearPlans, setDynamicSizes, setEngine, stats, type Tensor, tensor } from '../../index.ts';
import { getEngine } from '../../engine/registry.ts';
import { kinds, numbers, rows, sameAtSizes, valuesOf } from './fixtures/at-sizes.ts';

describe.each(kinds)('%s', (_, options) => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine(options));
    setDynamicSizes('automatic');
  });

  describe('sharing', () => {
    it('makes a plan for each class of sizes', async () => {
      const f = (n: number) => pg.mul(rows(n, 3), 2);
      await sameAtSizes(f, [9]);
      expect(stats()).toMatchObject({ families: 0, binds: 0 });
      await valuesOf(() => f(13));
      expect(stats()).toMatchObject({ families: 1, binds: 1 });
      for (const n of [8, 31, 11]) await valuesOf(() => f(n));
      expect(stats()).toMatchObject({ families: 1, binds: 4 });
      await valuesOf(() => f(32));
      await valuesOf(() => f(127));
      // Little is computed: without threads, 32 to 511 are of the class of 8.
      expect(stats()).toMatchObject({ families: 'simt' in options ? 2 : 1, binds: 6 });
      await valuesOf(() => f(11));
      expect(stats()).toMatchObject({ families: 'simt' in options ? 2 : 1, binds: 6 });
      for (const n of [2, 7, 128, 255, 256]) await valuesOf(() => f(n));
      expect(stats()).toMatchObject({ families: 'simt' in options ? 5 : 2, binds: 11 });
      for (const n of [511, 512, 1023]) await valuesOf(() => f(n));
      expect(stats()).toMatchObject({ families: 'simt' in options ? 6 : 3, binds: 14 });
    });

    it('shares plans of batches at each size of images, though images of several sizes share none', async () => {
      const kernel = rows(3, 2, 3, 3);
      const f = (n: number): Tensor => pg.conv2d(n < 16 ? rows(n, 2, 6, 5) : rows(n, 2, 7, 9), kernel, { padding: 1 });
      // The first batch of either size of images has its own plan, and shows nothing to those of the other.
      expect(await sameAtSizes(f, [9, 12, 10, 17, 19, 23, 21, 11])).toBe(6);
    });

    it('has narrower classes where much is computed', async () => {
      // 511 rows of 1024 numbers, multiplied 200 times: more than 256 MB.
      await setEngine(createNullEngine());
      const f = (n: number): void => {
        const y = pg.scope(() => {
          let x = pg.tensor(new Float32Array(n * 1024), { shape: [n, 1024] });
          for (let i = 0; i < 200; i++) x = pg.mul(x, 0.99);
          return x;
        });
        y.dispose();
      };
      for (const [n, families] of [
        [100, 0],
        [101, 1],
        [128, 2],
        [255, 2],
        [256, 3],
      ] as const) {
        f(n);
        expect(stats(), `at ${n}`).toMatchObject({ families });
      }
    });

    it('begins with the second size where one element became two', async () => {
      const w = (): Tensor => tensor(numbers(2 * 5, 3), { shape: [2, 5] });
      const f = (n: number): Tensor => pg.softmax(pg.matmul(rows(n, 2), w()).add(rows(5)), 1);
      expect(await sameAtSizes(f, [1, 2, 3, 7, 2])).toBe(3);
      expect(stats()).toMatchObject({ families: 1 });
      // Numbers that are not the size, and equal it: of what is held, of what is computed.
      expect(await sameAtSizes((n) => pg.mul(rows(n, 3), pg.broadcastTo(rows(1, 3), [n, 3])), [1, 2, 4])).toBe(2);
      await sameAtSizes((n) => pg.sum(pg.mul(rows(n, 4).reshape([n, 2, 2]), rows(2, 2)), 2), [1, 2, 3, 5]);
      await sameAtSizes((n) => pg.mean(pg.mul(rows(n, 4), pg.broadcastTo(rows(4), [n, 4]))), [1, 2, 3, 5]);
    });

    it('of more than two is a plan of its own after one element', async () => {
      expect(await sameAtSizes((n) => pg.mul(rows(n, 5), rows(5)), [1, 9])).toBe(0);
    });

    it('is not there where it is turned off', async () => {
      const before = stats().binds;
      setDynamicSizes('never');
      for (const n of [5, 6, 7]) await valuesOf(() => pg.add(rows(n), 1));
      expect(stats()).toMatchObject({ families: 0, binds: before });
    });

    it('keeps forms apart that come by turns', async () => {
      const bound = await sameAtSizes(
        (n) => (n % 2 === 0 ? pg.sum(rows(n, 4), 0) : pg.max(rows(n, 4), 1)),
        [9, 10, 11, 12, 13, 14, 15, 8],
      );
      expect(bound).toBe(6);
    });

    it('of attributes that differ otherwise is none', async () => {
      // The same structure and sizes; but which of two axes is summed changes with them.
      await sameAtSizes((n) => pg.sum(tensor(numbers(n * 27), { shape: [n, 3, 3, 3] }), n % 3), [9, 10, 11, 12, 13]);
      await sameAtSizes((n) => pg.sum(rows(n, 3, 3, 3), n === 4 ? 3 : 2), [2, 4, 3, 5, 6]);
    });

    it('takes another guess where a later size breaks the first', async () => {
      // 8 and 12 are twice and three times what follows from them; 9 is not.
      const f = (n: number) => pg.sum(pg.mul(rows(n, 2), Math.floor(n / 4)), 0);
      expect(await sameAtSizes(f, [8, 12, 9, 13, 8, 11, 14])).toBeGreaterThan(2);
      const g = (n: number) =>
        pg.sum(pg.add(rows(n, 2), rows(1, 2 * Math.floor(n / 8)).slice([null, { start: 0, stop: 2 }])), 0);
      await sameAtSizes(g, [8, 16, 9, 17, 24, 13]);
    });

    it('reads constants that were computed before as it reads other data', async () => {
      for (const n of [9, 13, 8, 15, 11]) {
        const held = pg.ones([3, n]);
        pg.flush();
        const sum = pg.sum(pg.mul(held, rows(3, n)), 1);
        const expected = [0, 1, 2].map((row) =>
          numbers(3 * n)
            .slice(row * n, (row + 1) * n)
            .reduce((a, b) => a + b, 0),
        );
        for (const [row, x] of [...(await sum.data())].entries()) expect(x).toBeCloseTo(expected[row]!, 4);
      }
    });

    it('counts sizes that equal other extents', async () => {
      const f = (n: number) => pg.matmul(rows(n, 13), tensor(numbers(13 * 11, 3), { shape: [13, 11] }));
      expect(await sameAtSizes(f, [13, 11, 12, 13, 15, 8])).toBeGreaterThan(3);
      await sameAtSizes((n) => pg.add(rows(n, n), rows(n)), [11, 13, 9, 11]);
    });
  });

  describe('what is kept', () => {
    it('lets kernels go with the last plan that holds them', async () => {
      const state = stateOf(getEngine());
      clearPlans();
      const before = state.kernelCache.size;
      for (const n of [9, 13, 8, 7]) await valuesOf(() => pg.mul(pg.sum(rows(n, 3), 0), 2));
      expect(stats().families).toBe(2);
      expect(state.kernelCache.size).toBeGreaterThan(before);
      clearPlans();
      expect(stats().families).toBe(0);
      expect(state.kernelCache.size).toBe(before);
    });

    it('forgets the form that was used longest ago', async () => {
      const state = stateOf(getEngine());
      clearPlans();
      const chain = (length: number) => (n: number) => {
        let x = rows(n, 2);
        for (let i = 0; i < length; i++) x = pg.mul(x, 1 + (i % 2));
        return x;
      };
      for (const n of [9, 13]) await valuesOf(() => chain(1)(n));
      expect(stats().families).toBe(1);
      for (let length = 2; length < 70; length++) for (const n of [9, 13]) await valuesOf(() => chain(length)(n));
      expect(stats().families).toBeLessThanOrEqual(64);
      const held = new Set<unknown>();
      expect(state.families!.size).toBe(stats().families);
      held.clear();
      clearPlans();
      expect(state.kernelCache.size).toBe(0);
    });

    it('finds sizes behind many forms that share nothing', async () => {
      clearPlans();
      const f = (value: number) => (n: number) =>
        pg.pad(
          rows(n, 3),
          [
            [0, 0],
            [0, 1],
          ],
          { value },
        );
      for (let value = 0; value < 10; value++) await valuesOf(() => f(value)(9 + value));
      expect(stats()).toMatchObject({ families: 0, binds: 0 });
      for (const n of [30, 29, 28]) await valuesOf(() => f(50)(n));
      expect(stats()).toMatchObject({ families: 1, binds: 2 });
    });

    it('gives up where the greatest size of a class has no room and a smaller one has', async () => {
      const engine = createReferenceEngine(options);
      Object.defineProperty(engine, 'caps', { value: { ...engine.caps, maxBufferBytes: 4000 } });
      await setEngine(engine);
      const square = (salt: number): Tensor => tensor(numbers(64, salt), { shape: [8, 8] });
      const f = (n: number): Tensor => pg.sum(pg.matmul(pg.matmul(rows(n, 8), square(1)), square(2)));
      expect(await sameAtSizes(f, [99, 100, 97])).toBe(0);
      expect(await sameAtSizes(f, [9, 12, 11])).toBe(2);
    });

    it('keeps not much more than the greatest size of a class takes, however many operations there are', async () => {
      const engine = createReferenceEngine(options);
      Object.defineProperty(engine, 'caps', { value: { ...engine.caps, maxBufferBytes: 4000 } });
      await setEngine(engine);
      const square = (salt: number): Tensor => tensor(numbers(64, salt), { shape: [8, 8] });
      const f = (n: number): Tensor => {
        let x = rows(n, 8);
        for (let i = 0; i < 60; i++) x = pg.sub(pg.mul(x, 1), 0);
        return pg.sum(pg.matmul(pg.matmul(x, square(1)), square(2)));
      };
      expect(await sameAtSizes(f, [9, 12, 11])).toBe(2);
    });

    it('gives up on a form that differs in no size', async () => {
      const before = stats().binds;
      for (let i = 0; i < 8; i++) await valuesOf(() => pg.flip(rows(9 + i, 2), 0));
      expect(stats()).toMatchObject({ families: 0, binds: before });
    });

    it('refuses modes that are none', () => {
      expect(() => setDynamicSizes('sometimes' as never)).toThrow(/setDynamicSizes.*'sometimes'/);
    });
  });
});

it('large products of a size alone have plans of their own where vectors need a loop of fixed length', async () => {
  await setEngine(createNullEngine());
  setDynamicSizes('automatic');
  const compute = (...shapes: readonly (readonly [number, number])[]): void => {
    const [a, b] = shapes.map(([m, n]) => rows(m, n)) as [Tensor, Tensor];
    const y = pg.matmul(a, b);
    pg.flush();
    for (const t of [a, b, y]) t.dispose();
  };
  for (const n of [150, 200]) compute([n, n], [n, n]);
  expect(stats().binds).toBe(0);
  await setEngine(createNullEngine());
  for (const n of [150, 200]) compute([n, n], [n, 64]);
  expect(stats().binds).toBe(1);
});

it('gradients by weights of large layers with other channels have plans of their own, as vectors have no loop of fixed length', async () => {
  const compute = (channels: number, images: number): void => {
    const [x, w] = [rows(images, channels, 12, 12), rows(channels, channels, 3, 3)];
    const by = pg.grad((k: Tensor) => pg.conv2d(x, k, { padding: 1 }).square().sum())(w);
    pg.flush();
    for (const t of [x, w, by]) t.dispose();
  };
  const binds = async (channels: readonly number[], images: readonly number[]): Promise<number> => {
    await setEngine(createNullEngine());
    setDynamicSizes('automatic');
    for (const [i, n] of channels.entries()) compute(n, images[i]!);
    return stats().binds;
  };
  expect(await binds([72, 96], [16, 16])).toBe(0);
  // Channels are fixed, or there is little to compute.
  expect(await binds([72, 72], [16, 24])).toBeGreaterThan(0);
  expect(await binds([3, 5], [2, 2])).toBeGreaterThan(0);
});
