/** A training on an engine with little memory: batches that do not fit, and that everything goes on after them. */
import { Adam, Linear, ReLU, Sequential, lossAndGrad } from '@polygrad/nn';
import { flush, mseLoss, ones, OutOfMemoryError, scope, setEngine, type Tensor, tensor, zeros } from '@polygrad/core';
import { expect, it } from 'vitest';
import { createCpuEngine } from './index.ts';

it.each([true, false])(
  'batches that do not fit leave the values of the last good step, in a scope: %s',
  async (scoped) => {
    const train = async (batches: readonly number[], memory: number): Promise<{ seen: unknown[]; state: unknown }> => {
      const engine = await createCpuEngine({ threads: 1, memory });
      await setEngine(engine);
      const model = new Sequential(new Linear(16, 32), new ReLU(), new Linear(32, 1));
      for (const [i, p] of model.parameters().entries())
        p.assign(
          ones(p.shape)
            .mul(0.1 * (i + 1))
            .contiguous(),
        );
      const optimizer = new Adam(model.parameters());
      flush();
      const step = (batch: number): Tensor => {
        const x = ones([batch, 16])
          .mul(tensor([0.5]))
          .contiguous();
        const { value, grads } = lossAndGrad(model, () => mseLoss(model.forward(x), zeros([batch, 1])));
        optimizer.step(grads);
        return value;
      };
      const seen: unknown[] = [];
      for (const batch of batches) {
        try {
          const loss = scoped ? scope(() => step(batch)) : step(batch);
          seen.push(await loss.item());
        } catch (error) {
          seen.push((error as Error).name);
        }
      }
      const state = [await Promise.all(model.parameters().map((p) => p.array())), await optimizer.state()];
      expect(await scope(() => tensor([1]).add(1)).array()).toEqual([2]);
      engine.dispose();
      return { seen, state };
    };
    const good = await train([64, 64, 32], 1 << 30);
    const tight = await train([64, 400_000, 64, 400_000, 400_000, 32], 32 << 20);
    expect(tight.seen.filter((item) => typeof item === 'number')).toEqual(good.seen);
    expect(tight.seen.filter((item) => item === OutOfMemoryError.name)).toHaveLength(3);
    expect(tight.state).toEqual(good.state);
  },
);
