/** Shapes of NumberTensors: moved, broadcast, reduced and scanned as those of tensors are; and their errors. */
import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '@polygrad/core';
import { concatNumbers, type NumberTensor, numberTensor, numberType, stackNumbers, toTensor } from './index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { big, count } from './fixtures/bigints.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('shapes', () => {
  const x = (): NumberTensor<bigint> => count(24).reshape([2, 3, 4]);

  it('move without looking at elements, as tensors do', () => {
    expect(x().permute([2, 0, 1]).at(1, 1, 2).item()).toBe(22n);
    expect(x().transpose().shape).toEqual([2, 4, 3]);
    expect(x().permute([1, 2, 0]).reshape([-1, 2]).at(1).array()).toEqual([2n, 14n]);
    expect(x().flip(0).at(0, 0, 0).item()).toBe(13n);
    expect(x().flip().flatten().at({ stop: 3 }).array()).toEqual([24n, 23n, 22n]);
    expect(
      x()
        .slice([{ step: -1 }, 1, { start: 1, stop: null, step: 2 }])
        .array(),
    ).toEqual([
      [18n, 20n],
      [6n, 8n],
    ]);
    expect(x().at(0).unsqueeze(1).expand([3, 5, -1]).shape).toEqual([3, 5, 4]);
    expect(x().unsqueeze(-1).squeeze().shape).toEqual([2, 3, 4]);
    expect(count(3).broadcastTo([2, 3]).array()).toEqual([
      [1n, 2n, 3n],
      [1n, 2n, 3n],
    ]);
    expect(x().take([2, 0], 1).at(0, null, 0).array()).toEqual([9n, 1n]);
    expect(x().take([], 1).shape).toEqual([2, 0, 4]);
    expect(
      concatNumbers([x(), x().at(null, { stop: 1 })], 1)
        .at(1, 3)
        .array(),
    ).toEqual([13n, 14n, 15n, 16n]);
    expect(stackNumbers([count(2), count(2)], 1).array()).toEqual([
      [1n, 1n],
      [2n, 2n],
    ]);
  });

  it('broadcast, reduce and scan like tensors', async () => {
    const t = toTensor(x());
    const axes = [undefined, 1, [0, 2], { axis: -1, keepDims: true }] as const;
    for (const axis of axes) {
      expect(await toTensor(x().sum(axis)).array()).toEqual(await t.sum(axis).array());
      expect(await toTensor(x().max(axis)).array()).toEqual(await t.max(axis).array());
      expect(await toTensor(x().argMin(axis)).array()).toEqual((await t.argMin(axis).array()) as number[]);
    }
    expect(x().cumSum(1).at(1, null, 0).array()).toEqual([13n, 30n, 51n]);
    expect(
      big([[3, 1, 2]])
        .cumMin({ axis: 1 })
        .array(),
    ).toEqual([[3n, 1n, 1n]]);
    expect(x().at(0).matmul(x().transpose()).shape).toEqual([2, 3, 3]);
    expect(await toTensor(x().matmul(x().at(1).transpose())).array()).toEqual(
      await t.matmul(t.select(0, 1).transpose()).array(),
    );
    expect(count(3).dot(count(3)).item()).toBe(14n);
    expect(big([]).sum().item()).toBe(0n);
    expect(big([]).prod().item()).toBe(1n);
    expect(
      big([
        [0, 0],
        [0, 5],
      ])
        .any(1)
        .array(),
    ).toEqual([false, true]);
    expect(
      big([1, 5])
        .where(big([1, 2]).greater(1), big([9, 9]))
        .array(),
    ).toEqual([9n, 5n]);
    expect(big([2, 5]).maximum(3).minimum(4).array()).toEqual([3n, 4n]);
  });

  it('NaN wins, the first of equals is taken', () => {
    const x = numberTensor([1, Number.NaN, 5, 5], numberType);
    expect(x.max().item()).toBeNaN();
    expect(x.argMax().item()).toBe(1);
    expect(x.at({ start: 2 }).argMax().item()).toBe(0);
    expect(x.cumMax().data()).toEqual([1, Number.NaN, Number.NaN, Number.NaN]);
  });

  it('are checked', () => {
    expect(() => big([[1, 2], [3]])).toThrow(/\[numberTensor\] nested arrays are ragged/);
    expect(() => big([1, [2]])).toThrow(/\[numberTensor\] nested arrays are ragged/);
    expect(() => x().reshape([5, 5])).toThrow(/\[reshape\] sizes differ/);
    expect(() => x().permute([0, 1])).toThrow(/\[permute\]/);
    expect(() => x().add(count(5))).toThrow(/\[add\].*broadcast/);
    expect(() => x().matmul(count(5))).toThrow(/\[matmul\] inner sizes differ: \[2, 3, 4\] and \[5\]/);
    expect(() => x().sum(3)).toThrow(/\[sum\] axis out of range/);
    expect(() => x().squeeze(0)).toThrow(/\[squeeze\]/);
    expect(() => x().item()).toThrow(/\[item\] 24 elements/);
    expect(() => big([]).max()).toThrow(/\[max\] no elements/);
    expect(() => concatNumbers([])).toThrow(/\[concatNumbers\] no parts/);
    expect(() => concatNumbers([count(2), x()])).toThrow(/\[concatNumbers\] shapes do not fit/);
    expect(() => stackNumbers([count(2), count(3)])).toThrow(/\[stackNumbers\] shapes differ/);
    expect(() => stackNumbers([count(2), numberTensor([1], numberType) as never])).toThrow(/number types differ/);
  });
});
