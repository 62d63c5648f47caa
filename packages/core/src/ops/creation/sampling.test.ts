/** Drawn positions: their frequencies by the chi-square test, what is never drawn, logits left out, and wrong arguments. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

/** Sum of (found - expected)^2 / expected, where something is expected; nothing else may be found. */
function chiSquare(found: readonly number[], shares: readonly number[]): number {
  const counts = shares.map((_, i) => found.filter((v) => v === i).length);
  expect(counts.reduce((a, b) => a + b, 0)).toBe(found.length);
  return shares.reduce((sum, share, i) => {
    if (share === 0) expect(counts[i]).toBe(0);
    const expected = share * found.length;
    return share === 0 ? sum : sum + (counts[i]! - expected) ** 2 / expected;
  }, 0);
}

/** The 99.9th percentile of the distribution, by degrees of freedom. */
const limits = [0, 10.8, 13.8, 16.3, 18.5, 20.5, 22.5] as const;
const weights = [4, 0, 1, 2, 0, 2, 1];
const shares = weights.map((w) => w / 10);
const n = 4000;
const rows = (x: Tensor): Tensor => pg.broadcastTo(x, [n, weights.length]);

describe('draws', () => {
  it('gumbel has its distribution, and no value without a finite number', async () => {
    for (const dtype of ['float32', 'float64'] as const) {
      const drawn = await values(pg.gumbel([n], { key: 1, dtype }));
      expect(drawn.every(Number.isFinite)).toBe(true);
      const mean = drawn.reduce((a, b) => a + b, 0) / n;
      expect(Math.abs(mean - 0.5772156649)).toBeLessThan((3.3 * Math.PI) / Math.sqrt(6 * n));
      // Tenths of its distribution function, exp(-exp(-x)).
      const tenths = drawn.map((x) => Math.floor(10 * Math.exp(-Math.exp(-x))));
      expect(chiSquare(tenths, new Array<number>(10).fill(0.1))).toBeLessThan(27.9);
    }
    expect(pg.gumbel([2], { dtype: 'float16' }).dtype).toBe('float16');
  });

  it('categorical has the frequencies of softmax, at any temperature', async () => {
    const logits = pg.log(pg.tensor(weights));
    for (const [i, temperature] of [1, 0.5, 2].entries()) {
      const powers = weights.map((w) => (w === 0 ? 0 : w ** (1 / temperature)));
      const total = powers.reduce((a, b) => a + b, 0);
      const drawn = await values(pg.categorical(rows(logits), { key: 10 + i, temperature }));
      const wanted = powers.map((w) => w / total);
      expect(chiSquare(drawn, wanted)).toBeLessThan(limits[4]);
    }
    const [one] = await values(pg.categorical(logits.reshape([7, 1]), { axis: 0, temperature: 0 }));
    expect(one).toBe(0);
    expect(pg.categorical(rows(logits)).dtype).toBe('int32');
  });

  it('multinomial has the frequencies, with replacement and without', async () => {
    const p = pg.tensor(weights);
    expect(chiSquare(await values(pg.multinomial(p, n, { replacement: true, key: 3 })), shares)).toBeLessThan(
      limits[4],
    );
    const firsts = await values(pg.multinomial(rows(p), 1, { key: 4 }));
    expect(chiSquare(firsts, shares)).toBeLessThan(limits[4]);
    const pairs = await values(pg.multinomial(rows(p), 2, { key: 5 }));
    expect(
      chiSquare(
        pairs.filter((_, i) => i % 2 === 0),
        shares,
      ),
    ).toBeLessThan(limits[4]);
    // The second one: its share among those left, over all first ones.
    const seconds = shares.map((q, j) =>
      shares.reduce((sum, first, i) => sum + (i === j ? 0 : (first * q) / (1 - first)), 0),
    );
    expect(
      chiSquare(
        pairs.filter((_, i) => i % 2 === 1),
        seconds,
      ),
    ).toBeLessThan(limits[4]);
    for (let i = 0; i < pairs.length; i += 2) expect(pairs[i]).not.toBe(pairs[i + 1]);
  });

  it('repeat with the key, differ without, and share a plan', async () => {
    const p = pg.tensor(weights);
    const draw = (key?: number): Promise<number[]> =>
      values(pg.multinomial(p, 9, { replacement: true, ...(key === undefined ? {} : { key }) }));
    expect(await draw(1)).toEqual(await draw(1));
    expect(await draw(1)).not.toEqual(await draw(2));
    pg.seed(5);
    const first = [await draw(), await draw()];
    expect(first[0]).not.toEqual(first[1]);
    pg.seed(5);
    expect([await draw(), await draw()]).toEqual(first);
    const once = async (temperature: number, mass: number): Promise<void> => {
      const logits = pg.topPLogits(pg.log(p), mass);
      await values(pg.categorical(logits, { temperature }));
    };
    await once(0.7, 0.9);
    const { plansMade } = pg.stats();
    await once(0.8, 0.5);
    expect(pg.stats().plansMade).toBe(plansMade);
  });

  it('never draws what cannot be, even where nothing else is left', async () => {
    const p = pg.tensor([0, 3, 0, 0, 1e-30, 0]);
    expect(new Set(await values(pg.multinomial(p, 2000, { replacement: true, key: 1 })))).toEqual(new Set([1]));
    const all = await values(pg.multinomial(p, 6, { key: 1 }));
    expect(all).toEqual([1, 4, -1, -1, -1, -1]);
    const bad = [
      [0, 0, 0],
      [1, Number.NaN, 1],
      [1, -1, 3],
      [1, Infinity, 1],
      [0, 0, 1],
    ];
    for (const options of [{}, { replacement: true }])
      for (const count of [1, 2]) {
        const drawn = (await pg.multinomial(pg.tensor(bad), count, { ...options, key: 2 }).array()) as number[][];
        for (const line of drawn.slice(0, 4)) expect(line).toEqual(new Array(count).fill(-1));
        expect(drawn[4]?.[0]).toBe(2);
      }
    const logits = [
      [-Infinity, -Infinity],
      [0, Number.NaN],
      [Infinity, 0],
      [-Infinity, -1e4],
    ];
    for (const temperature of [0, 1])
      expect(await values(pg.categorical(pg.tensor(logits), { temperature, key: 3 }))).toEqual([-1, -1, -1, 1]);
    const half = pg.tensor([-65504, -3, -65504], { dtype: 'float16' });
    expect(await values(pg.categorical(pg.broadcastTo(half, [50, 3]), { key: 3 }))).toEqual(new Array(50).fill(1));
    // A temperature near 0 is the greatest, without NaN.
    expect(await values(pg.categorical(pg.tensor([1, 5, 3]), { temperature: 1e-30 }))).toEqual([1]);
  });
});

describe('logits left out', () => {
  const none = -Infinity;

  it('topKLogits keeps the k greatest, and equals', async () => {
    const x = [1, 4, 2, 3, 2];
    expect(await values(pg.topKLogits(pg.tensor(x), 1))).toEqual([none, 4, none, none, none]);
    expect(await values(pg.topKLogits(pg.tensor(x), 3))).toEqual([none, 4, 2, 3, 2]);
    expect(await values(pg.topKLogits(pg.tensor(x), 99))).toEqual(x);
    const columns = await pg
      .topKLogits(
        pg.tensor([
          [1, 9],
          [2, 8],
        ]),
        1,
        { axis: 0 },
      )
      .array();
    expect(columns).toEqual([
      [none, 9],
      [2, none],
    ]);
  });

  it('topPLogits keeps the fewest that have the mass, and equals', async () => {
    const p = [0.1, 0.5, 0.1, 0.25, 0.05];
    const kept = async (mass: number): Promise<boolean[]> =>
      (await values(pg.topPLogits(pg.log(pg.tensor(p)), mass))).map((v) => v !== none);
    expect(await kept(0)).toEqual([false, true, false, false, false]);
    expect(await kept(0.4)).toEqual([false, true, false, false, false]);
    expect(await kept(0.6)).toEqual([false, true, false, true, false]);
    expect(await kept(0.8)).toEqual([true, true, true, true, false]);
    expect(await kept(1)).toEqual([true, true, true, true, true]);
    expect(await values(pg.topPLogits(pg.tensor([none, 0]), 0.5))).toEqual([none, 0]);
    expect(await values(pg.topPLogits(pg.tensor([Number.NaN, 0]), 0.5))).toEqual([Number.NaN, 0]);
    const columns = pg.tensor([
      [0.1, 0.7],
      [0.9, 0.3],
    ]);
    expect(await values(pg.topPLogits(pg.log(columns), 0.5, { axis: 0 }).exp())).toEqual(
      [0, 0.7, 0.9, 0].map(Math.fround),
    );
  });

  it('gradients go to those that are kept', async () => {
    const slope = pg.grad((x: Tensor) => pg.sum(pg.softmax(pg.topKLogits(x, 2)).mul(pg.tensor([1, 2, 3]))));
    const [a, b, c] = await values(slope(pg.tensor([1, 0, 2])));
    expect(b).toBe(0);
    expect(a! + c!).toBeCloseTo(0, 6);
    expect(c!).toBeGreaterThan(0.1);
  });
});

describe('wrong arguments', () => {
  const x = pg.tensor([1, 2]);

  it('are named with what is wanted', () => {
    expect(() => pg.multinomial(x, 3)).toThrow(
      '[multinomial] bad count: 3; must be an integer from 1 to 2 without replacement',
    );
    expect(() => pg.multinomial(x, 0, { replacement: true })).toThrow('bad count: 0; must be an integer from 1');
    expect(() => pg.multinomial(pg.zeros([2, 0]), 1)).toThrow(pg.ShapeError);
    expect(() => pg.categorical(x, { temperature: -1 })).toThrow(
      '[categorical] bad temperature: -1; must be a finite number from 0',
    );
    expect(() => pg.categorical(x, { axis: 1 })).toThrow(pg.ShapeError);
    expect(() => pg.topKLogits(x, 0)).toThrow('[topKLogits] bad k: 0; must be an integer from 1');
    expect(() => pg.topPLogits(x, 1.5)).toThrow('[topPLogits] bad p: 1.5; must be from 0 to 1');
    expect(() => pg.topPLogits(x, Number.NaN)).toThrow(pg.ArgumentError);
    expect(() => pg.gumbel([2], { dtype: 'int32' })).toThrow(pg.DTypeError);
  });
});
