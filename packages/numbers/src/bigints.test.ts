/** NumberTensors of bigints against values known from elsewhere: factorials, Fibonacci numbers, binomials; and to and from tensors. */
import { beforeAll, describe, expect, it } from 'vitest';
import { isTensor, setEngine, tensor } from '@polygrad/core';
import { bigintType, fromTensor, numberEye, numberFull, numberTensor, toTensor } from './index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { big, count } from './fixtures/bigints.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('bigints', () => {
  it('factorials', () => {
    const factorials = count(30).cumProd();
    expect(factorials.at(4).item()).toBe(120n);
    expect(factorials.at(-1).item()).toBe(265252859812191058636308480000000n);
    expect(count(30).prod().item()).toBe(265252859812191058636308480000000n);
  });

  it('Fibonacci numbers by powers of a matrix', () => {
    let power = numberEye(2, bigintType);
    let square = big([
      [1, 1],
      [1, 0],
    ]);
    for (let n = 300; n > 0; n >>= 1) {
      if (n & 1) power = power.matmul(square);
      square = square.matmul(square);
    }
    expect(power.at(0, 1).item()).toBe(fibonacci(300));
    expect(fibonacci(90)).toBe(2880067194370816120n);
  });

  it('binomials by a running sum: rows of the triangle of Pascal', () => {
    let row = numberFull([70], 1, bigintType);
    for (let i = 0; i < 35; i++) row = row.cumSum();
    // C(69 - 0 + 35, 35) at the end, by the hockey stick.
    expect(row.at(-1).item()).toBe(binomial(69 + 35, 35));
  });

  it('division: exact, or rounded down like that of tensors', () => {
    expect(big([6, -6]).div(3).array()).toEqual([2n, -2n]);
    expect(
      big([7, -7, 7, -7])
        .floorDivide(big([2, 2, -2, -2]))
        .array(),
    ).toEqual([3n, -4n, -4n, 3n]);
    expect(
      big([7, -7, 7, -7])
        .remainder(big([2, 2, -2, -2]))
        .array(),
    ).toEqual([1n, 1n, -1n, -1n]);
    expect(() => big([7]).div(2)).toThrow('[div] no integer: 7 / 2; use floorDivide, or a type with fractions');
    expect(() => big([7]).floorDivide(0)).toThrow(/division by zero: 7/);
    expect(big([3]).pow(100).item()).toBe(3n ** 100n);
    expect(() => big([3]).pow(0.5)).toThrow(/\[pow\].*0\.5/);
    expect(big([-3, 2]).abs().array()).toEqual([3n, 2n]);
    expect(big([-3, 2]).neg().sub(1).array()).toEqual([2n, -3n]);
  });

  it('come from and go to tensors', async () => {
    const back = await fromTensor(
      tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { dtype: 'int64' },
      ),
      bigintType,
    );
    expect(back.array()).toEqual([
      [1n, 2n],
      [3n, 4n],
    ]);
    const wide = toTensor(back.mul(2n ** 40n), { dtype: 'int64' });
    expect(isTensor(wide) && (await wide.array())).toEqual([
      [2n ** 40n, 2n ** 41n],
      [3n * 2n ** 40n, 2n ** 42n],
    ]);
    expect(await toTensor(back.pow(2)).array()).toEqual([
      [1, 4],
      [9, 16],
    ]);
    expect(() => numberTensor(['12x'], bigintType)).toThrow(
      /\[numberTensor\] no number of type 'bigint': '12x'; give digits/,
    );
    expect(() => toTensor(back.mul(2n ** 62n), { dtype: 'int64' })).toThrow(/\[toTensor\].*does not fit int64/);
    expect(() => big([1.5])).toThrow(/no integer: 1\.5/);
    await expect(fromTensor(tensor([0.5]), bigintType)).rejects.toThrow(/0\.5/);
  });
});

function fibonacci(n: number): bigint {
  let [a, b] = [0n, 1n];
  for (let i = 0; i < n; i++) [a, b] = [b, a + b];
  return a;
}

function binomial(n: number, k: number): bigint {
  let result = 1n;
  for (let i = 1; i <= k; i++) result = (result * BigInt(n - k + i)) / BigInt(i);
  return result;
}
