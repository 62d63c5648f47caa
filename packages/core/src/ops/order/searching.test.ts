/** Operations whose result has as many elements as the data says, where reading that number fails. */
import { beforeEach, expect, it } from 'vitest';
import { createFaultyEngine, createReferenceEngine, type FaultyEngine } from '@polygrad/testing';
import { maskedSelect, memory, nonZero, profile, setEngine, type Tensor, tensor, unique } from '../../index.ts';

let engine: FaultyEngine;

beforeEach(async () => {
  engine = createFaultyEngine(createReferenceEngine());
  await setEngine(engine);
});

it.each([
  ['nonZero', (x: Tensor) => nonZero(x)],
  ['maskedSelect', (x: Tensor) => maskedSelect(x, x.greater(0))],
  ['unique', (x: Tensor) => unique(x)],
  [
    'unique with all it gives',
    (x: Tensor) => unique(x, { returnCounts: true, returnIndices: true, returnInverse: true }),
  ],
] as const)('%s leaves no tensor behind', async (_, search) => {
  const x = tensor([3, 0, 3]);
  await x.data();
  const mask = memory().numTensors;
  engine.arm({ member: 'download', at: 1, kind: 'size' });
  await expect(search(x)).rejects.toThrow();
  engine.arm(null);
  // The caller's own comparison goes with the collector.
  expect(memory().numTensors - mask).toBe(_ === 'maskedSelect' ? 1 : 0);
  x.dispose();
});

it('unique sorts and counts once: what reading the number of values computed is kept', async () => {
  const x = tensor([3, 0, 3, Number.NaN, -0]);
  const { value, kernels } = await profile(() => unique(x, { returnCounts: true, returnInverse: true }));
  const found = await value;
  const names = kernels.map(({ name }) => name);
  expect(names.filter((name) => name.startsWith('argSort'))).toHaveLength(1);
  expect(names.filter((name) => name.startsWith('scan'))).toHaveLength(1);
  expect(await found.values.array()).toEqual([0, 3, Number.NaN]);
  expect(await found.counts!.array()).toEqual([2, 2, 1]);
  expect(await found.inverse!.array()).toEqual([1, 0, 1, 2, 0]);
});
