/** A device that goes away in the middle of fit(): the weights survive, and training goes on with them. */
import { DeviceLostError, getEngine, mseLoss, registerBackend, seed, setEngine, setRecovery } from '@polygrad/core';
import { createFaultyEngine, createReferenceEngine, type FaultyEngine } from '@polygrad/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { Linear } from '../layers/linear.ts';
import { hostState } from '../module/state.ts';
import { Adam } from '../optim/adam.ts';
import type { TrainBatch } from './batch.ts';
import { fit, type History } from './fit.ts';

afterEach(() => void setRecovery({}));

/** Rows of y = 2 a - 3 b + 1. */
const batches: TrainBatch[] = Array.from({ length: 8 }, (_, i) => {
  const rows = Array.from({ length: 4 }, (_, j) => [Math.sin(4 * i + j), Math.cos(3 * (4 * i + j))]);
  return {
    x: { dtype: 'float32', shape: [4, 2], data: new Float32Array(rows.flat()) },
    y: { dtype: 'float32', shape: [4, 1], data: new Float32Array(rows.map(([a, b]) => 2 * a! - 3 * b! + 1)) },
  };
});

describe('fit on a device that is lost', () => {
  it('says so, and goes on from the last copy of parameters and optimizer state when called again', async () => {
    const fresh = (): FaultyEngine => createFaultyEngine(createReferenceEngine({ name: 'gpu', synchronous: false }));
    registerBackend({
      name: 'gpu',
      probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }),
      create: async () => fresh(),
    });
    const gpu = fresh();
    await setEngine(gpu);
    setRecovery({ shadow: true, interval: 0 });
    seed(1);
    using model = new Linear(2, 1);
    using optimizer = new Adam(model.parameters(), { lr: 0.05 });
    const run = (epochs: number): Promise<History> =>
      fit(model, batches, { optimizer, loss: mseLoss, epochs, readEvery: 4 });
    const losses = ({ epochs }: History): number[] => epochs.map(({ loss }) => loss);
    const first = losses(await run(3));
    gpu.arm({ member: 'submit', at: 20, kind: 'lost' });
    await expect(run(6)).rejects.toThrow(DeviceLostError);
    const { weight } = await hostState(model.stateDict());
    expect(weight?.data.length).toBe(2);
    expect(getEngine()).not.toBe(gpu);
    // Not from the start again: the loss goes on falling from where it was.
    const then = losses(await run(30));
    expect(then[0]).toBeLessThan(first[2]!);
    expect(then.at(-1)).toBeLessThan(0.05);
  });
});
