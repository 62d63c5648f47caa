/** Convolution and pooling with paddings, layouts, positions and ceilings. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, i32, near, range, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('convolution and pooling', () => {
  it('takes paddings, layouts and a bias', async () => {
    const x = range([1, 1, 4, 4]);
    const w = pg.ones([1, 1, 3, 3], { dtype: 'float64' });
    expect(pg.conv2d(x, w, { padding: 'same' }).shape).toEqual([1, 1, 4, 4]);
    expect(pg.conv2d(x, w, { padding: 'same', stride: 2 }).shape).toEqual([1, 1, 2, 2]);
    expect(
      pg.conv2d(x, w, {
        padding: [
          [1, 0],
          [2, 1],
        ],
      }).shape,
    ).toEqual([1, 1, 3, 5]);
    await near(pg.conv2d(x, w, { bias: f64([100]) }), [145, 154, 181, 190]);
    const nhwc = pg.conv2d(pg.permute(x, [0, 2, 3, 1]), w, { layout: 'nhwc' });
    expect(nhwc.shape).toEqual([1, 2, 2, 1]);
    await near(nhwc, [45, 54, 81, 90]);
    await near(pg.depthwiseConv2d(range([1, 2, 2, 2]), pg.ones([4, 1, 2, 2], { dtype: 'float64' })), [6, 6, 22, 22]);
    expect(() => pg.conv2d(x, w, { padding: 'around' as never })).toThrow(/\[conv2d\].*around/);
    expect(() => pg.conv2d(x, w, { stride: 0 })).toThrow(/\[conv2d\].*stride/);
    expect(() => pg.conv2d(x, w, { bias: f64([1, 2]) })).toThrow(/\[conv2d\].*bias/);
  });

  it('transposed convolution undoes the shapes of convolution', async () => {
    await near(pg.convTranspose1d(f64([[[1, 2]]]), f64([[[1, 10, 100]]]), { stride: 2 }), [1, 10, 102, 20, 200]);
    await near(
      pg.convTranspose1d(f64([[[1, 2]]]), f64([[[1, 10, 100]]]), { stride: 2, padding: 1, outputPadding: 1 }),
      [10, 102, 20, 200],
    );
  });

  it('pools with positions, ceiling and padding that does not count', async () => {
    const x = pg.neg(range([1, 1, 3, 3]));
    const [top, at] = pg.maxPool2d(x, 2, { stride: 2, padding: 1, returnIndices: true });
    await near(top, [0, -1, -3, -4]);
    expect(await values(at)).toEqual([0, 1, 3, 4]);
    await near(pg.maxPool2d(range([1, 1, 3, 3]), 2, { ceilMode: true }), [4, 5, 7, 8]);
    await near(pg.avgPool2d(range([1, 1, 3, 3]), 2, { ceilMode: true }), [2, 3.5, 6.5, 8]);
    await near(pg.avgPool2d(range([1, 1, 2, 2]), 2, { padding: 1, stride: 2 }), [0, 0.25, 0.5, 0.75]);
    await near(pg.avgPool2d(range([1, 1, 2, 2]), 2, { padding: 1, stride: 2, countIncludePad: false }), [0, 1, 2, 3]);
    await near(pg.maxPool2d(range([1, 2, 2, 1]), { kernelSize: 2, layout: 'nhwc' }), [3]);
    await near(pg.maxPool1d(range([1, 1, 5]), { kernelSize: 2, stride: 1, dilation: 2 }), [2, 3, 4]);
    expect(await values(pg.maxPool1d(i32([[[-5, -7]]]), 2, { padding: 1 }))).toEqual([-5, -7]);
    expect(() => pg.maxPool2d(range([1, 1, 2, 2]), 3)).toThrow(/\[maxPool2d\].*3/);
    await near(pg.globalAvgPool2d(range([1, 2, 2, 2])), [1.5, 5.5]);
  });

  // As in PyTorch: the first of equals among elements of the image, never one of the padding.
  it('finds positions in the image where windows hold nothing above the padding', async () => {
    const low = pg.full([1, 1, 4, 4], -Infinity, { dtype: 'float64' });
    const [, at] = pg.maxPool2d(low, 2, { padding: 1, returnIndices: true });
    expect(await values(at)).toEqual([0, 1, 3, 4, 5, 7, 12, 13, 15]);
    const [least, places] = pg.maxPool2d(pg.full([1, 1, 3, 3], -128, { dtype: 'int8' }), 3, {
      padding: 1,
      stride: 2,
      returnIndices: true,
    });
    expect(await values(least)).toEqual([-128, -128, -128, -128]);
    expect(await values(places)).toEqual([0, 1, 3, 4]);
    const dilated = { kernelSize: 3, padding: 2, dilation: 2, stride: 1 };
    const [, apart] = pg.maxPool1d(pg.full([1, 1, 3], -Infinity), dilated, { returnIndices: true });
    expect(await values(apart)).toEqual([0, 1, 0]);
    // Windows of which no element is in the image have a position in it, too.
    const [, nowhere] = pg.maxPool1d(
      pg.zeros([1, 1, 1]),
      { ...dilated, kernelSize: 2, padding: 1 },
      { returnIndices: true },
    );
    expect(await values(nowhere)).toEqual([0]);
  });

  it('and the gradient of such a window goes there', async () => {
    const slope = (x: pg.Tensor, options: pg.PoolOptions): pg.Tensor =>
      pg.grad((t: pg.Tensor) => pg.sum(pg.maxPool2d(t, options)))(x) as pg.Tensor;
    const low = pg.full([2, 2, 3, 4], -Infinity, { dtype: 'float64' });
    for (const options of [
      { kernelSize: 2, padding: 1 },
      { kernelSize: 3, padding: 1, stride: 2 },
      { kernelSize: [3, 2], padding: [1, 0], stride: 1 },
      { kernelSize: 3, padding: 2, dilation: 2, stride: 1 },
    ] satisfies pg.PoolOptions[]) {
      const [top, places] = pg.maxPool2d(low, options, { returnIndices: true });
      const expected = new Array<number>(12).fill(0);
      for (const place of (await values(places)).slice(0, top.size / 4)) expected[place]!++;
      const everywhere = [expected, expected, expected, expected].flat();
      expect(await values(slope(low, options))).toEqual(everywhere);
      expect(await values(pg.vmap((x: pg.Tensor) => slope(x, options))(pg.unsqueeze(low, 1)) as pg.Tensor)).toEqual(
        everywhere,
      );
    }
    // Beside it, one that is not the least.
    const mixed = f64([[[[-Infinity, -Infinity, 2, -Infinity]]]]);
    expect(await values(slope(mixed, { kernelSize: [1, 3], padding: [0, 1], stride: 1 }))).toEqual([1, 0, 3, 0]);
  });
});
