/** Mixed precision against PyTorch's on the CPU: layers, a loss and gradients as `torch.autocast('cpu', torch.bfloat16)` has them. */
import { autocast, relu, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';

/** What tooling/goldens/autocast.py prints (PyTorch 1.13.1). */
const expected: Readonly<Record<string, { readonly dtype: string; readonly values: readonly number[] }>> = {
  loss: { dtype: 'float32', values: [1.367979] },
  out: {
    dtype: 'bfloat16',
    values: [
      -0.2314453, 1.554688, 0.2871094, 0.009033203, 0.5585938, -0.6796875, 0.7929688, 1.28125, -0.005096436, -0.765625,
      0.07421875, -1.34375,
    ],
  },
  image: {
    dtype: 'bfloat16',
    values: [
      0.4257812, 0.9140625, 0.796875, 0.7304688, -0.06494141, 1.507812, 0.2470703, 1.289062, 0.5039062, 0.4121094,
      1.226562, 0.3613281, 0.3613281, 0.7539062, 0.8554688, 0.8632812, -0.1328125, -0.9609375, -1.0, -0.4433594,
      -0.4550781, -1.257812, -1.398438, -0.5898438, -0.06396484, -1.320312, -1.382812, 0.01953125, -0.4316406,
      -1.078125, -0.890625, -0.15625,
    ],
  },
  weight1: {
    dtype: 'float32',
    values: [
      -0.1137695, 0.003173828, 0.1201172, -0.08203125, 0.03466797, 0.1513672, 0.005432129, 0.04541016, -0.02380371,
      0.01623535, -0.05297852, -0.01300049, 0.2207031, 0.1582031, -0.08154297, 0.02026367, -0.4492188, 0.0559082,
      0.0002031326, -0.0003166199, -1.633167e-5, 0.0002841949, -0.0002355576, 6.532669e-5, 0.2011719, -0.04785156,
      -0.07617188, -0.008300781, -0.0559082, -0.08496094, -0.1953125, 0.005432129, 0.2050781, -0.140625, 0.05957031,
      0.2597656, -0.003753662, -0.03149414, 0.01647949, -0.01123047, 0.03662109, 0.008972168, 0.171875, 0.1318359,
      -0.234375, 0.1601562, -0.2050781, -0.2451172,
    ],
  },
  bias1: {
    dtype: 'float32',
    values: [0.1894531, 0.06494141, 0.8203125, 0.0004882812, -0.046875, 0.3242188, -0.04492188, -0.06347656],
  },
  weight2: {
    dtype: 'float32',
    values: [
      -0.2871094, -0.02624512, -0.1582031, -0.06298828, -0.1523438, -0.2138672, -0.003295898, -0.05810547, 0.06982422,
      0.1240234, 0.3691406, 0.1757812, 0.6914062, 0.05200195, 0.015625, 0.2128906, -0.3125, 0.02490234, -0.0402832,
      -0.09765625, -0.296875, -0.2314453, 0.003128052, 0.02709961,
    ],
  },
  bias2: { dtype: 'float32', values: [-0.3769531, 0.9453125, -0.3359375] },
};

beforeAll(async () => setEngine(createReferenceEngine()));

const values = (k: number, shape: readonly number[]): Tensor => {
  const size = shape.reduce((product, n) => product * n, 1);
  return tensor(
    Array.from({ length: size }, (_, j) => (((37 * j + 11 * k) % 101) - 50) / 60),
    { shape },
  );
};

const from =
  (k: number): nn.Initializer =>
  (shape) =>
    values(k, shape);

describe('PyTorch', () => {
  it('has these dtypes, values and gradients, to the digits of bfloat16', async () => {
    const first = new nn.Linear(6, 8, { weightInit: from(1), biasInit: from(2) });
    const second = new nn.Linear(8, 3, { weightInit: from(3), biasInit: from(4) });
    const conv = new nn.Conv2d(1, 2, 3, { padding: 1, weightInit: from(7), biasInit: from(8) });
    const model = new nn.Sequential(first, relu, second);
    const { grads, aux } = nn.lossAndGrad(model, () =>
      autocast('bfloat16', () => {
        const out = model.forward(values(5, [4, 6]));
        const loss = nn.mseLoss(out, values(6, [4, 3]));
        return [loss, { out, loss, image: conv.forward(values(9, [1, 1, 4, 4])) }] as const;
      }),
    );
    const [weight1, bias1, weight2, bias2] = grads as Tensor[];
    const found = { ...aux, weight1, bias1, weight2, bias2 };
    for (const [name, { dtype, values: wanted }] of Object.entries(expected)) {
      const t = found[name as keyof typeof found]!;
      expect(t.dtype, name).toBe(dtype);
      const largest = Math.max(...wanted.map(Math.abs));
      for (const [i, value] of Array.from(await t.cast('float32').data()).entries())
        expect(Math.abs(value - wanted[i]!), `${name} ${i}`).toBeLessThanOrEqual(
          1.6e-2 * Math.abs(wanted[i]!) + 2 ** -8 * largest,
        );
    }
  });
});
