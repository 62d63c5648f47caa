/** Wrong arguments of attention, embeddings, resampling and kernels: refused at the call, naming the operation, both values and the remedy. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { type RefusedCall, refusedCalls } from '../fixtures/refused.ts';

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
});

const zeros = pg.zeros;
const ints = (...shape: number[]): pg.Tensor => zeros(shape, { dtype: 'int32' });
const image = (): pg.Tensor => zeros([1, 2, 4, 4]);
const attend = (options: pg.AttentionOptions): pg.Tensor =>
  pg.scaledDotProductAttention(zeros([2, 3, 4]), zeros([2, 5, 4]), zeros([2, 5, 6]), options);

const bad: readonly RefusedCall[] = [
  [
    'scaledDotProductAttention',
    () => pg.scaledDotProductAttention(zeros([3, 4]), zeros([5, 3]), zeros([5, 6])),
    /\[3, 4\], \[5, 3\], \[5, 6\]; need/,
  ],
  [
    'scaledDotProductAttention',
    () => pg.scaledDotProductAttention(zeros([3, 4]), zeros([5, 4]), zeros([6, 6])),
    /do not fit: \[3, 4\], \[5, 4\], \[6, 6\]/,
  ],
  ['scaledDotProductAttention', () => pg.scaledDotProductAttention(zeros([4]), zeros([4]), zeros([4])), /need/],
  [
    'scaledDotProductAttention',
    () => pg.scaledDotProductAttention(zeros([3, 2, 4]), zeros([2, 5, 4]), zeros([2, 5, 6])),
    /heads do not fit: 3 .* and 2/,
  ],
  [
    'scaledDotProductAttention',
    () => pg.scaledDotProductAttention(zeros([2, 1, 2, 4]), zeros([3, 1, 5, 4]), zeros([3, 1, 5, 6])),
    /do not broadcast: \[2\] and \[3\]/,
  ],
  ['scaledDotProductAttention', () => attend({ mask: zeros([3, 4]) }), /mask does not fit: \[3, 4\] .* \[2, 3, 5\]/],
  ['scaledDotProductAttention', () => attend({ mask: ints(3, 5) }), /mask is int32: needs bool/],
  ['scaledDotProductAttention', () => attend({ dropout: 2 }), /bad dropout: 2/],
  ['scaledDotProductAttention', () => attend({ scale: Number.NaN }), /bad scale: NaN/],
  ['scaledDotProductAttention', () => attend({ causal: true, causalOffset: 0.5 }), /bad causalOffset: 0.5/],
  ['scaledDotProductAttention', () => attend({ form: 'flash' as never }), /'flash'.*'blocks'/],
  ['scaledDotProductAttention', () => attend({ form: 'blocks', blockSize: [0, 3] }), /bad blockSize: \[0, 3\]/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([4])), /1 axes: needs at least 2/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([2, 3])), /bad dims: 3 of 3.*even/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([2, 4]), { dims: 6 }), /bad dims: 6 of 4/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([2, 4]), { style: 'neox' as never }), /'neox'.*'half'/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([2, 4]), { base: 0 }), /bad base: 0/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([2, 4]), { offset: 0.5 }), /bad offset: 0.5/],
  ['rotaryEmbedding', () => pg.rotaryEmbedding(zeros([2, 4]), { positions: ints(3) }), /\[3\] for x \[2, 4\]/],
  [
    'embedding',
    () => pg.embedding(zeros([2]), zeros([3, 4])),
    /indices have dtype float32 and shape \[2\].*order embedding\(indices, weight\)/,
  ],
  ['embedding', () => pg.embedding(ints(2), zeros([3, 4]), { paddingIdx: 3 }), /paddingIdx out of range: 3 for 3/],
  ['embedding', () => pg.embedding(ints(2), zeros([0, 4])), /empty/],
  ['embeddingBag', () => pg.embeddingBag(ints(2), zeros([3, 4])), /\[2\] without offsets/],
  ['embeddingBag', () => pg.embeddingBag(ints(2, 2), zeros([3, 4]), { offsets: ints(1) }), /\[2, 2\] with offsets/],
  ['embeddingBag', () => pg.embeddingBag(ints(2, 2), zeros([3])), /weight has shape \[3\]/],
  ['embeddingBag', () => pg.embeddingBag(ints(2, 2), zeros([3, 4]), { mode: 'min' as never }), /'min'/],
  [
    'embeddingBag',
    () => pg.embeddingBag(ints(2, 2), zeros([3, 4]), { perSampleWeights: zeros([2, 2]) }),
    /mode 'mean'.*mode 'sum'/,
  ],
  [
    'embeddingBag',
    () => pg.embeddingBag(ints(2, 2), zeros([3, 4]), { mode: 'sum', perSampleWeights: zeros([2, 3]) }),
    /\[2, 3\].*\[2, 2\]/,
  ],
  ['embeddingBag', () => pg.embeddingBag(ints(2), zeros([3, 4]), { offsets: ints(1, 1) }), /offsets have shape/],
  ['rbfKernel', () => pg.rbfKernel(zeros([2, 3]), zeros([2, 4])), /\[2, 3\] and \[2, 4\]/],
  ['rbfKernel', () => pg.rbfKernel(zeros([3]), zeros([2, 3])), /vectors do not fit/],
  ['rbfKernel', () => pg.rbfKernel(zeros([2, 3]), zeros([2, 3]), { gamma: Number.NaN }), /bad gamma: NaN/],
  ['interpolate', () => pg.interpolate(image(), {}), /size is missing and scaleFactor/],
  ['interpolate', () => pg.interpolate(image(), { size: 2, scaleFactor: 2 }), /exactly one/],
  ['interpolate', () => pg.interpolate(image(), { size: [2] }), /size: 1 for 2 spatial axes/],
  ['interpolate', () => pg.interpolate(image(), { size: 0 }), /bad size: 0/],
  ['interpolate', () => pg.interpolate(image(), { size: 1.5 }), /bad size: 1.5/],
  ['interpolate', () => pg.interpolate(image(), { scaleFactor: -1 }), /bad scaleFactor: -1/],
  ['interpolate', () => pg.interpolate(image(), { scaleFactor: 0.1 }), /nothing left/],
  ['interpolate', () => pg.interpolate(image(), { size: 2, mode: 'linear' }), /'linear' is for 1 .* has 2/],
  ['interpolate', () => pg.interpolate(image(), { size: 2, mode: 'lanczos' as never }), /'lanczos'.*bicubic/],
  ['interpolate', () => pg.interpolate(image(), { size: 2, alignCorners: true }), /alignCorners/],
  ['interpolate', () => pg.interpolate(image(), { size: 2, layout: 'x' as never }), /'x'/],
  ['gridSample', () => pg.gridSample(image(), zeros([1, 2, 2, 3])), /\[1, 2, 4, 4\] and \[1, 2, 2, 3\]/],
  ['gridSample', () => pg.gridSample(image(), zeros([2, 2, 2, 2])), /do not fit/],
  ['gridSample', () => pg.gridSample(zeros([1, 1, 0, 2]), zeros([1, 2, 2, 2])), /nothing to sample/],
  ['gridSample', () => pg.gridSample(image(), zeros([1, 2, 2, 2]), { mode: 'cubic' as never }), /'cubic'/],
  [
    'gridSample',
    () => pg.gridSample(zeros([1, 1, 2, 2, 2]), zeros([1, 2, 2, 2, 3]), { mode: 'bicubic' }),
    /'bicubic' with 3/,
  ],
  ['gridSample', () => pg.gridSample(image(), zeros([1, 2, 2, 2]), { paddingMode: 'wrap' as never }), /'wrap'/],
  ['affineGrid', () => pg.affineGrid(zeros([1, 2, 2]), [1, 1, 2, 2]), /\[1, 2, 2\] and \[1, 1, 2, 2\]/],
  ['affineGrid', () => pg.affineGrid(zeros([2, 2, 3]), [1, 1, 2, 2]), /do not fit/],
];

describe('refused', () => {
  refusedCalls(bad);
});

describe('special values', () => {
  const values = async (t: pg.Tensor): Promise<number[]> => Array.from((await t.data()) as Float32Array, Number);

  it('grid positions far outside are zeros, infinite ones too, and NaN stays', async () => {
    const x = pg.ones([1, 1, 2, 2]);
    for (const mode of ['bilinear', 'nearest', 'bicubic'] as const) {
      const grid = pg.tensor([1e30, 0, Number.POSITIVE_INFINITY, 0, Number.NaN, 0], { shape: [1, 1, 3, 2] });
      expect(await values(pg.gridSample(x, grid, { mode })), mode).toEqual([0, 0, Number.NaN]);
    }
  });

  it('pixels that are not looked at may be NaN', async () => {
    const x = pg.tensor([1, Number.NaN, 3, 4], { shape: [1, 1, 2, 2] });
    const grid = pg.tensor([-1, 1], { shape: [1, 1, 1, 2] });
    expect(await values(pg.gridSample(x, grid, { alignCorners: true, paddingMode: 'border' }))).toEqual([3]);
    expect(await values(pg.adaptiveAvgPool2d(x, [2, 1]))).toEqual([Number.NaN, 3.5]);
    expect(await values(pg.adaptiveMaxPool2d(x, [2, 1]))).toEqual([Number.NaN, 4]);
  });

  it('attention of a NaN is NaN, behind a mask it is not', async () => {
    const k = pg.tensor([
      [0, Number.NaN],
      [0, 1],
    ]);
    const q = pg.ones([1, 2]);
    const v = pg.tensor([[3], [5]]);
    const mask = pg.tensor([[false, true]]);
    for (const form of ['whole', 'blocks'] as const) {
      expect(await values(pg.scaledDotProductAttention(q, k, v, { form })), form).toEqual([Number.NaN]);
      expect(await values(pg.scaledDotProductAttention(q, k, v, { form, mask })), form).toEqual([5]);
    }
  });

  it('attention with dropout keeps the mean, repeats with its key, and has the gradient of what it did', async () => {
    const [q, k] = [pg.zeros([1, 200, 2]), pg.zeros([1, 50, 2])];
    const v = pg.ones([1, 50, 1]);
    for (const form of ['whole', 'blocks'] as const) {
      const options = { form, dropout: 0.3, key: 5, blockSize: [64, 16] } as const;
      const y = await values(pg.scaledDotProductAttention(q, k, v, options));
      expect(y.reduce((a, b) => a + b, 0) / 200).toBeCloseTo(1, 1);
      expect(new Set(y.map((x) => x.toFixed(4))).size).toBeGreaterThan(5);
      expect(await values(pg.scaledDotProductAttention(q, k, v, options))).toEqual(y);
      const draw = (shape: number[], key: number): pg.Tensor => pg.randn(shape, { key, dtype: 'float64' });
      const small = { form, dropout: 0.4, key: 3, blockSize: [2, 3] } as const;
      const f = (a: pg.Tensor, b: pg.Tensor, c: pg.Tensor): pg.Tensor =>
        pg.sum(pg.square(pg.scaledDotProductAttention(a, b, c, small)));
      expect(await pg.gradCheck(f, [draw([2, 3, 2], 1), draw([2, 5, 2], 2), draw([2, 5, 2], 4)]), form).toBe(true);
    }
    expect(await values(pg.scaledDotProductAttention(q, k, v, { dropout: 1 }))).toEqual(new Array(200).fill(0));
  });
});
