/** Learning rates as steps had them, and weights of classes. */
import { crossEntropy, mseLoss, setEngine, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { Linear } from '../layers/linear.ts';
import { ParameterGroups } from '../optim/groups.ts';
import { SGD } from '../optim/sgd.ts';
import { classWeights } from './class-weights.ts';
import { fit } from './fit.ts';
import { rateMonitor } from './rate-monitor.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const column = { dtype: 'float32', shape: [2, 1], data: new Float32Array([1, 2]) } as const;
const data = Array.from({ length: 3 }, () => ({ x: column, y: column }));

describe('rateMonitor', () => {
  it('tells the rate that each step had, also where it is changed between epochs', async () => {
    const model = new Linear(1, 1);
    const optimizer = new SGD(model.parameters(), { lr: (step: number) => 1 / (step + 10) });
    const monitor = rateMonitor(optimizer);
    const lower = {
      onEpochEnd() {
        optimizer.learningRate = 0.001;
      },
    };
    const options = { optimizer, loss: mseLoss, epochs: 2, callbacks: [monitor, lower] };
    await fit(model, data, options);
    expect(monitor.points).toEqual([
      { step: 1, epoch: 0, rates: [1 / 10] },
      { step: 2, epoch: 0, rates: [1 / 11] },
      { step: 3, epoch: 0, rates: [1 / 12] },
      { step: 4, epoch: 1, rates: [0.001] },
      { step: 5, epoch: 1, rates: [0.001] },
      { step: 6, epoch: 1, rates: [0.001] },
    ]);
    await fit(model, data, { ...options, epochs: 1 });
    expect(monitor.points.length).toBe(3);
  });

  it('tells the rates of groups, every so many steps', async () => {
    const model = new Linear(1, 1);
    const optimizer = new ParameterGroups(SGD, [
      { parameters: [model.weight], lr: 0.1 },
      { parameters: [model.bias!], lr: 0.01 },
    ]);
    const monitor = rateMonitor(optimizer, { every: 2 });
    await fit(model, data, { optimizer, loss: mseLoss, epochs: 2, callbacks: [monitor] });
    expect(monitor.points.map(({ step }) => step)).toEqual([2, 4, 6]);
    expect(monitor.points[0]!.rates).toEqual([0.1, 0.01]);
    expect(() => rateMonitor(null as never)).toThrow(NnError);
    expect(() => rateMonitor(optimizer, { every: 0 })).toThrow(/every is 0/);
  });
});

describe('classWeights', () => {
  it("has scikit-learn's numbers, and makes classes count the same", async () => {
    // The example of the documentation of compute_class_weight.
    expect([...(await classWeights([1, 1, 1, 1, 0, 0]).data())]).toEqual([1.5, 0.75]);
    const labels = Int32Array.of(0, 0, 0, 2, 2, 0, 0, 2);
    const weight = classWeights(labels, { classes: 4 });
    expect([...(await weight.data())]).toEqual([Math.fround(8 / 20), 0, Math.fround(8 / 12), 0]);
    // Rows of class 2 alone are wrong by ln(e + 3) - 1; each class has half of the weight.
    const logits = tensor(Array.from(labels, (label) => (label === 2 ? [0, 0, 1, 0] : [0, 0, 0, 0])));
    const value = Number(await crossEntropy(logits, tensor(labels), { weight }).item());
    expect(value).toBeCloseTo((Math.log(4) + Math.log(Math.E + 3) - 1) / 2, 5);
  });

  it('refuses what is no label', () => {
    for (const labels of [[], [-1], [0.5], ['a'], null, 5])
      expect(() => classWeights(labels as never)).toThrow(NnError);
    expect(() => classWeights([0, 3], { classes: 3 })).toThrow(/there is a label 3; with 3 classes/);
  });
});
