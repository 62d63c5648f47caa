/** Trainings whose steps are replayed (`compile`) against the same trainings without, bit for bit. */
import { compile, crossEntropy, flush, memory, rand, seed, setEngine, stats, type Tensor, where } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { ReLU } from '../layers/activation.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm1d } from '../layers/norm.ts';
import { Sequential } from '../module/sequential.ts';
import { hostState } from '../module/state.ts';
import { Adam } from '../optim/adam.ts';
import { cosineDecay } from '../optim/schedule.ts';
import type { BatchTransform } from './augment.ts';
import type { TrainBatch } from './batch.ts';
import { fit, type FitOptions } from './fit.ts';
import { accuracy } from './meter.ts';
import { recall } from './metrics/classes.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

/** Three classes by the angle of a point, in batches of four and a last one of two. */
const batches: TrainBatch[] = [4, 4, 4, 4, 4, 2].map((rows, batch) => {
  const angles = Array.from({ length: rows }, (_, row) => (2.4 * (4 * batch + row)) % (2 * Math.PI));
  return {
    x: {
      dtype: 'float32',
      shape: [rows, 2],
      data: Float32Array.from(angles.flatMap((a) => [Math.sin(a), Math.cos(a)])),
    },
    y: { dtype: 'int32', shape: [rows], data: Int32Array.from(angles, (a) => Math.floor((3 * a) / (2 * Math.PI))) },
  };
});

/** Turns some rows around, and computes that apart from the step, as it is before a replay: fused with it sums may be rounded otherwise. */
const mirrored: BatchTransform = (x, y) => {
  const found = where(rand([x.shape[0]!, 1]).greater(0.5), x, x.mul(-1));
  flush();
  return [found, y];
};

/** Reports and weights of a training, and how many of its steps were replayed. */
async function trained(
  options: Partial<FitOptions>,
  compiled: boolean,
): Promise<{ found: unknown; replays: number; losses: number[] }> {
  seed(5);
  using model = new Sequential(new Linear(2, 6), new BatchNorm1d(6), new ReLU(), new Dropout(0.2), new Linear(6, 3));
  using optimizer = new Adam(model.parameters(), { lr: cosineDecay(0.05, { steps: 24 }) });
  const before = stats().replays;
  const losses: number[] = [];
  const { epochs } = await fit(model, batches, {
    optimizer,
    loss: crossEntropy,
    metrics: { accuracy },
    epochs: 4,
    readEvery: 2,
    callbacks: [{ onStep: ({ loss }) => void losses.push(loss ?? -1) }],
    ...options,
    ...(compiled && { compile }),
  });
  const found = {
    epochs: epochs.map(({ loss, metrics, steps }) => ({ loss, metrics, steps })),
    weights: await hostState(model.stateDict()),
    state: await optimizer.state(),
  };
  return { found, replays: stats().replays - before, losses };
}

describe('fit with compile', () => {
  const cases: Readonly<Record<string, Partial<FitOptions>>> = {
    plain: {},
    'norms of gradients': { clipNorm: 0.5 },
    transforms: { transforms: [mirrored] },
    'counted metrics': { metrics: { recall: recall({ classes: 3 }) } },
    validation: { validation: batches.slice(0, 2) },
    'mixed precision': { precision: 'float16' },
  };
  it.each(Object.entries(cases))('does what fit does: %s', async (_, options) => {
    const plain = await trained(options, false);
    const { numTensors } = memory();
    const replayed = await trained(options, true);
    expect(replayed.found).toEqual(plain.found);
    expect(replayed.losses).toEqual(plain.losses);
    expect(plain.replays).toBe(0);
    // Of 24 steps the first two of each size are recorded, and some are compared.
    expect(replayed.replays).toBeGreaterThan(8);
    expect(stats().recordings).toBe(0);
    expect(memory().numTensors).toBe(numTensors);
  });

  it('tells of losses that are not finite, and refuses what is no function', async () => {
    const loss = (p: Tensor, y: Tensor): Tensor => crossEntropy(p, y).mul(Number.POSITIVE_INFINITY);
    await expect(trained({ loss }, true)).rejects.toThrow('[fit] the loss became');
    expect(stats().recordings).toBe(0);
    await expect(trained({ compile: true as never }, false)).rejects.toThrow('[fit] bad compile');
  });

  it('notices a loss that does not do what was recorded', async () => {
    let calls = 0;
    const loss = (p: Tensor, y: Tensor): Tensor => crossEntropy(p, y).mul(++calls > 3 ? 2 : 1);
    await expect(trained({ loss, epochs: 40 }, true)).rejects.toThrow(
      '[compile] the function did not do what was recorded',
    );
    expect(stats().recordings).toBe(0);
  });
});

it('what is no replay is refused, and nothing of the training stays', async () => {
  const model = new Sequential(new Linear(2, 3));
  const optimizer = new Adam(model.parameters(), { lr: 0.01 });
  const before = memory().numTensors;
  const failing = (): never => {
    throw new Error('no');
  };
  for (const [compiler, told] of [
    [() => 5, /^\[fit\] .*what compile made/],
    [failing, /^no$/],
  ] as const) {
    const options = { optimizer, loss: crossEntropy, epochs: 1, precision: 'float16' as const };
    const given = { ...options, compile: compiler as unknown as typeof compile };
    await expect(fit(model, batches, given)).rejects.toThrow(told);
    expect(memory().numTensors).toBe(before);
  }
});
