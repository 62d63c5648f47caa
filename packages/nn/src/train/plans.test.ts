/** What a training step costs besides arithmetic: plans, kernels and memory, on an engine that computes nothing. */
import {
  clearPlans,
  crossEntropy,
  memory,
  scope,
  seed,
  setDynamicSizes,
  setEngine,
  stats,
  tensor,
} from '@polygrad/core';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { ReLU } from '../layers/activation.ts';
import { Conv2d } from '../layers/conv.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm2d } from '../layers/norm.ts';
import { MaxPool2d } from '../layers/pool.ts';
import { Flatten } from '../layers/shape.ts';
import { Sequential } from '../module/sequential.ts';
import { Adam } from '../optim/adam.ts';
import { clipGradNorm } from '../optim/clip.ts';
import type { Optimizer } from '../optim/optimizer.ts';
import { cosineDecay } from '../optim/schedule.ts';
import { SGD } from '../optim/sgd.ts';
import { lossAndGrad } from './loss-and-grad.ts';

beforeEach(async () => {
  await setEngine(createNullEngine());
});

function network(): Sequential {
  return new Sequential(
    new Conv2d(1, 4, 3, { padding: 'same' }),
    new BatchNorm2d(4),
    new ReLU(),
    new MaxPool2d(2),
    new Flatten(),
    new Dropout(0.25),
    new Linear(4 * 16, 10),
  );
}

function step(model: Sequential, optimizer: Optimizer, clip: boolean): void {
  scope(() => {
    const x = tensor(new Float32Array(8 * 64), { shape: [8, 1, 8, 8] });
    const y = tensor(new Int32Array(8), { dtype: 'int32' });
    const { grads } = lossAndGrad(model, () => crossEntropy(model.forward(x), y));
    if (clip) clipGradNorm(grads, 1);
    optimizer.step(grads);
  });
}

describe('a training step', () => {
  for (const [name, make] of Object.entries({
    Adam: (model: Sequential) => new Adam(model.parameters(), { lr: cosineDecay(1e-2, { steps: 10 }) }),
    SGD: (model: Sequential) => new SGD(model.parameters(), { lr: cosineDecay(1e-2, { steps: 10 }), momentum: 0.9 }),
  })) {
    for (const clip of [false, true]) {
      it(`with ${name}${clip ? ' and clipping' : ''} is one flush and one plan, whatever the rate`, () => {
        using model = network();
        using optimizer = make(model);
        step(model, optimizer, clip);
        const [before, held] = [stats(), memory()];
        for (let count = 0; count < 5; count++) step(model, optimizer, clip);
        const after = stats();
        expect(after.planMisses - before.planMisses).toBe(0);
        expect(after.flushes - before.flushes).toBe(5);
        expect(memory()).toMatchObject({ numTensors: held.numTensors, numBuffers: held.numBuffers, bytes: held.bytes });
      });
    }
  }

  it('updates many parameters in a handful of kernels', () => {
    const layers = Array.from({ length: 12 }, () => new Linear(8, 8));
    using model = new Sequential(...layers);
    using optimizer = new Adam(model.parameters());
    const gradients = () => model.parameters().map(({ shape, size }) => tensor(new Float32Array(size), { shape }));
    optimizer.step(gradients());
    const before = stats();
    optimizer.step(gradients());
    expect(model.parameters().length).toBe(24);
    expect(stats().kernels - before.kernels).toBeLessThanOrEqual(6);
  });
});

describe('batches of several sizes', () => {
  const model = (): Sequential => new Sequential(new Linear(4, 8), new ReLU(), new Linear(8, 3));
  const fill = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => ((i * 7) % 11) / 11 - 0.4);

  /** Losses of steps at these sizes. */
  async function losses(sizes: readonly number[]): Promise<number[]> {
    seed(5);
    using network = model();
    using optimizer = new Adam(network.parameters(), { lr: 0.05 });
    const found: number[] = [];
    for (const n of sizes) {
      const x = tensor(fill(4 * n), { shape: [n, 4] });
      const y = tensor(
        Int32Array.from({ length: n }, (_, i) => i % 3),
        { dtype: 'int32' },
      );
      const value = scope(() => {
        const { value, grads } = lossAndGrad(network, () => crossEntropy(network.forward(x), y));
        optimizer.step(grads);
        return value;
      });
      found.push(await value.item());
      for (const t of [x, y, value]) t.dispose();
    }
    return found;
  }

  // With 8 rows the data has the shape of the first weight.
  it.each([[[20, 33, 9, 20]], [[8, 31, 200, 8]]])('of sizes %j share the plan of the first', async (sizes) => {
    await setEngine(createReferenceEngine());
    setDynamicSizes('never');
    const expected = await losses(sizes);
    setDynamicSizes('automatic');
    clearPlans();
    const { plansMade, families } = stats();
    const found = await losses(sizes);
    for (const [i, x] of expected.entries()) expect(found[i]).toBeCloseTo(x, 5);
    // The parameters are made by a plan of their own.
    expect(stats()).toMatchObject({ plansMade: plansMade + 2, families: families + 1 });
  });

  it('of one size have its plan where much is computed, and on groups of threads', async () => {
    const kinds = [
      [{}, 4096],
      [{ simt: true, maxGroup: 32 }, 8],
    ] as const;
    for (const [options, width] of kinds) {
      await setEngine(createNullEngine(options));
      using wide = new Sequential(new Linear(4, width), new ReLU(), new Linear(width, 3));
      using optimizer = new Adam(wide.parameters());
      const { families } = stats();
      scope(() => {
        const x = tensor(fill(80), { shape: [20, 4] });
        const { grads } = lossAndGrad(wide, () =>
          crossEntropy(wide.forward(x), tensor(new Int32Array(20), { dtype: 'int32' })),
        );
        optimizer.step(grads);
      });
      expect(stats().families).toBe(families);
    }
  });
});
