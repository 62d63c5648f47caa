/** Reductions over nothing, of special values and by every option, with their derivatives there. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { derivative, f64, i32, near, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

describe('reductions over nothing', () => {
  it('have the identity, or say that they have none', async () => {
    const empty = pg.zeros([2, 0]);
    expect(await values(pg.sum(empty, 1))).toEqual([0, 0]);
    expect(await values(pg.prod(empty, 1))).toEqual([1, 1]);
    expect(await values(pg.any(empty, 1))).toEqual([0, 0]);
    expect(await values(pg.all(empty, 1))).toEqual([1, 1]);
    expect(await values(pg.mean(empty, 1))).toEqual([Number.NaN, Number.NaN]);
    expect(() => pg.max(empty, 1)).toThrow(/\[max\]/);
    expect(() => pg.argMin(empty, 1)).toThrow(/\[argMin\]/);
    expect(pg.sum(empty, 0).shape).toEqual([0]);
    expect(await values(pg.softmax(empty))).toEqual([]);
    expect(await pg.logSumExp(pg.full([2], Number.NEGATIVE_INFINITY)).item()).toBe(Number.NEGATIVE_INFINITY);
  });

  it('norms of every order', async () => {
    const x = f64([3, -4, 0]);
    await near(pg.norm(x, { p: 1 }), [7]);
    await near(pg.norm(x, { p: 0 }), [2]);
    await near(pg.norm(x, { p: Number.POSITIVE_INFINITY }), [4]);
    await near(pg.norm(x, { p: Number.NEGATIVE_INFINITY }), [0]);
    await near(pg.norm(x, { p: 3 }), [91 ** (1 / 3)]);
  });
});

describe('reductions at their edges', () => {
  it('prod has exact second derivatives with any number of zeros', async () => {
    const mixed = async (x: readonly number[]): Promise<number[]> => values(pg.hessian(pg.prod)(f64(x)) as Tensor);
    expect(await mixed([2, 0, 3])).toEqual([0, 3, 0, 3, 0, 2, 0, 2, 0]);
    expect(await mixed([0, 0, 3])).toEqual([0, 3, 0, 3, 0, 0, 0, 0, 0]);
    expect(await mixed([0, 0, 0])).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it('the gradient of prod is the product of the others, along any axes, and takes a few products of the whole', async () => {
    const cases: readonly (readonly [shape: readonly number[], axis: readonly number[]])[] = [
      [[7], [0]],
      [[1, 4], [0]],
      [[6, 5], [0]],
      [[5, 6], [1]],
      [
        [2, 3, 5, 2],
        [1, 3],
      ],
      [
        [3, 2, 3],
        [0, 1, 2],
      ],
      [[2, 0], [1]],
    ];
    for (const [shape, axis] of cases) {
      const size = shape.reduce((a, b) => a * b, 1);
      const data = Array.from({ length: size }, (_, i) => (i % 7 === 3 ? 0 : Math.sin(i + 1) + 1.5));
      const at = (i: number): number[] =>
        shape.map((n, a) => Math.floor(i / shape.slice(a + 1).reduce((x, y) => x * y, 1)) % n);
      const along = (i: number, j: number): boolean =>
        i !== j && at(i).every((v, a) => axis.includes(a) || v === at(j)[a]);
      const others = data.map((_, i) => data.reduce((value, x, j) => (along(i, j) ? value * x : value), 1));
      const x = pg.tensor(Float64Array.from(data), { shape: [...shape] });
      await near(pg.grad((t: Tensor) => pg.sum(pg.prod(t, [...axis])))(x) as Tensor, others, 1e-13);
    }
    const x = pg.zeros([4, 512]);
    const { kernels } = await pg.profile(() => pg.grad((t: Tensor) => pg.sum(pg.prod(t, 1)))(x) as Tensor);
    expect(kernels.reduce((sum, { flops }) => sum + flops, 0)).toBeLessThan(8 * x.size);
  });

  it('logSumExp of nothing but -infinity is -infinity, without slope', async () => {
    const rows = f64([
      [-inf, -inf],
      [0, -inf],
      [inf, 0],
    ]);
    expect(await values(pg.logSumExp(rows, 1))).toEqual([-inf, 0, inf]);
    const slope = pg.grad((x: Tensor) => pg.sum(pg.logSumExp(x, 1)))(f64([[-inf, -inf]])) as Tensor;
    expect(await values(slope)).toEqual([0, 0]);
  });

  it('argMax and argMin take several axes, negative ones, keep dimensions, and refuse nothing', async () => {
    const x = f64([
      [
        [1, 9],
        [3, 4],
      ],
      [
        [7, 0],
        [5, 8],
      ],
    ]);
    expect(await values(pg.argMax(x, [1, 2]))).toEqual([1, 3]);
    expect(await values(pg.argMin(x, { axis: [0, -1] }))).toEqual([3, 0]);
    expect(pg.argMax(x, { axis: -1, keepDims: true }).shape).toEqual([2, 2, 1]);
    expect(pg.argMax(x, { keepDims: true }).shape).toEqual([1, 1, 1]);
    expect(await values(pg.argMax(f64(5)))).toEqual([0]);
    expect(() => pg.argMax(pg.zeros([0, 2]), 0)).toThrow(/\[argMax\].*empty/);
    expect(() => pg.argMin(pg.zeros([2]), 1)).toThrow(/\[argMin\].*1/);
    expect(pg.argMax(pg.zeros([0, 2]), 1).shape).toEqual([0]);
  });

  it('of nothing give their identity, NaN or an error', async () => {
    const none = pg.zeros([0]);
    expect(await values(pg.sum(none))).toEqual([0]);
    expect(await values(pg.prod(none))).toEqual([1]);
    expect(await values(pg.mean(none))).toEqual([nan]);
    expect(await values(pg.variance(none))).toEqual([nan]);
    expect(await values(pg.norm(none))).toEqual([0]);
    expect(await values(pg.any(none))).toEqual([0]);
    expect(await values(pg.all(none))).toEqual([1]);
    expect(await values(pg.countNonZero(none))).toEqual([0]);
    expect(await values(pg.nanSum(none))).toEqual([0]);
    expect(await values(pg.nanMean(none))).toEqual([nan]);
    expect(await values(pg.logSumExp(none))).toEqual([-inf]);
    expect(await values(pg.logSumExp(pg.zeros([2, 0, 3]), { axis: [0, 1], keepDims: true }))).toEqual([
      -inf,
      -inf,
      -inf,
    ]);
    expect(await values(derivative((t) => pg.logSumExp(t), 1)(none))).toEqual([]);
    for (const f of [pg.max, pg.min]) expect(() => f(none)).toThrow(/empty|nothing/);
  });

  it('skip NaN where they say so, in gradients too', async () => {
    const x = f64([1, nan, 3]);
    expect(await values(pg.nanSum(x))).toEqual([4]);
    expect(await values(pg.nanMean(x))).toEqual([2]);
    expect(await values(pg.countNonZero(f64([0, nan, 2])))).toEqual([2]);
    expect(await values(derivative((t) => pg.nanMean(t), 1)(x))).toEqual([0.5, 0, 0.5]);
    expect(await values(pg.nanMean(f64([nan])))).toEqual([nan]);
  });

  it('are refused in the name of the function that was called', () => {
    expect(() => pg.nanSum(i32([1]), { axis: 1 })).toThrow(/^\[nanSum\] axis out of range: 1/);
    expect(() => pg.norm(pg.zeros([0]), { p: Number.POSITIVE_INFINITY })).toThrow(/^\[norm\] reduction over nothing/);
  });

  it('of integers that skip NaN are exact', async () => {
    const sum = pg.nanSum(i32([16777217, 2]));
    expect([sum.dtype, await values(sum)]).toEqual([pg.sum(i32([1])).dtype, [16777219]]);
    expect(await pg.nanSum(pg.tensor([2n ** 60n, 1n])).array()).toBe(2n ** 60n + 1n);
  });

  it('variance and std correct, and are flat where all are equal', async () => {
    const x = f64([1, 2, 4]);
    await near(pg.variance(x), [14 / 9]);
    await near(pg.variance(x, { correction: 1 }), [7 / 3]);
    await near(pg.std(x, { correction: 1.5 }), [Math.sqrt(14 / 3 / 1.5)]);
    expect(await values(pg.variance(f64([1]), { correction: 1 }))).toEqual([nan]);
    expect(await values(derivative((t) => pg.std(t), 1)(f64([3, 3])))).toEqual([0, 0]);
  });

  it('trace widens small integers, takes offsets and batches', async () => {
    expect(
      await values(
        pg.trace(
          i32([
            [1, 2],
            [3, 4],
          ]),
        ),
      ),
    ).toEqual([5]);
    expect(
      await values(
        pg.trace(
          f64([
            [
              [1, 2],
              [3, 4],
            ],
            [
              [5, 6],
              [7, 8],
            ],
          ]),
          { offset: 1 },
        ),
      ),
    ).toEqual([2, 6]);
    expect(() => pg.trace(pg.zeros([3]))).toThrow(/\[trace\].*\[3\]/);
  });
});
