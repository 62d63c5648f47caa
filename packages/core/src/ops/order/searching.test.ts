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

/** Values, first positions, places and counts of integers, by a map. */
function byMap(data: readonly (number | bigint)[]) {
  const first = new Map<number | bigint, number>();
  const counts = new Map<number | bigint, number>();
  for (const [i, value] of data.entries()) {
    if (!first.has(value)) first.set(value, i);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const values = [...first.keys()].sort((a, b) => (a < b ? -1 : 1));
  const place = new Map(values.map((value, i) => [value, i]));
  return {
    values,
    indices: values.map((value) => first.get(value)),
    inverse: data.map((value) => place.get(value)),
    counts: values.map((value) => counts.get(value)),
  };
}

it.each([
  ['bool', 0n, 2],
  ['int8', -128n, 256],
  ['uint8', 0n, 250],
  ['int16', -32768n, 65536],
  ['uint16', 60000n, 5536],
  ['int32', -(2n ** 31n), 7000],
  ['int32', 2n ** 31n - 300n, 300],
  ['uint32', 2n ** 32n - 5000n, 5000],
  ['int64', -(2n ** 63n), 900],
  ['int64', 2n ** 60n, 10000],
  ['uint64', 2n ** 64n - 8193n, 8193],
] as const)(
  'unique of many %s from %d on, %d apart, is what a map finds, and nothing is sorted',
  async (dtype, low, range) => {
    // Enough elements for the table of 16 bits.
    const n = dtype.endsWith('16') ? 33000 : 5000;
    const whole = Array.from({ length: n }, (_, i) => low + BigInt(((i % 61) * 7919 + i * i) % range));
    whole[n - 1] = low + BigInt(range - 1);
    const data = dtype.endsWith('64') ? whole : whole.map(Number);
    const x = tensor(dtype === 'bool' ? data.map(Boolean) : data, { dtype, shape: [n / 500, 500] });
    const { value, kernels } = await profile(() =>
      unique(x, { returnCounts: true, returnIndices: true, returnInverse: true }),
    );
    const { values, indices, inverse, counts } = await value;
    const expected = byMap(data);
    expect(kernels.filter(({ name }) => name.startsWith('argSort'))).toHaveLength(0);
    expect(values.dtype).toBe(dtype);
    expect(await values.array()).toEqual(dtype === 'bool' ? expected.values.map(Boolean) : expected.values);
    expect(await indices!.array()).toEqual(expected.indices);
    expect(inverse!.shape).toEqual(x.shape);
    expect(await inverse!.reshape([-1]).array()).toEqual(expected.inverse);
    expect(await counts!.array()).toEqual(expected.counts);
    expect(await (await unique(x)).data()).toEqual(await values.data());
  },
);

it('unique sorts integers that are far apart', async () => {
  const data = Array.from({ length: 4096 }, (_, i) => ((i * 2654435761) % 2 ** 31) - 2 ** 30 + (i % 2));
  const { value, kernels } = await profile(() => unique(tensor(data, { dtype: 'int32' })));
  expect(kernels.some(({ name }) => name.startsWith('argSort'))).toBe(true);
  expect(await (await value).array()).toEqual(byMap(data).values);
});

it.each([1, 2, 3])('unique of many integers leaves no tensor behind where read %d fails', async (at) => {
  const x = tensor(
    Array.from({ length: 5000 }, (_, i) => i % 9),
    { dtype: 'int32' },
  );
  await x.data();
  const before = memory().numTensors;
  engine.arm({ member: 'download', at, kind: 'size' });
  await expect(unique(x)).rejects.toThrow();
  engine.arm(null);
  expect(memory().numTensors).toBe(before);
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
