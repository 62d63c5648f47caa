/** Composed operations stay in one kernel: counted on an engine without a device. */
import { describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import type { Tensor } from '../index.ts';
import { createNullEngine } from '@polygrad/testing';

const engine = createNullEngine();
await pg.setEngine(engine);
const x = pg.rand([64, 100]);
const y = pg.rand([64, 100]);
const z = pg.rand([64, 100]);
pg.flush();

function kernels(body: () => Tensor): number {
  engine.reset();
  const result = body();
  pg.flush();
  const count = engine.counts().dispatches;
  result.dispose();
  return count;
}

const single: Readonly<Record<string, () => Tensor>> = {
  gelu: () => pg.gelu(x),
  'gelu tanh': () => pg.gelu(x, { approximate: 'tanh' }),
  softmax: () => pg.softmax(x),
  layerNorm: () => pg.layerNorm(x, { normalizedShape: [100] }),
  lgamma: () => pg.lgamma(x),
  digamma: () => pg.digamma(x),
  polygamma: () => pg.polygamma(3, x),
  erfc: () => pg.erfc(x),
  erfinv: () => pg.erfinv(x),
  'gradient of lgamma': () => pg.grad((t: Tensor) => pg.sum(pg.lgamma(t)))(x) as Tensor,
  fma: () => pg.fma(x, y, z),
  floorDivide: () => pg.floorDivide(x, y),
  logSumExp: () => pg.logSumExp(x, 1),
  'norm of order 3': () => pg.norm(x, { p: 3, axis: 1 }),
  normalize: () => pg.normalize(x),
  cosineSimilarity: () => pg.cosineSimilarity(x, y),
  cdist: () => pg.cdist(x, y),
  kron: () => pg.kron(x, pg.narrow(y, 0, 0, 2)),
  unfold: () => pg.unfold(pg.reshape(x, [1, 64, 100]), 3),
  diagEmbed: () => pg.diagEmbed(x),
  pixelShuffle: () => pg.pixelShuffle(pg.reshape(x, [1, 64, 10, 10]), 2),
  binaryCrossEntropyWithLogits: () => pg.binaryCrossEntropyWithLogits(x, y),
  gaussianNllLoss: () => pg.gaussianNllLoss(x, y, z),
};

describe('one kernel for', () => {
  for (const [name, body] of Object.entries(single)) {
    it(name, () => {
      expect(kernels(body)).toBe(1);
    });
  }
});

describe('losses of several labels', () => {
  it('keep no number for each pair of classes', () => {
    const labels = pg.full([64, 100], 3, { dtype: 'int32' });
    const loss = (t: Tensor): Tensor => pg.multiLabelMarginLoss(t, labels);
    pg.flush();
    engine.reset();
    const before = engine.memory().bytes;
    const slope = pg.grad(loss)(x) as Tensor;
    pg.flush();
    expect(engine.counts().peakBytes - before).toBeLessThan(6 * x.size * 4);
    slope.dispose();
  });
});

describe('gradients of maxima of uneven windows', () => {
  it('keep no number for each element of each window', () => {
    const image = pg.zeros([2, 3, 30, 30]);
    pg.flush();
    engine.reset();
    const before = engine.memory().bytes;
    const slope = pg.grad((t: Tensor) => pg.sum(pg.adaptiveMaxPool2d(t, 7)))(image) as Tensor;
    pg.flush();
    expect(engine.counts().peakBytes - before).toBeLessThan(1.5 * image.size * 4);
    slope.dispose();
  });
});
