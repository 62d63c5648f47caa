/** Layers that are made of several operations, forward and backward in mixed precision: they give about what float32 gives. */
import { autocast, flush, isTensor, rand, seed, setEngine, sum, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';

beforeAll(async () => setEngine(createReferenceEngine()));

/** The tensor that stands first in a result. */
function first(value: unknown): Tensor {
  return isTensor(value) ? value : first(Object.values(value as object)[0]);
}

const layers: Readonly<Record<string, readonly [make: () => nn.AnyModule, shape: readonly number[]]>> = {
  LSTM: [() => new nn.LSTM(5, 4), [2, 3, 5]],
  GRU: [() => new nn.GRU(5, 4), [2, 3, 5]],
  RNN: [() => new nn.RNN(5, 4), [2, 3, 5]],
  'LSTM without bias': [() => new nn.LSTM(5, 4, { bias: false }), [2, 3, 5]],
  'RNN without bias': [() => new nn.RNN(5, 4, { bias: false }), [2, 3, 5]],
  LSTMCell: [() => new nn.LSTMCell(5, 4), [2, 5]],
  TransformerBlock: [() => new nn.TransformerBlock(8, 2, { causal: true }), [2, 3, 8]],
  TransformerEncoderLayer: [() => new nn.TransformerEncoderLayer(8, 2, { dropout: 0 }), [2, 3, 8]],
  'convolutions with norms': [
    () =>
      new nn.Sequential(
        new nn.Conv2d(2, 4, 3, { padding: 1 }),
        new nn.BatchNorm2d(4),
        new nn.Tanh(),
        new nn.ConvTranspose2d(4, 4, 2, { stride: 2 }),
        new nn.GroupNorm(2, 4),
        new nn.SiLU(),
        new nn.AvgPool2d(2),
        new nn.InstanceNorm2d(4),
        new nn.Flatten(),
        new nn.Linear(64, 3),
        new nn.LayerNorm(3),
        new nn.LogSoftmax(),
      ),
    [2, 2, 4, 4],
  ],
  Bilinear: [
    () =>
      new (class extends nn.Module {
        readonly product = new nn.Bilinear(4, 4, 3);
        forward(x: Tensor): Tensor {
          return this.product.forward(x, x);
        }
      })(),
    [5, 4],
  ],
  'weight norm': [
    () => {
      const layer = new nn.Linear(4, 3);
      nn.weightNorm(layer);
      return layer;
    },
    [5, 4],
  ],
  'a KV cache and rotary embeddings': [
    () =>
      new (class extends nn.Module {
        readonly attention = new nn.MultiHeadAttention(8, 2, { causal: true });
        forward(x: Tensor): Tensor {
          return this.attention.forward(x);
        }
      })(),
    [1, 4, 8],
  ],
};

describe.each(Object.entries(layers))('%s', (_name, [make, shape]) => {
  it('in bfloat16', async () => {
    seed(4);
    const model = make();
    const x = rand([...shape]).sub(0.5);
    flush();
    const run = async (within: <T>(body: () => T) => T): Promise<number[][]> => {
      const { value, grads } = nn.lossAndGrad(model, () =>
        within(() => {
          const y = first((model as unknown as { forward(x: Tensor): unknown }).forward(x));
          return sum(
            y.cast('float32').mul(
              tensor(
                Array.from({ length: y.size }, (_, i) => ((i * 7) % 5) - 1.5),
                { shape: y.shape },
              ),
            ),
          );
        }),
      );
      const all = [value, ...grads.filter((g) => g !== null)];
      expect(grads.every((g) => g === null || g.dtype === 'float32')).toBe(true);
      return Promise.all(all.map(async (t) => Array.from(await t.data(), Number)));
    };
    const want = await run((body) => body());
    const found = await run((body) => autocast('bfloat16', body));
    const top = Math.max(...want.flat().map(Math.abs));
    for (const [i, list] of found.entries())
      for (const [j, value] of list.entries()) expect(Math.abs(value - want[i]![j]!)).toBeLessThan(0.06 * top);
  });
});
