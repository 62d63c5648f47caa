/** Normalisation: running statistics, groups, and what is refused. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, near } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('normalisation', () => {
  it('batchNorm uses and updates running statistics', async () => {
    const x = f64([
      [1, 10],
      [3, 30],
    ]);
    const runningMean = f64([0, 0]);
    const runningVar = f64([1, 1]);
    const y = pg.batchNorm(x, {
      training: true,
      runningMean,
      runningVar,
      eps: 0,
      weight: f64([2, 1]),
      bias: f64([0, 5]),
    });
    await near(y, [-2, 4, 2, 6]);
    await near(runningMean, [0.2, 2]);
    // Unbiased variances are 2 and 200.
    await near(runningVar, [1.1, 20.9]);
    await near(pg.batchNorm(x, { runningMean: f64([1, 10]), runningVar: f64([4, 100]), eps: 0 }), [0, 0, 1, 2]);
    expect(() => pg.batchNorm(x)).toThrow(/\[batchNorm\].*statistics/);
    // As PyTorch, which has no variance of one number either.
    for (const shape of [
      [1, 2],
      [1, 2, 1, 1],
      [0, 2],
    ])
      expect(() => pg.batchNorm(pg.ones(shape), { training: true })).toThrow(
        /\[batchNorm\].*per channel in training.*dropLast/,
      );
    expect(pg.batchNorm(pg.ones([1, 2, 1, 2]), { training: true }).shape).toEqual([1, 2, 1, 2]);
  });

  it('does not put running statistics into the gradient', async () => {
    const runningMean = f64([0]);
    const runningVar = f64([1]);
    const f = (t: Tensor): Tensor =>
      pg.sum(pg.square(pg.batchNorm(t, { training: true, runningMean, runningVar })).mul(f64([[1], [2], [3]])));
    expect(await pg.gradCheck(f, [f64([[1], [2], [5]])])).toBe(true);
    expect(runningMean.requiresGrad).toBe(false);
  });

  it('groupNorm, instanceNorm, rmsNorm', async () => {
    await near(pg.groupNorm(f64([[1, 3, 10, 30]]), { groups: 2, eps: 0 }), [-1, 1, -1, 1]);
    await near(
      pg.instanceNorm(
        f64([
          [
            [1, 3],
            [5, 5],
          ],
        ]),
        { eps: 1e-12 },
      ),
      [-1, 1, 0, 0],
      5e-6,
    );
    await near(pg.rmsNorm(f64([[3, 4]]), { eps: 0 }), [3 / Math.sqrt(12.5), 4 / Math.sqrt(12.5)]);
    expect(() => pg.groupNorm(pg.ones([1, 3]), { groups: 2 })).toThrow(/\[groupNorm\].*3.*2/);
    expect(() => pg.layerNorm(pg.ones([2, 3]), { normalizedShape: [2] })).toThrow(/\[layerNorm\].*\[2\].*\[2, 3\]/);
  });
});

it('softmin takes every dtype that softmax takes, and negates no integer', async () => {
  for (const [dtype, x] of [
    ['bool', [0, 1]],
    ['uint8', [0, 1]],
    ['int8', [-128, -127]],
    ['int32', [-(2 ** 31), -(2 ** 31) + 256]],
    ['uint32', [3, 4]],
  ] as const) {
    const least = pg.softmin(pg.tensor(x, { dtype }));
    expect(least.dtype).toBe('float32');
    const step = Number(x[1]) - Number(x[0]);
    const share = 1 / (1 + Math.exp(-step));
    await near(least, [share, 1 - share], 1e-6);
  }
});
