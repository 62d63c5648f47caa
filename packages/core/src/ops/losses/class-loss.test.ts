/** Losses by their formulas: reductions, class weights, ignored targets, smoothing, and what is refused. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, i32, near, range, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('losses', () => {
  const logits = f64([
    [1, 2, 3],
    [0, 0, 0],
    [3, 0, -1],
  ]);
  const logs = [
    [1, 2, 3],
    [0, 0, 0],
    [3, 0, -1],
  ].map((row) => {
    const total = Math.log(row.reduce((s, v) => s + Math.exp(v), 0));
    return row.map((v) => v - total);
  }) as [number, number, number][];
  const target = i32([2, 0, 1]);
  const picked = [logs[0]?.[2], logs[1]?.[0], logs[2]?.[1]].map((v) => -(v as number)) as [number, number, number];

  it('crossEntropy: reductions', async () => {
    await near(pg.crossEntropy(logits, target, { reduction: 'none' }), picked);
    await near(pg.crossEntropy(logits, target, { reduction: 'sum' }), [picked[0] + picked[1] + picked[2]]);
    await near(pg.crossEntropy(logits, target), [(picked[0] + picked[1] + picked[2]) / 3]);
    await near(pg.nllLoss(pg.logSoftmax(logits), target), [(picked[0] + picked[1] + picked[2]) / 3]);
    await near(pg.crossEntropy(f64([1, 2, 3]), i32(2)), [picked[0]]);
  });

  it('crossEntropy: class weights and ignored targets, means weighted as in PyTorch', async () => {
    const weight = f64([1, 10, 100]);
    await near(pg.crossEntropy(logits, target, { weight }), [(100 * picked[0] + picked[1] + 10 * picked[2]) / 111]);
    await near(pg.crossEntropy(logits, target, { ignoreIndex: 0 }), [(picked[0] + picked[2]) / 2]);
    await near(pg.crossEntropy(logits, i32([2, -100, 1]), { ignoreIndex: -100, weight }), [
      (100 * picked[0] + 10 * picked[2]) / 110,
    ]);
    await near(pg.crossEntropy(logits, i32([2, -100, 1]), { ignoreIndex: -100, reduction: 'none' }), [
      picked[0],
      0,
      picked[2],
    ]);
  });

  it('crossEntropy: probabilities and smoothing agree', async () => {
    const oneHot = pg.oneHot(target, 3, { dtype: 'float64' });
    const hard = await values(pg.crossEntropy(logits, target, { labelSmoothing: 0.3 }));
    await near(pg.crossEntropy(logits, oneHot, { labelSmoothing: 0.3 }), hard);
    const soft = oneHot.mul(0.7).add(0.1);
    await near(pg.crossEntropy(logits, soft), hard);
  });

  it('crossEntropy over images, and its gradient', async () => {
    const images = range([2, 3, 2, 2]).mul(0.1);
    const labels = i32([
      [
        [0, 1],
        [2, 0],
      ],
      [
        [1, 1],
        [0, 2],
      ],
    ]);
    expect(pg.crossEntropy(images, labels, { reduction: 'none' }).shape).toEqual([2, 2, 2]);
    expect(
      await pg.gradCheck(
        (x) => pg.crossEntropy(x, labels, { labelSmoothing: 0.1, ignoreIndex: 2, weight: f64([1, 2, 3]) }),
        [images],
      ),
    ).toBe(true);
    const g = await values(pg.grad((x: Tensor) => pg.crossEntropy(x, target, { reduction: 'sum' }))(logits));
    const expected = logs.flatMap((row, i) => row.map((v, j) => Math.exp(v) - ([2, 0, 1][i] === j ? 1 : 0)));
    g.forEach((v, i) => {
      expect(v).toBeCloseTo(expected[i] as number, 12);
    });
  });

  it('says what does not fit', () => {
    expect(() => pg.crossEntropy(logits, i32([1, 2]))).toThrow(/\[crossEntropy\].*\[2\].*\[3\]/);
    expect(() => pg.crossEntropy(logits, pg.tensor([true, false, true]))).toThrow(/\[crossEntropy\].*bool/);
    expect(() => pg.crossEntropy(logits, f64([[1, 2]]))).toThrow(/\[crossEntropy\]/);
    expect(() => pg.crossEntropy(logits, target, { labelSmoothing: 2 })).toThrow(/labelSmoothing.*2/);
    expect(() => pg.mseLoss(f64([1]), f64([1, 2]))).toThrow(/\[mseLoss\].*\[1\].*\[2\]/);
    expect(() => pg.mseLoss(f64([1]), f64([1]), { reduction: 'max' as never })).toThrow(/\[mseLoss\].*max/);
  });

  it('regression and binary losses', async () => {
    await near(pg.huberLoss(f64([0, 0]), f64([0.5, 3]), { delta: 2, reduction: 'none' }), [0.125, 4]);
    await near(pg.smoothL1Loss(f64([0, 0]), f64([0.5, 3]), { beta: 2, reduction: 'none' }), [0.0625, 2]);
    await near(pg.klDiv(pg.log(f64([0.25, 0.75])), f64([0.5, 0.5]), { reduction: 'sum' }), [
      0.5 * Math.log(2) + 0.5 * Math.log(2 / 3),
    ]);
    const p = 1 / (1 + Math.exp(-2));
    await near(pg.binaryCrossEntropyWithLogits(f64([2, 2]), f64([1, 0]), { reduction: 'none', posWeight: 3 }), [
      -3 * Math.log(p),
      -Math.log(1 - p),
    ]);
    await near(pg.binaryCrossEntropy(f64([0, 0.25]), f64([1, 1]), { reduction: 'none' }), [100, -Math.log(0.25)]);
    await near(
      pg.grad((x: Tensor) => pg.sum(pg.binaryCrossEntropyWithLogits(x, f64([1, 0, 1]), { reduction: 'none' })))(
        f64([0, 0, 1000]),
      ),
      [-0.5, 0.5, 0],
    );
  });

  it('refuses classes from the host that are not there, unless they are ignored', () => {
    const logits = f64([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(() => pg.crossEntropy(logits, i32([1, 3]))).toThrow(
      /^\[crossEntropy\] class number out of range: 3 for 3 classes; must be an integer from 0 to 2$/,
    );
    expect(() => pg.nllLoss(logits, i32([-1, 0]), { ignoreIndex: -100 })).toThrow(
      /^\[nllLoss\].*-1 for 3 classes.* 0 to 2, or the ignoreIndex -100/,
    );
    expect(() => pg.multiMarginLoss(logits, i32([1, 3]))).toThrow(/^\[multiMarginLoss\] class number out of range: 3/);
    const labels = i32([
      [0, -1, 3],
      [1, 2, -1],
    ]);
    expect(() => pg.multiLabelMarginLoss(logits, labels)).toThrow(/^\[multiLabelMarginLoss\].*3 for 3 classes/);
    expect(() => pg.crossEntropy(logits, i32([9, -2]), { ignoreIndex: 9 })).toThrow(/-2 for 3 classes/);
  });

  it('margins of computed classes that are not there are NaN', async () => {
    const logits = f64([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const rows = await values(pg.multiMarginLoss(logits, i32([1, 2]).add(1), { reduction: 'none' }));
    expect(rows).toEqual([expect.closeTo((0 + 0) / 3, 12), Number.NaN]);
    const labels = i32([
      [0, -2, 9],
      [1, 2, -2],
    ]).add(1);
    const several = await values(pg.multiLabelMarginLoss(logits, labels, { reduction: 'none' }));
    // Labels 1, then the end: what lies behind counts for nothing.
    expect(several).toEqual([expect.closeTo((0 + 2) / 3, 12), Number.NaN]);
  });

  it('is NaN where a computed class is not there, unless it is ignored', async () => {
    const logits = f64([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    for (const bad of [-1, 3, 100]) {
      const loss = pg.crossEntropy(logits, i32([bad - 1, -1]).add(1), { reduction: 'none' });
      expect(await values(loss)).toEqual([Number.NaN, expect.closeTo(2.4076059644443806, 12)]);
      const mean = pg.crossEntropy(logits, i32([bad, 0]), { ignoreIndex: bad, labelSmoothing: 0 });
      expect(await values(mean)).toEqual([expect.closeTo(2.4076059644443806, 12)]);
    }
    expect(await values(pg.nllLoss(logits, i32([6, -1]).add(1), { weight: f64([1, 2, 3]) }))).toEqual([Number.NaN]);
  });

  it('class numbers that are one number are known', async () => {
    const full = (value: number): Tensor => pg.full([3], value, { dtype: 'int32' });
    expect(() => pg.crossEntropy(logits, full(7))).toThrow(
      '[crossEntropy] class number out of range: 7 for 3 classes; must be an integer from 0 to 2',
    );
    expect(() => pg.nllLoss(logits, pg.fullLike(target, -1))).toThrow('[nllLoss] class number out of range: -1');
    expect(() => pg.multiMarginLoss(logits, pg.cast(full(3), 'int64'))).toThrow('[multiMarginLoss] class number');
    await near(pg.crossEntropy(logits, full(-100), { ignoreIndex: -100, reduction: 'sum' }), [0]);
    await near(pg.crossEntropy(logits, pg.zeros([3], { dtype: 'int32' }), { reduction: 'none' }), [
      -logs[0]![0],
      -logs[1]![0],
      -logs[2]![0],
    ]);
  });
});
