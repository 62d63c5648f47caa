/** A last batch that is smaller: known before the first step, it needs no plan of its own. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { clearPlans, compile, crossEntropy, seed, setDynamicSizes, setEngine, stats } from '@polygrad/core';
import { batches, memoryDataset } from '@polygrad/data';
import { beforeAll, expect, it } from 'vitest';
import { ReLU } from '../layers/activation.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { Sequential } from '../module/sequential.ts';
import { Adam } from '../optim/adam.ts';
import type { BatchSource } from './batch.ts';
import { fit, type FitOptions } from './fit.ts';

const [rows, batchSize] = [44, 16];
const x = {
  dtype: 'float32',
  shape: [rows, 6],
  data: Float32Array.from({ length: rows * 6 }, (_, i) => Math.sin(i)),
} as const;
const y = { dtype: 'int32', shape: [rows], data: Int32Array.from({ length: rows }, (_, i) => i % 3) } as const;
const data = batches(memoryDataset({ x: { array: x }, y: { array: y } }), { batchSize });
/** The same without what tells the size of the last batch. */
const unknown: BatchSource = { epoch: (number) => data.epoch(number), [Symbol.asyncIterator]: () => data.epoch(0) };

beforeAll(async () => {
  await setEngine(await createCpuEngine({ threads: 1 }));
});

async function trained(source: BatchSource, options: Partial<FitOptions> = {}) {
  seed(3);
  clearPlans();
  const model = new Sequential(new Linear(6, 8), new ReLU(), new Dropout(0.3), new Linear(8, 3));
  const optimizer = new Adam(model.parameters(), { lr: 0.05 });
  await Promise.all(model.parameters().map((p) => p.data()));
  const { plansMade } = stats();
  let calls = 0;
  const loss: FitOptions['loss'] = (prediction, target) => {
    calls++;
    return crossEntropy(prediction, target);
  };
  const { epochs } = await fit(model, source, { optimizer, loss, epochs: 2, ...options });
  return {
    plans: stats().plansMade - plansMade,
    calls,
    losses: epochs.map((epoch) => epoch.loss),
    steps: optimizer.steps,
  };
}

it.each([{}, { compile }])('has one plan with the others, and trains as if it had its own', async (options) => {
  const [known, own] = [await trained(data, options), await trained(unknown, options)];
  expect([known.plans, own.plans]).toEqual([1, 2]);
  expect([known.steps, own.steps]).toEqual([6, 6]);
  known.losses.forEach((value, epoch) => {
    expect(Math.abs(value - own.losses[epoch]!)).toBeLessThan(1e-5);
  });
  // The announced step calls the loss once more.
  if (options.compile === undefined) expect(known.calls - own.calls).toBe(1);
});

it('is not announced where there is none, or it has one row', async () => {
  for (const size of [22, 43, 44]) {
    const even = batches(memoryDataset({ x: { array: x }, y: { array: y } }), { batchSize: size });
    expect((await trained(even)).calls).toBe(2 * even.length);
  }
  const dropped = batches(memoryDataset({ x: { array: x }, y: { array: y } }), { batchSize, dropLast: true });
  expect((await trained(dropped)).calls).toBe(4);
});

it('is not announced where sizes share no plans', async () => {
  setDynamicSizes('never');
  const { calls, plans } = await trained(data);
  setDynamicSizes('automatic');
  expect([calls, plans]).toEqual([6, 2]);
});
