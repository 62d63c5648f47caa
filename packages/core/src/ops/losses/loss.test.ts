/** Losses beyond what the conformance suite draws: sure predictions, limits, targets of their own shapes, errors. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

await pg.setEngine(createReferenceEngine());

const f64 = (data: pg.NestedInput): Tensor => pg.tensor(data, { dtype: 'float64' });
const f32 = (data: pg.NestedInput): Tensor => pg.tensor(data);
const i32 = (data: pg.NestedInput): Tensor => pg.tensor(data, { dtype: 'int32' });

async function values(t: Tensor): Promise<number[]> {
  // Zeros without a sign.
  return Array.from((await t.data()) as Float64Array, (x) => Number(x) + 0);
}

describe("Huber's loss", () => {
  it('is curved where the prediction is right, too', async () => {
    const x = f64([0, 1, 9]);
    const curvature = (loss: (t: Tensor) => Tensor): Promise<number[]> =>
      values(pg.grad((t: Tensor) => pg.sum(pg.grad(loss)(t) as Tensor))(x) as Tensor);
    const target = f64([0, 2, 0]);
    expect(await curvature((t) => pg.huberLoss(t, target, { delta: 3, reduction: 'sum' }))).toEqual([1, 1, 0]);
    expect(await curvature((t) => pg.smoothL1Loss(t, target, { beta: 4, reduction: 'sum' }))).toEqual([0.25, 0.25, 0]);
  });
});

describe('binary cross entropy', () => {
  it('with logits keeps the small loss of sure and right predictions', async () => {
    const losses = pg.binaryCrossEntropyWithLogits(f32([40, -40, 1000, -1000]), f32([1, 0, 1, 0]), {
      reduction: 'none',
    });
    const [a, b, c, d] = await values(losses);
    expect(a).toBeCloseTo(Math.exp(-40), 22);
    expect(b).toBeCloseTo(Math.exp(-40), 22);
    expect(a).toBeGreaterThan(0);
    expect([c, d]).toEqual([0, 0]);
    expect(await values(pg.binaryCrossEntropyWithLogits(f32([-1000]), f32([1])))).toEqual([1000]);
  });

  it('with logits has finite derivatives at 0 and far away', async () => {
    const loss = (x: Tensor): Tensor => pg.binaryCrossEntropyWithLogits(x, f64([1, 1, 0]), { reduction: 'sum' });
    const x = f64([0, 800, -800]);
    expect(await values(pg.grad(loss)(x) as Tensor)).toEqual([-0.5, 0, 0]);
    const slope = (t: Tensor): Tensor => pg.sum(pg.grad(loss)(t) as Tensor);
    expect(await values(pg.grad(slope)(x) as Tensor)).toEqual([0.25, 0, 0]);
  });

  it('cuts logarithms off at -100, with finite gradients', async () => {
    expect(await values(pg.binaryCrossEntropy(f64([0, 1]), f64([1, 0]), { reduction: 'none' }))).toEqual([100, 100]);
    expect(await values(pg.binaryCrossEntropy(f64([0, 1]), f64([0, 1]), { reduction: 'none' }))).toEqual([0, 0]);
    const slopes = await values(
      pg.grad((x: Tensor) => pg.binaryCrossEntropy(x, f64([1, 0]), { reduction: 'sum' }))(f64([0, 1])) as Tensor,
    );
    expect(slopes.every(Number.isFinite)).toBe(true);
  });
});

describe('gaussianNllLoss', () => {
  it('limits the variance, but not its gradient', async () => {
    const [x, y] = [f64([1]), f64([1])];
    expect(await values(pg.gaussianNllLoss(x, y, f64([0]), { eps: 0.5 }))).toEqual([0.5 * Math.log(0.5)]);
    const slope = pg.grad((v: Tensor) => pg.gaussianNllLoss(x, y, v, { eps: 0.5 }))(f64([0])) as Tensor;
    expect(await values(slope)).toEqual([1]);
  });

  it('refuses other shapes of variance', () => {
    const [x, v] = [pg.zeros([2, 3]), pg.ones([3])];
    expect(() => pg.gaussianNllLoss(x, x, v)).toThrow(/\[gaussianNllLoss\].*\[3\].*\[2, 3\]/);
    expect(() => pg.gaussianNllLoss(x, x, x, { eps: 0 })).toThrow(/\[gaussianNllLoss\].*eps.*0/);
  });
});

describe('margin losses', () => {
  it('have finite gradients where vectors are zeros or equal', async () => {
    const [zeros, ones] = [f64([[0, 0]]), f64([[1, 1]])];
    const cosine = (x: Tensor): Tensor => pg.cosineEmbeddingLoss(x, ones, f64([1]));
    expect((await values(pg.grad(cosine)(zeros) as Tensor)).every(Number.isFinite)).toBe(true);
    const triplet = (x: Tensor): Tensor => pg.tripletMarginLoss(x, ones, ones);
    expect((await values(pg.grad(triplet)(ones) as Tensor)).every(Number.isFinite)).toBe(true);
  });

  it('take single vectors', async () => {
    expect(pg.cosineEmbeddingLoss(f64([1, 0]), f64([0, 1]), f64(1)).shape).toEqual([]);
    expect(pg.tripletMarginLoss(f64([1, 0]), f64([0, 1]), f64([1, 1]), { reduction: 'none' }).shape).toEqual([]);
  });

  it('refuse what does not fit', () => {
    const z = pg.zeros;
    expect(() => pg.hingeLoss(z([2]), z([3]))).toThrow(/\[hingeLoss\].*\[2\].*\[3\]/);
    expect(() => pg.cosineEmbeddingLoss(z([2, 3]), z([2, 3]), z([3]))).toThrow(
      /\[cosineEmbeddingLoss\].*\[2, 3\].*\[3\]/,
    );
    expect(() => pg.cosineEmbeddingLoss(z([2, 3]), z([2, 4]), z([2]))).toThrow(/\[cosineEmbeddingLoss\].*\[2, 4\]/);
    expect(() => pg.tripletMarginLoss(z([2, 3]), z([2, 3]), z([2, 4]))).toThrow(/\[tripletMarginLoss\].*\[2, 4\]/);
    expect(() => pg.tripletMarginLoss(z([3]), z([3]), z([3]), { p: 0 })).toThrow(/\[tripletMarginLoss\].*0/);
    expect(() => pg.tripletMarginLoss(z([3]), z([3]), z([3]), { eps: -1 })).toThrow(/\[tripletMarginLoss\].*-1/);
    expect(() => pg.tripletMarginLoss(z([]), z([]), z([]))).toThrow(/\[tripletMarginLoss\].*scalars/);
  });
});

describe('losses between tensors', () => {
  it('refuse other shapes, reductions and bad numbers', () => {
    const [a, b] = [pg.zeros([2]), pg.zeros([3])];
    for (const loss of [pg.mseLoss, pg.l1Loss, pg.huberLoss, pg.smoothL1Loss, pg.binaryCrossEntropy, pg.klDiv]) {
      const { name } = loss;
      expect(() => loss(a, b)).toThrow(new RegExp(`\\[${name}\\].*\\[2\\].*\\[3\\]`));
      expect(() => loss(a, a, { reduction: 'average' as never })).toThrow(
        new RegExp(`\\[${name}\\].*'average'.*'mean'`),
      );
    }
    expect(() => pg.binaryCrossEntropyWithLogits(a, b)).toThrow(/\[binaryCrossEntropyWithLogits\].*\[2\].*\[3\]/);
    expect(() => pg.huberLoss(a, a, { delta: 0 })).toThrow(/\[huberLoss\].*delta.*0/);
    expect(() => pg.smoothL1Loss(a, a, { beta: -1 })).toThrow(/\[smoothL1Loss\].*beta.*-1/);
  });

  it('klDiv names its own reduction where another word is given', () => {
    const x = f64([-1, -2]);
    const options = { reduction: 'batchmean' } as unknown as { readonly reduction: 'batchMean' };
    expect(() => pg.klDiv(x, x, options)).toThrow(/^\[klDiv\] bad reduction: 'batchmean'; must be .*'batchMean'/);
  });

  it('klDiv takes probabilities of 0', async () => {
    expect(await values(pg.klDiv(f64([-1, -2]), f64([0, 1]), { reduction: 'none' }))).toEqual([0, 2]);
    const slope = pg.grad((t: Tensor) => pg.klDiv(f64([-1, -2]), t, { reduction: 'sum', logTarget: true }))(
      f64([-1, 0]),
    );
    expect((await values(slope as Tensor)).every(Number.isFinite)).toBe(true);
  });
});

describe('what has no weight', () => {
  const all = Number.POSITIVE_INFINITY;

  it('does not count in binary cross entropy, whatever its logit is', async () => {
    const [x, y] = [f64([all, -all, all, -all, all]), f64([1, 0, 0, 1, 0.5])];
    const expected = [0, 0, all, all, all];
    const none = { reduction: 'none' } as const;
    expect(await values(pg.binaryCrossEntropyWithLogits(x, y, none))).toEqual(expected);
    expect(await values(pg.binaryCrossEntropyWithLogits(x, y, { ...none, posWeight: 3 }))).toEqual(expected);
    const rows = [x, y].map((t) => pg.unsqueeze(t, -1)) as [Tensor, Tensor];
    expect(await values(pg.multiLabelSoftMarginLoss(...rows, none))).toEqual(expected);
    expect(await values(pg.focalLoss(x, y, { ...none, alpha: null }))).toEqual(expected);
    const slope = pg.grad((t: Tensor) => pg.binaryCrossEntropyWithLogits(t, y, { reduction: 'sum' }))(x) as Tensor;
    expect(await values(slope)).toEqual([0, 0, 1, -1, 0.5]);
    expect(await values(pg.binaryCrossEntropyWithLogits(f64([Number.NaN]), f64([1])))).toEqual([Number.NaN]);
  });

  it('does not count in divergences and cross entropy', async () => {
    // The target has no share of what the prediction holds to be impossible.
    expect(await values(pg.klDiv(f64([0, -all]), f64([1, 0]), { reduction: 'none' }))).toEqual([0, 0]);
    expect(await values(pg.klDiv(f64([0, -all]), f64([0, -all]), { reduction: 'none', logTarget: true }))).toEqual([
      0, 0,
    ]);
    const x = f64([[0, -all, 0]]);
    const chance = f64([[0.5, 0, 0.5]]);
    expect((await values(pg.crossEntropy(x, chance)))[0]).toBeCloseTo(Math.LN2, 12);
    expect(await values(pg.grad((t: Tensor) => pg.crossEntropy(t, chance))(x) as Tensor)).toEqual([0, 0, 0]);
    const weight = f64([1, 0, 3]);
    const weighed = pg.crossEntropy(x, i32([1]), { weight, reduction: 'sum' });
    expect(await values(weighed)).toEqual([0]);
    const smoothed = pg.crossEntropy(x, i32([0]), { weight, labelSmoothing: 0.3, reduction: 'sum' });
    expect((await values(smoothed))[0]).toBeCloseTo((0.7 + (0.3 * 4) / 3) * Math.LN2, 12);
  });

  it('counts where labels are smoothed, with the slope that the formula has', async () => {
    const x = f64([[0, -all, 0]]);
    const loss = (t: Tensor): Tensor => pg.crossEntropy(t, i32([0]), { labelSmoothing: 0.3 });
    expect(await values(loss(x))).toEqual([all]);
    const slope = await values(pg.grad(loss)(x) as Tensor);
    // The softmax minus the smoothed target.
    for (const [i, wanted] of [0.5 - 0.8, -0.1, 0.5 - 0.1].entries()) expect(slope[i]).toBeCloseTo(wanted, 12);
  });

  it('does not count in losses of Poisson counts, and infinite rates cost all', async () => {
    const none = { reduction: 'none' } as const;
    expect(await values(pg.poissonNllLoss(f64([-all, -all, all, 800]), f64([0, 2, 2, 1e308]), none))).toEqual([
      0,
      all,
      all,
      all,
    ]);
    const rates = { ...none, logInput: false, eps: 0 };
    expect(await values(pg.poissonNllLoss(f64([0, 0, all]), f64([0, 2, 2]), rates))).toEqual([0, all, all]);
  });
});

it('gaussianNllLoss has no square that overflows beside a variance as large', async () => {
  const loss = pg.gaussianNllLoss(f32([1e20]), f32([-1e20]), f32([1e38]));
  // (log(1e38) + 4e40 / 1e38) / 2
  expect((await values(loss))[0]).toBeCloseTo((38 * Math.LN10 + 400) / 2, 3);
});

describe('losses of classification', () => {
  it('refuse what does not fit', () => {
    const logits = pg.zeros([2, 3]);
    for (const loss of [pg.nllLoss, pg.crossEntropy]) {
      const name = loss.name;
      const says = (text: string): RegExp => new RegExp(`\\[${name}\\].*${text}`);
      expect(() => loss(logits, i32([0, 1, 2]))).toThrow(says('\\[3\\].*\\[2\\]'));
      expect(() => loss(logits, i32([0, 1]), { weight: pg.ones([2]) })).toThrow(says('\\[2\\].*\\[3\\]'));
      expect(() => loss(logits, i32([0, 1]), { reduction: 'x' as never })).toThrow(says("'x'"));
      expect(() => loss(pg.zeros([]), i32(0))).toThrow(says('scalar'));
    }
    expect(() => pg.nllLoss(logits, pg.zeros([2]))).toThrow(/\[nllLoss\].*float32/);
    expect(() => pg.crossEntropy(logits, pg.zeros([2]))).toThrow(/\[crossEntropy\].*\[2\].*\[2, 3\]/);
    expect(() => pg.crossEntropy(logits, i32([0, 1]), { labelSmoothing: 2 })).toThrow(/\[crossEntropy\].*2/);
    expect(() => pg.crossEntropy(logits, logits, { ignoreIndex: 1 })).toThrow(/\[crossEntropy\].*ignoreIndex 1/);
  });

  it('ignore impossible classes where the target is another', async () => {
    const x = f64([[0, Number.NEGATIVE_INFINITY, 0]]);
    expect((await values(pg.crossEntropy(x, i32([0]))))[0]).toBeCloseTo(Math.LN2, 12);
    const slope = await values(pg.grad((t: Tensor) => pg.crossEntropy(t, i32([0])))(x) as Tensor);
    expect(slope).toEqual([-0.5, 0, 0.5]);
  });

  it('are NaN of nothing: every target ignored', async () => {
    expect(await values(pg.crossEntropy(f64([[1, 2]]), i32([-100]), { ignoreIndex: -100 }))).toEqual([Number.NaN]);
    expect(await values(pg.crossEntropy(f64([[1, 2]]), i32([-100]), { ignoreIndex: -100, reduction: 'sum' }))).toEqual([
      0,
    ]);
  });
});

describe('losses of three tensors', () => {
  it('take integers as float32, as those of two do, and have the common dtype', async () => {
    const [a, b, c] = [i32([[1, 0, 3]]), i32([[4, 4, 3]]), i32([[1, 2, 1]])];
    // Distances 5 and 2 * sqrt(2), and a variance of 1.
    const triplet = pg.tripletMarginLoss(a, b, c, { eps: 0 });
    expect(triplet.dtype).toBe('float32');
    expect((await values(triplet))[0]).toBeCloseTo(5 - Math.sqrt(8) + 1, 5);
    const ranking = pg.marginRankingLoss(a, b, i32([[1, -1, 1]]), { margin: 1 });
    expect(ranking.dtype).toBe('float32');
    expect((await values(ranking))[0]).toBeCloseTo((4 + 0 + 1) / 3, 6);
    const gaussian = pg.gaussianNllLoss(a, b, i32([[1, 4, 9]]));
    expect(gaussian.dtype).toBe('float32');
    expect((await values(gaussian))[0]).toBeCloseTo((9 + Math.log(4) + 4 + Math.log(9)) / 6, 6);
    const wide = pg.marginRankingLoss(f32([1]), f32([2]), f64([1]));
    expect([wide.dtype, ...(await values(wide))]).toEqual(['float64', 1]);
    expect(() => pg.tripletMarginLoss(f32([[1]]), f32([[1]]), i32([[1]]))).toThrow(
      '[tripletMarginLoss] no common dtype: float32 and int32',
    );
    expect(() => pg.tripletMarginLoss(f32([[1]]), f32([[1]]), f32([[1, 2]]))).toThrow(/\[1, 1\] and target \[1, 2\]/);
  });
});

it('losses by class number say which comes first', () => {
  const [scores, classes] = [f32([[0, 1]]), i32([0])];
  for (const loss of [pg.crossEntropy, pg.nllLoss, pg.multiMarginLoss])
    expect(() => loss(classes, scores)).toThrow(/target has (dtype float32 and )?shape \[1, 2\].* come first$/);
});
