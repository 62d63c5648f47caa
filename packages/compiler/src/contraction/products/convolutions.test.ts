/** Convolutions for a library, among the nests that the planner makes: what is found, that the description says what the program computes, and what is declined. */
import {
  conv1d,
  conv2d,
  convTranspose2d,
  depthwiseConv2d,
  type DType,
  grad,
  permute,
  relu,
  type Tensor,
} from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { vectorCaps } from '../fixtures/cases.ts';
import { difference, found, seeContractions, tensors } from '../fixtures/described.ts';
import { libraryPrograms } from './library.ts';

beforeAll(seeContractions);

interface Case {
  readonly x?: readonly number[];
  readonly w?: readonly number[];
  readonly stride?: number | readonly [number, number];
  readonly padding?: number | readonly [number, number];
  readonly dilation?: number | readonly [number, number];
  readonly groups?: number;
  readonly layout?: 'nhwc';
}

const cases: Readonly<Record<string, Case>> = {
  plain: {},
  padded: { padding: 1 },
  'padded otherwise along columns': { padding: [2, 1] },
  'with strides': { stride: 2, padding: 1 },
  'with other strides along columns': { stride: [1, 2], padding: 1, x: [2, 4, 9, 9] },
  dilated: { dilation: 2, padding: 2 },
  'strided and dilated': { dilation: [2, 1], stride: [2, 1], padding: [2, 1] },
  'in groups': { groups: 2, w: [6, 2, 3, 3], padding: 1 },
  'in groups with strides': { groups: 2, w: [6, 2, 3, 3], padding: 1, stride: 2, x: [2, 4, 9, 9] },
  'of each channel': { groups: 4, w: [4, 1, 3, 3], padding: 1 },
  'of one image': { x: [1, 4, 9, 10], padding: 1 },
  'of one channel': { x: [2, 1, 9, 10], w: [6, 1, 3, 3], padding: 1 },
  'with one feature': { w: [1, 4, 3, 3], padding: 1 },
  'with a kernel of one row': { w: [6, 4, 1, 3], padding: [0, 1] },
  'with a kernel of 5 x 3': { w: [6, 4, 5, 3], padding: [2, 1] },
  'with a kernel of one element, and strides': { w: [6, 4, 1, 1], stride: 2, x: [2, 4, 9, 9] },
  'with a kernel of one element': { w: [6, 4, 1, 1] },
  'with windows side by side': { x: [2, 3, 12, 16], w: [8, 3, 4, 4], stride: 4 },
  'with channels last': { x: [2, 9, 10, 4], padding: 1, layout: 'nhwc' },
};

const pairOf = (x: number | readonly [number, number] | undefined, other: number): readonly [number, number] =>
  x === undefined || typeof x === 'number' ? [x ?? other, x ?? other] : x;

describe('convolutions for a library', () => {
  it.each(Object.keys(cases))('%s: forward', async (name) => {
    const { x = [2, 4, 9, 10], w = [6, 4, 3, 3], ...options } = cases[name]!;
    const [a, b] = (await tensors(x, w)) as [Tensor, Tensor];
    const it = await found(() => conv2d(a, b, options));
    expect(it.product).toMatchObject({ pass: 'forward', groups: options.groups ?? 1, flipped: false });
    if (w[2]! > 1 && w[3]! > 1 && name !== 'strided and dilated') {
      const spatial = options.layout === 'nhwc' ? [x[1], x[2]] : [x[2], x[3]];
      const padding = pairOf(options.padding, 0);
      const strides = pairOf(options.stride, 1);
      // Rows that no window reaches do not count.
      const reached = spatial.map((n, i) => it.product!.size[i]! <= n! && it.product!.size[i]! > n! - strides[i]!);
      expect(reached).toEqual([true, true]);
      expect(it.product).toMatchObject({
        kernel: w.slice(2),
        padding,
        stride: strides,
        dilation: pairOf(options.dilation, 1),
      });
    }
    expect(difference(it)).toBeLessThan(1e-5);
  });

  it.each(Object.keys(cases))('%s: gradients', async (name) => {
    const { x = [2, 4, 9, 10], w = [6, 4, 3, 3], ...options } = cases[name]!;
    const [a, b] = (await tensors(x, w)) as [Tensor, Tensor];
    const weights = conv2d(a, b, options);
    const [g] = (await tensors(weights.shape)) as [Tensor];
    const of = (p: Tensor, q: Tensor): Tensor => conv2d(p, q, options).mul(g).sum();
    const kernel = await found(() => grad((q: Tensor) => of(a, q))(b));
    const input = await found(() => grad((p: Tensor) => of(p, b))(a));
    const passes = [kernel, input].map(({ product }) => product?.pass);
    // Some are of several forms: with one element in the kernel, or one channel or feature in a group, where a kernel that is flipped goes forward.
    const isOfOne = w[0]! === (options.groups ?? 1) || w[1] === 1;
    if (w[2]! > 1 && w[3]! > 1) expect(passes).toEqual(['kernel', isOfOne ? 'forward' : 'input']);
    for (const it of [kernel, input]) {
      expect(it.product).not.toBeNull();
      expect(difference(it)).toBeLessThan(1e-4);
    }
  });

  it('transposed, they are gradients by the input', async () => {
    const [x, w] = (await tensors([2, 4, 5, 6], [4, 3, 3, 3])) as [Tensor, Tensor];
    for (const options of [{}, { stride: 2 }, { stride: 2, padding: 1, outputPadding: 1 }]) {
      const it = await found(() => convTranspose2d(x, w, options));
      expect(it.product?.pass).toBe('input');
      expect(difference(it)).toBeLessThan(1e-5);
    }
  });

  it('in one dimension, they have one row', async () => {
    const [x, w] = (await tensors([2, 4, 30], [6, 4, 5])) as [Tensor, Tensor];
    const it = await found(() => conv1d(x, w, { padding: 2 }));
    expect(it.product).toMatchObject({ size: [1, 30], kernel: [1, 5], padding: [0, 2] });
    expect(difference(it)).toBeLessThan(1e-5);
  });

  it('leave what is done to the sums to a second dispatch', async () => {
    const [x, w, bias] = (await tensors([2, 4, 9, 10], [6, 4, 3, 3], [6])) as [Tensor, Tensor, Tensor];
    const it = await found(() => relu(conv2d(x, w, { padding: 1, bias })));
    expect(it.convolution?.direct).toBe(false);
    expect(difference(it)).toBeLessThan(1e-5);
    const turned = await found(() => permute(conv2d(x, w, { padding: 1 }), [0, 2, 3, 1]));
    expect(turned.convolution?.direct).toBe(true);
    expect(difference(turned)).toBeLessThan(1e-5);
  });

  it.each(['float16', 'bfloat16'] as const)('of %s are kept in 16 bits', async (dtype: DType) => {
    const [x, w] = (await tensors([2, 4, 9, 10], [6, 4, 3, 3])).map((t) => t.cast(dtype)) as [Tensor, Tensor];
    await x.data();
    await w.data();
    const { product, convolution } = await found(() => conv2d(x, w, { padding: 1 }));
    expect([product?.dtype, product?.result, convolution?.direct]).toEqual([dtype, dtype, true]);
    // What is made of the rounded sums is made of them in memory.
    const more = await found(() => relu(conv2d(x, w, { padding: 1 })));
    expect([more.product?.result, more.convolution?.direct]).toEqual([dtype, false]);
    const { temps } = libraryPrograms.lower(more.c, more.e, vectorCaps, more.convolution!);
    expect(temps).toEqual([2 * 2 * 6 * 9 * 10]);
    // With a bias the sums are needed in float32.
    const [bias] = (await tensors([6])) as [Tensor];
    expect((await found(() => conv2d(x, w, { padding: 1, bias }))).product?.result).not.toBe(dtype);
  });

  it('by the kernel are told from others, whatever order the result has', async () => {
    const [x, w] = (await tensors([2, 3, 9, 9], [4, 3, 3, 3])) as [Tensor, Tensor];
    const it = await found(() => grad((q: Tensor) => conv2d(x, q, { padding: 1 }).square().sum())(w).square());
    expect([it.product?.pass, it.convolution?.direct]).toEqual(['kernel', false]);
    expect(difference(it)).toBeLessThan(1e-3);
  });

  it('are not those with other padding at one end, of computed factors, or with masks', async () => {
    const [x, w, m] = (await tensors([2, 4, 9, 10], [6, 4, 3, 3], [2, 4, 9, 10])) as [Tensor, Tensor, Tensor];
    const declined = {
      'more padding at one end': () =>
        conv2d(x, w, {
          padding: [
            [2, 1],
            [1, 1],
          ],
        }),
      'a computed image': () => conv2d(x.mul(m), w, { padding: 1 }),
      'a computed kernel': () => conv2d(x, w.mul(2), { padding: 1 }),
    };
    for (const [name, compute] of Object.entries(declined)) expect((await found(compute)).product, name).toBeNull();
    const one = await tensors([4, 1, 3, 3]);
    expect((await found(() => depthwiseConv2d(x, one[0]!, { padding: 1 }))).product?.groups).toBe(4);
  });
});
