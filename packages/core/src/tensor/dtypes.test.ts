import { beforeEach, describe, expect, it } from 'vitest';
import { add, type DType, full, indexAdd, ones, randint, scope, setEngine, tensor, zeros } from '../index.ts';
import { formatArray } from './format.ts';
import { createReferenceEngine } from '@polygrad/testing';

describe('values given and read', () => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine());
  });

  it('data() and tensor() agree on the host form of every dtype', async () => {
    const given = {
      float16: Uint16Array.of(0x3c00, 0x7e01, 0x8001),
      bfloat16: Uint16Array.of(0x3f80, 0x7fc1, 0x8001),
      int8: Int8Array.of(-128, 127),
      int16: Int16Array.of(-32768, 5),
      int64: BigInt64Array.of(2n ** 63n - 1n, -1n),
      uint8: Uint8Array.of(255, 0),
      uint16: Uint16Array.of(65535, 1),
      uint64: BigUint64Array.of(2n ** 64n - 1n, 3n),
    } as const;
    for (const [dtype, data] of Object.entries(given) as [DType, Uint8Array][]) {
      using t = tensor(data, { dtype });
      expect(await t.data()).toEqual(data);
      using moved = scope(() => t.reshape([data.length, 1]).contiguous());
      expect(await moved.data()).toEqual(data);
    }
  });

  it('numbers are rounded once, fractions of integers cut off', async () => {
    using half = tensor([1 + 2 ** -11 + 2 ** -30, 65520, -0], { dtype: 'float16' });
    expect(await half.array()).toEqual([1 + 2 ** -10, Number.POSITIVE_INFINITY, -0]);
    // float32 in between would make this a tie.
    using brain = tensor([1 + 2 ** -8 + 2 ** -40], { dtype: 'bfloat16' });
    expect(await brain.array()).toEqual([1 + 2 ** -7]);
    using small = tensor([127, -128.9, 1.9, -0.5], { dtype: 'int8' });
    expect(await small.array()).toEqual([127, -128, 1, 0]);
    using long = tensor([2 ** 40, -1.5, 2n ** 63n - 1n], { dtype: 'int64' });
    expect(await long.array()).toEqual([2n ** 40n, -1n, 2n ** 63n - 1n]);
    using truth = tensor([Number.NaN, -0, 0.1], { dtype: 'bool' });
    expect(await truth.array()).toEqual([true, false, true]);
  });

  it.each([
    ['int8', 128],
    ['int8', -129],
    ['uint8', 256],
    ['uint8', -1],
    ['int16', 32768],
    ['uint16', 65536],
    ['int32', 2 ** 31],
    ['int32', Number.NaN],
    ['uint32', 2 ** 32],
    ['uint32', Number.POSITIVE_INFINITY],
    ['int64', 2 ** 63],
    ['int64', -(2n ** 63n) - 1n],
    ['uint64', 2n ** 64n],
    ['uint64', -1n],
  ] as const)('%s refuses %s, as NumPy 2 does', (dtype, value) => {
    const reason = new RegExp(`${value} does not fit ${dtype}: it holds -?\\d+ \\.\\. \\d+`);
    expect(() => tensor([1, value] as number[], { dtype })).toThrow(reason);
    expect(() => full([2], value, { dtype })).toThrow(Number.isFinite(Number(value)) ? reason : /\[full\]/);
    using x = ones([2], { dtype });
    expect(() => x.add(value as number)).toThrow(Number.isFinite(Number(value)) ? reason : /\[add\]/);
  });

  it('numbers of typed arrays are no exception; cast() saturates', async () => {
    expect(() => tensor(Float32Array.of(300), { dtype: 'uint8' })).toThrow(
      /300 does not fit uint8: it holds 0 \.\. 255/,
    );
    expect(() => tensor(Int32Array.of(-1), { dtype: 'uint32' })).toThrow(/-1 does not fit uint32/);
    using cast = scope(() => tensor([300, -1, Number.NaN]).cast('uint8'));
    expect(await cast.array()).toEqual([255, 0, 0]);
  });

  it('64-bit integers are exact beyond 2^53: operands, constants, item', async () => {
    const big = 2n ** 60n + 1n;
    using sum = scope(() => full([1], big, { dtype: 'int64' }).add(2n ** 59n));
    expect(await sum.item<bigint>()).toBe(big + 2n ** 59n);
    using other = scope(() => add(tensor([1n]), 2 ** 53));
    expect(await other.item<bigint>()).toBe(2n ** 53n + 1n);
    // Numbers and bigints of the same bits are no constants of the same value.
    using both = scope(() => full([1], 1, { dtype: 'int64' }).sub(full([1], 0x3ff0000000000000n, { dtype: 'int64' })));
    expect(await both.item<bigint>()).toBe(1n - 0x3ff0000000000000n);
    expect(() => ones([1]).add(1n)).toThrow(/bigint 1n and float32/);
    expect(() => ones([1], { dtype: 'int64', requiresGrad: true })).toThrow(/int64/);
  });

  it('prints', () => {
    expect(formatArray(BigInt64Array.of(-5n, 2n ** 60n), [2], 'int64')).toBe(
      '[                 -5 1152921504606846976]',
    );
    expect(formatArray(Uint16Array.of(0x3555, 0xbc00), [2], 'float16')).toBe('[ 0.3333 -1.    ]');
    expect(formatArray(Uint8Array.of(7, 200), [2], 'uint8')).toBe('[  7 200]');
  });

  it('large scatters add in the dtype, 16-bit floats in float32', async () => {
    const n = 3000;
    using which = randint(0, 2, [n], { key: 1 });
    const counts = Array.from((await which.data()) as Int32Array).reduce((c, i) => c + i, 0);
    for (const dtype of ['int8', 'uint16', 'int64', 'float16', 'bfloat16'] as const) {
      using base = zeros([2, 64], { dtype });
      using updates = ones([n, 64], { dtype });
      using sum = scope(() => indexAdd(base, which, updates));
      const row = ((await sum.array()) as (number | bigint)[][])[1] as (number | bigint)[];
      const places = { float16: 1, bfloat16: 8 } as Readonly<Record<string, number>>;
      const spacing = places[dtype];
      const want =
        dtype === 'int8'
          ? (counts << 24) >> 24
          : spacing === undefined
            ? counts
            : Math.round(counts / spacing) * spacing;
      expect(Number(row[63])).toBe(want);
    }
  });

  it('random integers that the dtype does not hold are refused', () => {
    expect(() => randint(0, 300, [2], { dtype: 'uint8' })).toThrow(/299 is no uint8/);
    expect(() => randint(-1, 3, [2], { dtype: 'uint64' })).toThrow(/-1 is no uint64/);
  });
});
