/** fit and evaluate in mixed precision: dtypes inside, scalers, and engines that hold no 16-bit floats. */
import { memory, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

const data = (): nn.TrainBatch[] => [
  {
    x: tensor([[-2], [2], [-1], [1]]),
    y: tensor([0, 1, 0, 1], { dtype: 'int32' }),
  },
];

const make = (): [nn.Linear, nn.Optimizer] => {
  const model = new nn.Linear(1, 2, { weightInit: nn.constantInit(0.1), biasInit: nn.constantInit(0) });
  return [model, new nn.Adam(model.parameters(), { lr: 0.1 })];
};

describe('fit in mixed precision', () => {
  it.each(['bfloat16', 'float16'] as const)('learns in %s, and evaluates in it', async (precision) => {
    const [model, optimizer] = make();
    const seen = new Set<string>();
    const loss = (prediction: Tensor, target: Tensor): Tensor => {
      seen.add(prediction.dtype);
      const value = nn.crossEntropy(prediction, target);
      seen.add(value.dtype);
      return value;
    };
    const lessons = data();
    // The scaler of float16 ends with the training; the optimizer keeps its count of skipped steps.
    const { numTensors } = memory();
    const options = { optimizer, loss, epochs: 40, metrics: { accuracy: nn.accuracy }, precision };
    const { epochs } = await nn.fit(model, lessons, { ...options, validation: lessons, clipNorm: 1 });
    expect(memory().numTensors).toBeLessThanOrEqual(numTensors + 1);
    expect([...seen].sort()).toEqual([precision, 'float32'].sort());
    expect(epochs.at(-1)!.validation!.metrics.accuracy).toBe(1);
    expect(model.weight.dtype).toBe('float32');
  });

  it('keeps the state of a scaler that is given', async () => {
    const [model, optimizer] = make();
    const scaler = new nn.GradScaler({ initScale: 2 ** 30, growthInterval: 100 });
    await nn.fit(model, data(), { optimizer, loss: nn.crossEntropy, epochs: 30, precision: 'float16', scaler });
    const { scale, skipped } = await scaler.state();
    // Gradients of this scale are infinite in float16 until it has been halved often enough.
    expect(skipped).toBeGreaterThan(8);
    expect(scale).toBe(2 ** (30 - skipped));
    expect(await optimizer.state()).toMatchObject({ steps: 30, skipped });
  });

  it('refuses a scaler without precision, other dtypes, and engines that do not hold the dtype', async () => {
    const [model, optimizer] = make();
    const options = { optimizer, loss: nn.crossEntropy, epochs: 1 };
    await expect(nn.fit(model, data(), { ...options, scaler: new nn.GradScaler() })).rejects.toThrow(
      '[fit] bad scaler',
    );
    await expect(nn.fit(model, data(), { ...options, precision: 'float32' as 'float16' })).rejects.toThrow(
      "[autocast] bad dtype: 'float32'",
    );
    await setEngine(createReferenceEngine({ dtypes: ['float32', 'int32', 'bool'] }));
    await expect(nn.fit(model, data(), { ...options, precision: 'float16' })).rejects.toThrow(
      "[autocast] engine 'reference' holds no float16",
    );
    await expect(nn.evaluate(model, data(), { loss: nn.crossEntropy, precision: 'bfloat16' })).rejects.toThrow(
      'no bfloat16',
    );
  });
});
