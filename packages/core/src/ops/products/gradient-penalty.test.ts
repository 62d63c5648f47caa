/** Gradients of the size of gradients, through whole small networks: what penalties of critics and meta-learning need. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
});

const draw = (shape: readonly number[], key: number): pg.Tensor => pg.randn(shape, { key, dtype: 'float64' });

/** |gradient of f by its first argument|^2, as a function of all arguments. */
function penalty(f: (...xs: pg.Tensor[]) => pg.Tensor) {
  return (...xs: pg.Tensor[]): pg.Tensor => {
    const [x, ...rest] = xs as [pg.Tensor, ...pg.Tensor[]];
    return pg.sum(pg.square(pg.grad((t: pg.Tensor) => f(t, ...rest))(x) as pg.Tensor));
  };
}

const networks: readonly (readonly [string, readonly (readonly number[])[], (...xs: pg.Tensor[]) => pg.Tensor])[] = [
  [
    'convolution, batch norm, average pooling, channels last',
    [
      [2, 5, 5, 2],
      [3, 2, 3, 3],
    ],
    (x, w) => {
      const y = pg.batchNorm(pg.conv2d(x as pg.Tensor, w as pg.Tensor, { layout: 'nhwc', padding: 1 }), {
        training: true,
        layout: 'nhwc',
      });
      return pg.sum(pg.tanh(pg.avgPool2d(y, 2, { layout: 'nhwc' })));
    },
  ],
  [
    'convolution, group norm, max pooling and back, p-norms',
    [
      [1, 2, 4, 4],
      [4, 1, 3, 3],
    ],
    (x, w) => {
      const y = pg.groupNorm(pg.conv2d(x as pg.Tensor, w as pg.Tensor, { groups: 2 }), { groups: 2 });
      const [top, places] = pg.maxPool2d(pg.sin(y), 2, { returnIndices: true });
      return pg.sum(pg.lpPool2d(pg.add(pg.maxUnpool2d(pg.square(top), places, 2), y), 3, 2));
    },
  ],
  [
    'transposed convolution, local response, resampling',
    [
      [1, 2, 2, 3],
      [2, 2, 2, 2],
    ],
    (x, w) => {
      const y = pg.localResponseNorm(pg.convTranspose2d(x as pg.Tensor, w as pg.Tensor, { stride: 2 }), {
        size: 2,
        alpha: 1,
      });
      const theta = pg.tensor([0.8, 0.1, 0.05, -0.1, 0.9, 0.02], { shape: [1, 2, 3], dtype: 'float64' });
      const seen = pg.gridSample(y, pg.affineGrid(theta, [1, 2, 3, 3]), { mode: 'bicubic' });
      return pg.sum(pg.exp(pg.interpolate(seen, { size: [4, 5], mode: 'bilinear' })));
    },
  ],
  ...(['whole', 'blocks'] as const).map(
    (form): readonly [string, readonly (readonly number[])[], (...xs: pg.Tensor[]) => pg.Tensor] => [
      `attention ${form}, rotary positions, layer norm`,
      [
        [1, 4, 4],
        [4, 4],
      ],
      (x, w) => {
        const q = pg.rotaryEmbedding(pg.matmul(pg.layerNorm(x as pg.Tensor), w as pg.Tensor));
        const y = pg.scaledDotProductAttention(q, x as pg.Tensor, x as pg.Tensor, {
          causal: true,
          form,
          blockSize: [2, 3],
        });
        return pg.sum(pg.tanh(pg.rmsNorm(y)).mul(y));
      },
    ],
  ),
];

describe('gradient penalties', () => {
  networks.forEach(([name, shapes, f], i) => {
    it(`of ${name}`, async () => {
      const xs = shapes.map((shape, k) => draw(shape, 10 * i + k + 1));
      expect(await pg.gradCheck(penalty(f), xs)).toBe(true);
    });
  });
});
