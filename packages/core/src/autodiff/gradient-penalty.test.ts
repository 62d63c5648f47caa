/** Penalties on gradients, as in training critics: the norm of a gradient, differentiated by weights, against finite differences in float64. */
import { beforeAll, describe, it } from 'vitest';
import {
  add,
  avgPool2d,
  batchNorm,
  conv1d,
  conv2d,
  div,
  grad,
  gradCheck,
  groupNorm,
  layerNorm,
  leakyRelu,
  logSoftmax,
  matmul,
  maxPool2d,
  mul,
  norm,
  randn,
  setEngine,
  silu,
  softmax,
  square,
  sub,
  sum,
  type Tensor,
  tanh,
  vmap,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const normal = (shape: readonly number[], key: number): Tensor => randn(shape, { key, dtype: 'float64' });

/** (|df/dx| - 1)^2 as a function of the weights. */
function penalty(f: (x: Tensor, ...weights: Tensor[]) => Tensor, x: Tensor) {
  return (...weights: Tensor[]): Tensor => square(sub(norm(grad((t: Tensor) => sum(f(t, ...weights)))(x)), 1));
}

async function check(
  f: (x: Tensor, ...weights: Tensor[]) => Tensor,
  shape: readonly number[],
  ...weights: (readonly number[])[]
): Promise<void> {
  await gradCheck(
    penalty(f, normal(shape, 1)),
    weights.map((w, i) => mul(normal(w, i + 2), 0.5)),
  );
}

describe('gradient penalties', () => {
  it('dense layers', () => check((x, a, b) => tanh(matmul(silu(matmul(x, a)), b)), [3, 4], [4, 5], [5, 2]));
  it('convolution and average pooling', () =>
    check((x, w) => avgPool2d(tanh(conv2d(x, w, { padding: 1, stride: 2 })), 2), [2, 2, 6, 6], [3, 2, 3, 3]));
  it('convolution and maximum pooling', () =>
    check((x, w) => square(maxPool2d(leakyRelu(conv2d(x, w)), 2)), [1, 2, 5, 5], [2, 2, 2, 2]));
  it('grouped, dilated convolution', () =>
    check((x, w) => tanh(conv1d(x, w, { groups: 2, dilation: 2, padding: 2 })), [2, 4, 6], [4, 2, 3]));
  it('batch normalisation', () =>
    check((x, w, b) => tanh(batchNorm(x, { weight: w, bias: b, training: true })), [4, 3], [3], [3]));
  it('layer and group normalisation', async () => {
    await check((x, w, b) => square(layerNorm(x, { weight: w, bias: b })), [3, 4], [4], [4]);
    await check((x, w) => square(mul(groupNorm(x, { groups: 2 }), w)), [2, 4, 2], [4, 1]);
  });
  it('attention', () =>
    check(
      (x, q, k, v) => {
        const scores = div(matmul(matmul(x, q), matmul(x, k).transpose()), Math.sqrt(3));
        return square(add(matmul(softmax(scores, -1), matmul(x, v)), x));
      },
      [2, 4, 3],
      [3, 3],
      [3, 3],
      [3, 3],
    ));
  it('per example, by vmap', async () => {
    const x = normal([3, 4], 1);
    const critic = (t: Tensor, w: Tensor): Tensor => sum(mul(logSoftmax(matmul(t, w)), tanh(matmul(t, w))));
    await gradCheck(
      (w) => {
        const slopes = vmap((t: Tensor) => grad((s: Tensor) => critic(s, w))(t))(x);
        return sum(square(sub(norm(slopes, { axis: 1 }), 1)));
      },
      [normal([4, 3], 2)],
    );
  });
});
