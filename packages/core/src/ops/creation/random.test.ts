/** Random numbers: repeated by key, with the moments of their distributions, permutations, dropout. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, range, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('random numbers', () => {
  it('repeat with the key and differ without', async () => {
    expect(await values(pg.rand([5], { key: 3 }))).toEqual(await values(pg.rand([5], { key: 3 })));
    expect(await values(pg.rand([5], { key: 3 }))).not.toEqual(await values(pg.rand([5], { key: 4 })));
    pg.seed(1);
    const first = await values(pg.rand([5]));
    const second = await values(pg.rand([5]));
    expect(first).not.toEqual(second);
    pg.seed(1);
    expect(await values(pg.rand([5]))).toEqual(first);
    const [a, b] = pg.splitKey(pg.randomKey(1)) as [pg.RandomKey, pg.RandomKey];
    expect(a).not.toEqual(b);
    expect(() => pg.randomKey(0.5)).toThrow(/\[randomKey\]/);
  });

  it('have the moments of their distributions', async () => {
    const n = 4000;
    for (const dtype of ['float32', 'float64'] as const) {
      const u = await values(pg.rand([n], { key: 1, dtype }));
      expect(Math.min(...u)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...u)).toBeLessThan(1);
      expect(u.reduce((s, v) => s + v, 0) / n).toBeCloseTo(0.5, 1);
      const z = await values(pg.randn([n], { key: 2, dtype }));
      expect(z.every(Number.isFinite)).toBe(true);
      expect(Math.abs(z.reduce((s, v) => s + v, 0) / n)).toBeLessThan(0.06);
      expect(z.reduce((s, v) => s + v * v, 0) / n).toBeCloseTo(1, 0);
    }
    const k = await values(pg.randint(-2, 3, [n], { key: 3 }));
    expect([...new Set(k)].sort((p, q) => p - q)).toEqual([-2, -1, 0, 1, 2]);
    const coins = await values(pg.bernoulli(0.25, [n], { key: 4 }));
    expect(Math.abs(coins.reduce((s, v) => s + v, 0) / n - 0.25)).toBeLessThan(0.03);
    expect(await values(pg.bernoulli(f64([0, 1]), undefined, { key: 1 }))).toEqual([0, 1]);
  });

  it('permutation is a permutation', async () => {
    const order = await values(pg.permutation(100, { key: 5 }));
    expect([...order].sort((p, q) => p - q)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(order).not.toEqual([...order].sort((p, q) => p - q));
    expect(pg.permutation(range([3, 2]), { axis: 1 }).shape).toEqual([3, 2]);
  });

  it('permutation goes through the positions from the end, with words of Threefry for each', async () => {
    // Salmon et al., 2011: 20 rounds, the key's words in turn after every fourth.
    const turns = [13, 15, 26, 6, 17, 29, 16, 24];
    const words = (key: readonly number[], counter: number): [number, number] => {
      const schedule = [key[0]!, key[1]!, key[0]! ^ key[1]! ^ 0x1bd11bda];
      let [x, y] = [(counter + schedule[0]!) | 0, schedule[1]! | 0];
      for (let round = 0; round < 20; round++) {
        x = (x + y) | 0;
        const by = turns[round % 8]!;
        y = ((y << by) | (y >>> (32 - by))) ^ x;
        if (round % 4 !== 3) continue;
        const group = (round + 1) / 4;
        x = (x + schedule[group % 3]!) | 0;
        y = (y + schedule[(group + 1) % 3]! + group) | 0;
      }
      return [x >>> 0, y >>> 0];
    };
    for (const n of [1, 2, 256, 257, 258, 600]) {
      const key = [4294967295 - n, 3e9] as const;
      const order = Array.from({ length: n }, (_, i) => i);
      for (let i = n - 1; i > 0; i--) {
        const [high, low] = words(key, i);
        const j = Math.floor(((Math.floor(high / 32) * 2 ** 26 + Math.floor(low / 64)) / 2 ** 53) * (i + 1));
        [order[i], order[j]] = [order[j]!, order[i]!];
      }
      expect(await values(pg.permutation(n, { key })), `${n}`).toEqual(order);
    }
  });

  it('dropout keeps the mean and passes gradients where it keeps', async () => {
    const y = await values(pg.dropout(pg.ones([4000]), { p: 0.25, key: 6 }));
    const kept = y.filter((v) => v !== 0);
    expect(new Set(kept).size).toBe(1);
    expect(kept[0]).toBeCloseTo(4 / 3, 5);
    expect(Math.abs(kept.length / 4000 - 0.75)).toBeLessThan(0.03);
    expect(await values(pg.dropout(pg.ones([3]), { p: 0.5, training: false }))).toEqual([1, 1, 1]);
    expect(await values(pg.dropout(pg.ones([3]), { p: 1 }))).toEqual([0, 0, 0]);
    const g = await values(pg.grad((x: Tensor) => pg.sum(pg.dropout(x, { p: 0.25, key: 6 })))(pg.ones([4000])));
    expect(g).toEqual(y);
  });

  it('make no new plan when repeated', async () => {
    const draw = async (): Promise<void> => {
      const t = pg.randn([8]);
      await t.data();
      t.dispose();
    };
    await draw();
    const before = pg.stats().planMisses;
    await draw();
    await draw();
    expect(pg.stats().planMisses).toBe(before);
  });
});
