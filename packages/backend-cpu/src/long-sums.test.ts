/** Long sums of several sizes, one after the other: no digits are lost where sizes share plans. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  clearPlans,
  matmul,
  noGrad,
  permute,
  randn,
  setEngine,
  softmax,
  stats,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { createCpuEngine } from './index.ts';

const engine = await createCpuEngine({ threads: 1 });
beforeAll(async () => setEngine(engine));
afterAll(() => engine.dispose());

const element = Math.fround(0.1);

it.each([
  ['sum', (x: Tensor) => x.sum(), (n: number) => n * element],
  ['mean', (x: Tensor) => x.mean(), () => element],
  ['sum of squares', (x: Tensor) => x.mul(x).sum(), (n: number) => n * element * element],
] as const)('%s of equal numbers, for which every rounding goes the same way', async (_, make, exact) => {
  for (const n of [100_000, 2_200_000, 5_000_000, 2_300_000, 100_000]) {
    const x = tensor(new Float32Array(n).fill(0.1));
    const result = make(x);
    // In one piece they were wrong by 6e-4 and more.
    expect(Math.abs((await result.item()) / exact(n) - 1), `${n} elements`).toBeLessThan(2e-5);
    x.dispose();
    result.dispose();
  }
});

it('short sums share plans, however many there are: scores of attention to a context that grows', async () => {
  clearPlans();
  const { plansMade } = stats();
  for (let n = 2; n < 40; n++) {
    const x = randn([1, 4, n, 16]);
    await x.data();
    const before = stats().plansMade;
    const scores = noGrad(() => softmax(matmul(x, permute(x, [0, 1, 3, 2])), -1));
    const sums = (await scores.sum(-1).data()) as Float32Array;
    expect(sums.every((sum) => Math.abs(sum - 1) < 1e-5)).toBe(true);
    // A plan of its own, one for up to 7 and one for up to 511.
    if (n > 9) expect(stats().plansMade - before, `${n} tokens`).toBe(0);
    x.dispose();
    scores.dispose();
  }
  expect(stats().plansMade - plansMade).toBeGreaterThan(2);
});
