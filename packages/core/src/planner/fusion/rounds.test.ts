import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import { concat, mseLoss, stats, type Tensor, tensor, valueAndGrad } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => setEngine(createReferenceEngine()));

/** Plans and kernels of each round of a loop. */
async function rounds(
  count: number,
  round: (i: number) => Promise<unknown>,
): Promise<[plans: number, kernels: number][]> {
  const seen: [number, number][] = [];
  for (let i = 0; i < count; i++) {
    const before = stats();
    await round(i);
    const after = stats();
    seen.push([after.planMisses - before.planMisses, after.kernels - before.kernels]);
  }
  return seen;
}

/** The loop does the same work in every round from the fourth on, by a plan that it has. */
function expectSteady(seen: readonly [plans: number, kernels: number][]): void {
  for (const round of seen.slice(3)) expect(round).toEqual([0, seen[3]![1]]);
}

describe('loops that replace their values and read one in every round, without scope', () => {
  it('descend along gradients by one plan', async () => {
    const x = tensor([[-1], [0.5], [2]]);
    const y = tensor([[1], [0], [3]]);
    type Weights = { w: Tensor; b: Tensor };
    const step = valueAndGrad((p: Weights) => mseLoss(x.matmul(p.w).add(p.b), y));
    let p: Weights = { w: tensor([[0]]), b: tensor([0]) };
    let [w, b] = [0, 0];
    const losses: number[] = [];
    const expected: number[] = [];
    const seen = await rounds(12, async () => {
      const [loss, g] = step(p);
      p = { w: p.w.sub(g.w.mul(0.1)), b: p.b.sub(g.b.mul(0.1)) };
      losses.push(await loss.item());
      const errors = [-1, 0.5, 2].map((v, i) => v * w + b - [1, 0, 3][i]!);
      expected.push(errors.reduce((sum, e) => sum + e * e, 0) / 3);
      w -= (0.1 * 2 * errors.reduce((sum, e, i) => sum + e * [-1, 0.5, 2][i]!, 0)) / 3;
      b -= (0.1 * 2 * errors.reduce((sum, e) => sum + e, 0)) / 3;
    });
    losses.forEach((loss, i) => {
      expect(loss).toBeCloseTo(expected[i]!, 4);
    });
    expectSteady(seen);
  });

  it('keep elementwise chains and windows that move along', async () => {
    let state = tensor([1, 2, 3]);
    let window = tensor([0, 0, 0, 0]);
    const seen = await rounds(10, async (i) => {
      state = state.mul(0.5).add(i);
      window = concat([window.narrow(0, 1, 3), state.narrow(0, 0, 1)]);
      await window.sum().item();
    });
    expectSteady(seen);
    let first = 1;
    const firsts = Array.from({ length: 10 }, (_, i) => (first = first * 0.5 + i));
    expect(await window.array()).toEqual(firsts.slice(-4).map((v) => Math.fround(v)));
  });

  it('read at once in the same way', async () => {
    let state = tensor([1, 2, 3]);
    expectSteady(
      await rounds(8, async (i) => {
        state = state.mul(0.5).add(i);
        state.max().itemSync();
      }),
    );
  });

  it('read two values in every round, the second in the same way as the first', async () => {
    let state = tensor([1, 2, 3]);
    const seen = await rounds(8, async (i) => {
      state = state.mul(0.5).add(i);
      const [largest, sum] = [state.max(), state.sum()];
      await Promise.all([largest.item(), sum.item()]);
    });
    expectSteady(seen);
  });
});
