/** Calls at the edges of what is defined, where the answers are those of PyTorch and NumPy. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => pg.setEngine(createReferenceEngine()));

const { NEGATIVE_INFINITY: low, NaN: nan } = Number;
const line = (n: number): pg.Tensor => pg.arange(n, { dtype: 'float64' });

describe('pad with negative widths', () => {
  it('cuts before it wraps', async () => {
    expect(await pg.pad(line(5), [[-1, 2]], { mode: 'circular' }).array()).toEqual([1, 2, 3, 4, 1, 2]);
    expect(await pg.pad(line(5), [[2, -3]], { mode: 'circular' }).array()).toEqual([0, 1, 0, 1]);
    expect(await pg.pad(line(5), [[-2, -1]], { mode: 'circular' }).array()).toEqual([2, 3]);
  });

  it('says how much is left to wrap', () => {
    expect(() => pg.pad(line(5), [[-3, 3]], { mode: 'circular' })).toThrow(/\[pad\].*\[-3, 3\].*at most 2/);
    expect(() => pg.pad(line(5), [[-7, 4]], { mode: 'circular' })).toThrow(/\[pad\].*\[-7, 4\].*at most 0/);
  });

  it('has the size asked for where one end cuts more than there is', async () => {
    for (const mode of ['reflect', 'symmetric', 'replicate', 'constant'] as const) {
      expect(pg.pad(line(5), [[-6, 4]], { mode }).shape, mode).toEqual([3]);
      expect(pg.pad(line(5), [[4, -8]], { mode }).shape, mode).toEqual([1]);
    }
    expect(await pg.pad(line(5), [[4, -7]], { mode: 'reflect' }).array()).toEqual([4, 3]);
  });
});

describe('diff without a difference', () => {
  it('is x, whatever stands before and after', async () => {
    const ends = { prepend: pg.zeros([1], { dtype: 'float64' }), append: pg.zeros([2], { dtype: 'float64' }) };
    expect(await pg.diff(line(3), { n: 0, ...ends }).array()).toEqual([0, 1, 2]);
    expect(await pg.diff(line(3), { n: 1, ...ends }).array()).toEqual([0, 1, 1, -2, 0]);
  });
});

describe('maxUnpool2d', () => {
  it('takes back what pooling with ceilMode made', async () => {
    const x = pg.tensor([
      [
        [
          [1, 2, 3],
          [4, 9, 6],
          [7, 8, 5],
        ],
      ],
    ]);
    const [top, places] = pg.maxPool2d(x, 2, { ceilMode: true, returnIndices: true });
    const back = pg.maxUnpool2d(top, places, 2, { outputSize: [3, 3] });
    expect(await back.array()).toEqual([
      [
        [
          [0, 0, 0],
          [0, 9, 6],
          [0, 8, 5],
        ],
      ],
    ]);
  });

  it('takes sizes less than a step away, both included', () => {
    const [x, places] = [pg.ones([1, 1, 3, 3]), pg.zeros([1, 1, 3, 3], { dtype: 'int32' })];
    const of = (n: number): readonly number[] => pg.maxUnpool2d(x, places, 3, { stride: 2, outputSize: [n, n] }).shape;
    expect([6, 8].map(of)).toEqual([
      [1, 1, 6, 6],
      [1, 1, 8, 8],
    ]);
    expect(() => of(5)).toThrow(/bad outputSize: 5.*from 6 to 8/);
    expect(() => of(9)).toThrow(/bad outputSize: 9.*from 6 to 8/);
  });
});

describe('normalize', () => {
  it('takes negative orders, as norm does', async () => {
    const x = pg.tensor([[1, 2, 4]], { dtype: 'float64' });
    expect(await pg.normalize(x, { p: -1 }).array()).toEqual([[1.75, 3.5, 7]]);
    expect(await pg.normalize(x, { p: low }).array()).toEqual([[1, 2, 4]]);
    expect(() => pg.normalize(x, { p: nan })).toThrow(/\[normalize\].*p: NaN/);
  });
});

describe('takeAlongAxis', () => {
  it('stretches x and the indices', async () => {
    const places = pg.tensor(
      [
        [0, 2],
        [1, 1],
      ],
      { dtype: 'int32' },
    );
    expect(await pg.takeAlongAxis(pg.tensor([[5, 6, 7]]), places, { axis: 1 }).array()).toEqual([
      [5, 7],
      [6, 6],
    ]);
    const one = pg.tensor([[2]], { dtype: 'int32' });
    expect(
      await pg
        .takeAlongAxis(
          pg.tensor([
            [5, 6, 7],
            [1, 2, 3],
          ]),
          one,
          { axis: 1 },
        )
        .array(),
    ).toEqual([[7], [3]]);
    const both = pg.takeAlongAxis(pg.ones([2, 1, 4]), pg.zeros([1, 3, 5], { dtype: 'int32' }), { axis: 2 });
    expect(both.shape).toEqual([2, 3, 5]);
  });

  it('adds up the gradient of what it stretched', async () => {
    const places = pg.tensor(
      [
        [0, 2],
        [2, 1],
      ],
      { dtype: 'int32' },
    );
    const f = (x: pg.Tensor): pg.Tensor => pg.sum(pg.square(pg.takeAlongAxis(x, places, { axis: 1 })));
    const x = pg.tensor([[5, 6, 7]]);
    expect(await (pg.grad(f)(x) as pg.Tensor).array()).toEqual([[10, 12, 28]]);
    expect(await (pg.hessian(f)(x) as pg.Tensor).sum([0, 1, 2]).array()).toEqual([2, 2, 4]);
  });

  it('says what does not fit', () => {
    const places = pg.zeros([2, 2], { dtype: 'int32' });
    expect(() => pg.takeAlongAxis(pg.ones([3, 3]), places, { axis: 1 })).toThrow(
      /\[takeAlongAxis\].*\[3, 3\].*\[2, 2\]/,
    );
  });
});

describe('shrinking', () => {
  it('softShrink refuses a negative lambda', () => {
    expect(() => pg.softShrink(line(3), { lambda: -0.5 })).toThrow(/\[softShrink\].*-0\.5.*at least 0/);
    expect(() => pg.softShrink(line(3), { lambda: nan })).toThrow(/\[softShrink\].*NaN/);
  });

  it('hardShrink has nothing within one, as in PyTorch', async () => {
    expect(await pg.hardShrink(line(3), { lambda: -0.5 }).array()).toEqual([0, 1, 2]);
  });
});

describe('losses that broadcast', () => {
  it('gaussianNllLoss takes means, targets and variances that stretch', async () => {
    const loss = (x: number[][], t: number[][], v: pg.Tensor | number): Promise<unknown> =>
      pg.gaussianNllLoss(pg.tensor(x), pg.tensor(t), v, { reduction: 'none' }).array();
    expect(await loss([[1], [3]], [[1, 3]], 1)).toEqual([
      [0, 2],
      [2, 0],
    ]);
    expect(
      await loss(
        [[1, 3]],
        [
          [1, 1],
          [3, 3],
        ],
        pg.tensor([[1, 1]]),
      ),
    ).toEqual([
      [0, 2],
      [2, 0],
    ]);
    expect(
      await loss(
        [[1, 3]],
        [
          [1, 1],
          [3, 3],
        ],
        pg.tensor(1),
      ),
    ).toEqual([
      [0, 2],
      [2, 0],
    ]);
    // One for each row, where that of a column would fit too.
    const rows = await loss(
      [
        [1, 3],
        [1, 3],
      ],
      [
        [1, 1],
        [3, 3],
      ],
      pg.tensor([1, Math.E]),
    );
    expect(rows).toEqual([[0, 2], [0.5 + 2 / Math.E, 0.5].map((x) => expect.closeTo(x, 6))]);
  });

  it('gaussianNllLoss says what does not fit', () => {
    const [x, wrong] = [pg.ones([2, 3]), pg.ones([3])];
    expect(() => pg.gaussianNllLoss(x, x, wrong)).toThrow(/\[gaussianNllLoss\].*\[3\].*\[2, 3\]/);
    expect(() => pg.gaussianNllLoss(x, x, -1)).toThrow(/\[gaussianNllLoss\].*variance: -1/);
    expect(() => pg.gaussianNllLoss(x, pg.ones([2, 2]), 1)).toThrow(/\[gaussianNllLoss\].*\[2, 3\].*\[2, 2\]/);
  });

  it('klDiv compares every row with one target, and divides by the rows of the logs', async () => {
    const logs = pg.log(
      pg.tensor(
        [
          [0.5, 0.5],
          [0.25, 0.75],
        ],
        { dtype: 'float64' },
      ),
    );
    const target = pg.tensor([0.5, 0.5], { dtype: 'float64' });
    const total = 0.5 * Math.log(0.5 / 0.25) + 0.5 * Math.log(0.5 / 0.75);
    expect(await pg.klDiv(logs, target, { reduction: 'sum' }).item()).toBeCloseTo(total, 12);
    expect(await pg.klDiv(logs, target, { reduction: 'batchMean' }).item()).toBeCloseTo(total / 2, 12);
    expect(() => pg.klDiv(logs, pg.ones([3]))).toThrow(/\[klDiv\].*\[2, 2\].*\[3\]/);
  });
});
