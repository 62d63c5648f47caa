/** ctcLoss where labels do not fit, and what it refuses; its values and gradients are in layers/torch-layers.test.ts. */
import { flush, logSoftmax, setEngine, tensor, zeros } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import { ctcLoss } from './ctc.ts';

beforeAll(() => setEngine(createReferenceEngine()));

it('sums over all alignments of one label', async () => {
  // Three frames, one label: 6 of the 27 rows of classes are an alignment.
  const targets = tensor([[1]], { dtype: 'int32' });
  const found = await ctcLoss(logSoftmax(zeros([3, 1, 3])), targets, [3], [1]).item();
  expect(found).toBeCloseTo(-Math.log(6 / 27), 5);
  // A frame alone is the label.
  const one = await ctcLoss(logSoftmax(zeros([1, 1, 3])), targets, [1], [1]).item();
  expect(one).toBeCloseTo(Math.log(3), 5);
});

it('of several batches is computed in one flush', async () => {
  const targets = tensor([[1]], { dtype: 'int32' });
  const losses = [4, 4].map((frames) => ctcLoss(logSoftmax(zeros([frames, 1, 3])), targets, [3], [1]));
  flush();
  for (const loss of losses) expect(await loss.item()).toBeCloseTo(-Math.log(6 / 27), 5);
});

it('is infinite for more labels than frames, without a gradient', async () => {
  const logs = zeros([2, 1, 3]);
  logs.requiresGrad = true;
  const targets = tensor([[1, 1]], { dtype: 'int32' });
  const loss = ctcLoss(logSoftmax(logs), targets, [2], [2]);
  expect(await loss.item()).toBe(Number.POSITIVE_INFINITY);
  loss.backward();
  expect(await logs.grad!.array()).toEqual([[[0, 0, 0]], [[0, 0, 0]]]);
});

it('refuses shapes and lengths that do not fit', () => {
  const [logs, targets] = [zeros([4, 2, 3]), zeros([2, 2], { dtype: 'int32' })];
  expect(() => ctcLoss(logs, zeros([2, 2]), [4, 4], [1, 1])).toThrow(/\[ctcLoss\].*float32 \[2, 2\] do not fit/);
  expect(() => ctcLoss(logs, targets, [4], [1, 1])).toThrow(/inputLengths.*a list of 2/);
  expect(() => ctcLoss(logs, targets, [4, 5], [1, 1])).toThrow(/inputLengths is 5; it must be an integer from 1 to 4/);
  expect(() => ctcLoss(logs, targets, [4, 4], zeros([2]))).toThrow(/targetLengths are float32/);
  expect(() => ctcLoss(logs, targets, [4, 4], [1, 1], { blank: 3 })).toThrow(/blank is 3/);
});
