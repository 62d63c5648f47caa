/** Numbers next to tensors: the dtypes they meet in, and that a changing number needs no new plan. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, i32, near, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('numbers and dtypes', () => {
  it('meet tensors as weak scalars', () => {
    expect(i32([1]).add(2).dtype).toBe('int32');
    expect(f64([1]).mul(2).dtype).toBe('float64');
    expect(pg.sub(1, f64([1])).dtype).toBe('float64');
    expect(() => i32([1]).mul(0.5)).toThrow(/\[mul\].*0.5.*int32/);
    expect(() => pg.tensor([true]).add(1)).toThrow(/\[add\].*bool/);
    expect(() => pg.add(pg.ones([1]), i32([1]))).toThrow(/\[add\].*float32 and int32/);
    expect(() => pg.neg(pg.tensor([true]))).toThrow(/\[neg\].*bool/);
    expect(() => pg.add([1] as never, 1)).toThrow(/\[add\].*not a tensor: a list/);
    expect(() => pg.add(pg.ones([1]), undefined as never)).toThrow(/\[add\].*not a tensor or number.*undefined/);
  });

  it('of several operands of composites meet in their common dtype', () => {
    const of = (dtype: pg.DType): pg.Tensor => pg.ones([2], { dtype });
    const [half, single, double] = [of('float16'), of('float32'), of('float64')];
    expect(pg.prelu(2, half).dtype).toBe('float16');
    expect(pg.prelu(half, 2).dtype).toBe('float16');
    expect(pg.prelu(half, single).dtype).toBe('float32');
    expect(pg.prelu(of('bfloat16'), half).dtype).toBe('float32');
    expect(pg.prelu(-2, 0.5).dtype).toBe('float32');
    expect(pg.lerp(half, half, 0.5).dtype).toBe('float16');
    expect(pg.lerp(half, half, single).dtype).toBe('float32');
    expect(pg.lerp(1, half, double).dtype).toBe('float64');
    for (const addc of [pg.addcmul, pg.addcdiv]) {
      expect(addc(half, 2, half, { value: 3 }).dtype).toBe('float16');
      expect(addc(half, single, half).dtype).toBe('float32');
      expect(addc(half, half, half, { value: double }).dtype).toBe('float64');
    }
  });

  it('meet tensors in logic, where they are scalars of bool', async () => {
    const x = f64([0.5, 0]);
    expect(await pg.logicalAnd(x, 2).array()).toEqual([true, false]);
    expect(await pg.logicalAnd(true, x.greater(0)).array()).toEqual([true, false]);
    expect(await pg.logicalOr(x, false).array()).toEqual([true, false]);
    expect(await pg.logicalXor(x, 1).array()).toEqual([false, true]);
  });

  it('are refused in the name of the operation that was called', () => {
    expect(() => pg.softmin(f64([1, 2]), 3)).toThrow(/^\[softmin\] axis out of range: 3/);
    expect(() => pg.gatherNd(f64([1, 2]), [[2 ** 31]])).toThrow(
      /^\[gatherNd\] index out of range: 2147483648 for size 2/,
    );
    expect(() => pg.scatterNd([null] as never, f64([1]), [2])).toThrow(/^\[scatterNd\] element is no number: null/);
  });

  it('divide and take functions of integers as float32', async () => {
    expect(i32([1]).div(2).dtype).toBe('float32');
    expect(await values(i32([1]).div(2))).toEqual([0.5]);
    expect(pg.exp(i32([0])).dtype).toBe('float32');
    expect(pg.mean(i32([1, 2])).dtype).toBe('float32');
    expect(pg.sum(pg.tensor([true, true])).dtype).toBe('int32');
    expect(await pg.sum(pg.tensor([true, true])).item()).toBe(2);
  });

  it('pow of numbers agrees with pow of tensors', async () => {
    const x = [-2, -1, -0.5, 0, 0.5, 3];
    for (const n of [0, 1, 2, 3, -1, 0.5, -0.5, 5]) {
      await near(
        pg.pow(f64(x), n),
        x.map((v) => (v === 1 ? 1 : v ** n)),
      );
    }
    expect(await values(pg.pow(i32([-3, 2, 10]), i32([3, 10, 0])))).toEqual([-27, 1024, 1]);
    expect(await values(pg.pow(i32([1, -1, 2]), i32([-3, -3, -1])))).toEqual([1, -1, 0]);
  });

  it('integer powers take every bit of the exponent', async () => {
    const cases = [
      ['uint8', 8, [3n, 2n, 255n], [200n, 128n, 255n]],
      ['int16', 16, [3n, -3n, 2n], [32767n, 12345n, 15n]],
      ['uint32', 32, [2n, 3n, 5n], [2n ** 31n, 2n ** 31n + 1n, 2n ** 32n - 1n]],
      ['int64', 64, [2n, 3n, -3n], [2n ** 31n, 2n ** 32n + 1n, 2n ** 62n + 2n ** 40n + 1n]],
      ['uint64', 64, [3n, 2n, 7n], [2n ** 63n + 1n, 2n ** 63n, 2n ** 64n - 1n]],
    ] as const;
    for (const [dtype, size, bases, exponents] of cases) {
      const modulus = 2n ** BigInt(size);
      const expected = bases.map((base, i) => {
        let [result, square] = [1n, base];
        for (let rest = exponents[i]!; rest > 0n; rest /= 2n) {
          if (rest % 2n === 1n) result = (result * square) % modulus;
          square = (square * square) % modulus;
        }
        return dtype.startsWith('u') ? BigInt.asUintN(size, result) : BigInt.asIntN(size, result);
      });
      const result = await pg.pow(pg.tensor(bases, { dtype }), pg.tensor(exponents, { dtype })).array();
      expect((result as (number | bigint)[]).map(BigInt), dtype).toEqual(expected);
    }
  });

  it('integer division rounds down and keeps the sign of the divisor', async () => {
    const a = i32([7, -7, 7, -7, 6]);
    const b = i32([2, 2, -2, -2, 3]);
    expect(await values(pg.floorDivide(a, b))).toEqual([3, -4, -4, 3, 2]);
    expect(await values(pg.remainder(a, b))).toEqual([1, 1, -1, -1, 0]);
    expect(await values(pg.fmod(a, b))).toEqual([1, -1, 1, -1, 0]);
  });
});

describe('numbers of users are bound, not baked', () => {
  it('a changing number makes no new plan, also inside composites', async () => {
    const x = f64([1, 2, 3, 4]);
    const run = async (k: number): Promise<void> => {
      const y = pg.scope(() => pg.leakyRelu(pg.clip(x.mul(k), k, k + 1), { slope: k }));
      await y.data();
      y.dispose();
    };
    pg.flush();
    await run(0.3);
    const before = pg.stats().planMisses;
    await run(0.4);
    expect(pg.stats().planMisses).toBe(before);
  });
});
