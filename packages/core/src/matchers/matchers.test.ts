import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '../engine/registry.ts';
import { allClose, add, isClose, ones, tensor } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { extendExpect, tensorMatchers } from './index.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

it('two different tensors are not equal silently before expect knows tensors', () => {
  const [a, b] = [tensor([1, 2]), tensor([1, 3])];
  expect(() => expect(a).toEqual(b)).toThrow(/toBeCloseToTensor of @polygrad\/core\/matchers/);
});

describe('expect', () => {
  beforeAll(() => extendExpect(expect));

  it('finds close tensors close, and says where others differ most', () => {
    const a = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(a).toBeCloseToTensor(add(a, 1e-7));
    expect(a).toBeCloseToTensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(a).not.toBeCloseToTensor(add(a, 0.1));
    expect(a).toBeCloseToTensor(add(a, 0.1), { atol: 0.2 });
    const other = tensor([
      [1, 2.5, 3],
      [4, 5, 7],
    ]);
    expect(() => expect(a).toBeCloseToTensor(other)).toThrow(
      'received a tensor float32 [2, 3], expected one close to float32 [2, 3]\n2 of 6 elements differ, most at [1, 2]: received 6, expected 7, apart by 1.00, allowed 0.0000700',
    );
    expect(() => expect(a).toBeCloseToTensor(ones([3]))).toThrow('shapes differ: received [2, 3], expected [3]');
    expect(() => expect(3).toBeCloseToTensor(ones([3]))).toThrow('no tensor');
    expect(() => expect(a).toBeCloseToTensor(a, { tol: 1 } as never)).toThrow("no option 'tol'");
  });

  it('knows NaN, infinities and 64-bit integers', () => {
    const odd = tensor([Number.NaN, Number.POSITIVE_INFINITY]);
    expect(odd).not.toBeCloseToTensor(odd);
    expect(odd).toBeCloseToTensor(odd, { equalNaN: true });
    expect(tensor([1])).not.toBeCloseToTensor([Number.POSITIVE_INFINITY]);
    const large = tensor([2n ** 60n], { dtype: 'int64' });
    expect(large).not.toBeCloseToTensor(tensor([2n ** 60n + 1n], { dtype: 'int64' }), { rtol: 0 });
    expect(tensor([1.5], { dtype: 'float16' })).toBeCloseToTensor([1.5]);
  });

  it('calls close what isClose does', async () => {
    const odd = [0, 1, -1, 2, 1.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
    const sizes = [0, 0.5, Number.POSITIVE_INFINITY];
    const pairs = odd.flatMap((x) => odd.map((y) => [x, y] as [number, number]));
    for (const rtol of sizes)
      for (const atol of sizes)
        for (const equalNaN of [false, true]) {
          const options = { rtol, atol, equalNaN };
          const [a, b] = [0, 1].map((k) =>
            tensor(
              pairs.map((pair) => pair[k]!),
              { dtype: 'float64' },
            ),
          );
          const inGraph = await isClose(a!, b!, options).data();
          for (const [i, [x, y]] of pairs.entries()) {
            const { pass } = await tensorMatchers.toBeCloseToTensor(tensor([x]), tensor([y]), options);
            // NumPy's definition.
            const near = Math.abs(x - y) <= atol + rtol * Math.abs(y) && Number.isFinite(y);
            const want = near || x === y || (equalNaN && Number.isNaN(x) && Number.isNaN(y));
            expect([pass, inGraph[i] === 1], `${x} beside ${y}: ${JSON.stringify(options)}`).toEqual([want, want]);
          }
        }
  });

  it('shows an infinite difference before a finite one', () => {
    expect(() => expect(tensor([1, 2])).toBeCloseToTensor([Number.POSITIVE_INFINITY, 3])).toThrow('most at [0]');
  });

  it('compares tensors by shape, dtype and values in toEqual', () => {
    const a = tensor([1, 2]);
    expect({ a }).toEqual({ a });
    expect({ a }).toEqual({ a: tensor([1, 2]) });
    expect(a).not.toEqual(tensor([1, 3]));
    expect(a).not.toEqual(tensor([[1, 2]]));
    expect(a).not.toEqual(tensor([1, 2], { dtype: 'float64' }));
  });

  it('waits for engines that answer later', async () => {
    await setEngine(createReferenceEngine({ synchronous: false }));
    const [a, b] = [tensor([1, 2]), tensor([1, 3])];
    await expect(a).toBeCloseToTensor([1, 2]);
    await expect(async () => expect(a).toBeCloseToTensor(b)).rejects.toThrow('1 of 2 elements differ');
    expect(() => expect(a).toEqual(b)).toThrow('await expect(a).toBeCloseToTensor(b)');
    await setEngine(createReferenceEngine());
  });
});

it('allClose broadcasts, has the tolerances of isClose, and leaves nothing behind', async () => {
  const a = tensor([1, 2]);
  expect(await allClose(a, tensor([1, 2.00001]))).toBe(true);
  expect(await allClose(a, tensor([1, 2.1]))).toBe(false);
  expect(await allClose(a, [tensor(1), tensor([1, 2.1])][1]!, { atol: 0.2 })).toBe(true);
  expect(await allClose(ones([2, 3]), 1)).toBe(true);
  expect(await allClose(tensor([Number.NaN]), tensor([Number.NaN]))).toBe(false);
  expect(await allClose(tensor([Number.NaN]), tensor([Number.NaN]), { equalNaN: true })).toBe(true);
  await expect(allClose(a, ones([3]))).rejects.toThrow(/^\[allClose\] /);
});
