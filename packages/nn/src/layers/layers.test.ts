/** Layers: shapes, parameters, first values, and numbers against formulas written out here. */
import {
  checkpoint,
  eye,
  memory,
  mseLoss,
  ones,
  scope,
  seed,
  setEngine,
  type Tensor,
  tensor,
  zeros,
} from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  fansOf,
  gainOf,
  kaimingNormal,
  kaimingUniform,
  normalInit,
  uniformInit,
  xavierNormal,
  xavierUniform,
  onesInit,
  truncNormalInit,
} from '../init/init.ts';
import { orthogonalInit } from '../init/orthogonal.ts';
import { lossAndGrad } from '../train/loss-and-grad.ts';
import { GELU, LeakyReLU, ReLU, Sigmoid, Softmax } from './activation.ts';
import { Conv2d, ConvTranspose2d } from './conv.ts';
import { Dropout } from './dropout.ts';
import { Embedding, EmbeddingBag } from './embedding.ts';
import { Linear } from './linear.ts';
import { BatchNorm2d, LayerNorm, RMSNorm } from './norm.ts';
import { AvgPool2d, GlobalAvgPool2d, MaxPool2d } from './pool.ts';
import { Flatten } from './shape.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const numbers = async (t: Tensor): Promise<number[]> => Array.from((await t.data()) as Float32Array);

function moments(values: readonly number[]): { mean: number; std: number; largest: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, std: Math.sqrt(variance), largest: Math.max(...values.map(Math.abs)) };
}

function close(found: readonly number[], expected: readonly number[], tolerance: number = 1e-5): void {
  expect(found.length).toBe(expected.length);
  for (const [index, value] of expected.entries()) expect(Math.abs(found[index]! - value)).toBeLessThan(tolerance);
}

describe('initialisers', () => {
  it('know fans and gains', () => {
    expect(fansOf([16, 8, 3, 3])).toEqual({ fanIn: 72, fanOut: 144 });
    expect(fansOf([5, 7])).toEqual({ fanIn: 7, fanOut: 5 });
    expect(() => fansOf([5])).toThrow(/needs at least two axes/);
    expect([gainOf('relu'), gainOf('tanh'), gainOf('leakyRelu', Math.sqrt(5))]).toEqual([
      Math.SQRT2,
      5 / 3,
      Math.sqrt(1 / 3),
    ]);
  });

  it('have the deviation and the bounds they should have', async () => {
    seed(11);
    const shape = [20, 50];
    const uniformBound = (std: number): number => Math.sqrt(3) * std;
    const cases: [Tensor, number, number][] = [
      [uniformInit(-2, 2)(shape), 2 / Math.sqrt(3), 2],
      [normalInit(0, 3)(shape), 3, Number.POSITIVE_INFINITY],
      [kaimingUniform({ nonlinearity: 'relu' })(shape), Math.sqrt(2 / 50), uniformBound(Math.sqrt(2 / 50))],
      [kaimingNormal({ nonlinearity: 'relu', mode: 'out' })(shape), Math.sqrt(2 / 20), Number.POSITIVE_INFINITY],
      [xavierUniform()(shape), Math.sqrt(2 / 70), uniformBound(Math.sqrt(2 / 70))],
      [xavierNormal(2)(shape), 2 * Math.sqrt(2 / 70), Number.POSITIVE_INFINITY],
    ];
    for (const [made, std, bound] of cases) {
      const found = moments(await numbers(made));
      expect(Math.abs(found.std / std - 1)).toBeLessThan(0.08);
      expect(Math.abs(found.mean)).toBeLessThan(0.1 * std);
      expect(found.largest).toBeLessThanOrEqual(bound * (1 + 1e-6));
    }
  });

  it('orthogonalInit: orthonormal rows or columns, times the gain, without a preferred sign', async () => {
    seed(5);
    for (const shape of [
      [6, 6],
      [3, 8],
      [8, 3],
      [4, 2, 3, 3],
      [1, 5],
    ]) {
      const made = orthogonalInit(3)(shape, 'float64');
      expect(made.shape).toEqual(shape);
      const w = made.reshape([shape[0]!, -1]);
      const products = w.shape[0]! <= w.shape[1]! ? w.matmul(w.transpose()) : w.transpose().matmul(w);
      const rest = products.sub(eye(products.shape[0]!, { dtype: 'float64' }).mul(9));
      expect(Math.max(...(await numbers(rest)).map(Math.abs))).toBeLessThan(1e-12);
    }
    const corners = await Promise.all(
      Array.from({ length: 60 }, async () => (await numbers(orthogonalInit()([2, 2])))[0]!),
    );
    // Reflections alone give one sign. 60 draws of one sign have a chance of 2^-59; cosines of uniform angles have the deviation 1 / sqrt(2).
    expect(Math.min(...corners)).toBeLessThan(-0.5);
    expect(Math.max(...corners)).toBeGreaterThan(0.5);
    expect(orthogonalInit()([2, 0]).shape).toEqual([2, 0]);
    expect(orthogonalInit()([3, 2], 'float16').dtype).toBe('float16');
    expect(() => orthogonalInit()([3])).toThrow(/is no matrix; it needs at least two axes/);
  });

  it('truncNormalInit: the moments of a normal distribution between bounds', async () => {
    seed(6);
    // By Simpson's rule, of the density between the bounds.
    const expected = (mean: number, std: number, low: number, high: number): [number, number] => {
      const sums = [0, 0, 0];
      for (let i = 0; i <= 2000; i++) {
        const x = low + ((high - low) * i) / 2000;
        const weight = (i % 2000 === 0 ? 1 : 2 + 2 * (i % 2)) * Math.exp(-0.5 * ((x - mean) / std) ** 2);
        for (const [power] of sums.entries()) sums[power]! += weight * x ** power;
      }
      return [sums[1]! / sums[0]!, Math.sqrt(sums[2]! / sums[0]! - (sums[1]! / sums[0]!) ** 2)];
    };
    for (const [mean, std, low, high] of [
      [0, 1, -2, 2],
      [1, 2, 0, 1.5],
      [0, 0.02, -2, 2],
    ] as const) {
      const values = await numbers(truncNormalInit(mean, std, { low, high })([40, 100], 'float64'));
      const found = moments(values);
      const [middle, spread] = expected(mean, std, low, high);
      expect(Math.abs(found.mean - middle)).toBeLessThan(0.08 * spread);
      expect(Math.abs(found.std / spread - 1)).toBeLessThan(0.05);
      expect(Math.min(...values)).toBeGreaterThanOrEqual(low);
      expect(Math.max(...values)).toBeLessThanOrEqual(high);
    }
    expect(() => truncNormalInit(0, 1, { low: 2 })).toThrow(/bad high: 2; must be a finite number above low, 2/);
    expect(() => truncNormalInit(0, 0)).toThrow(/bad std: 0; must be above 0/);
  });

  it("give Linear and Conv2d PyTorch's first values: uniform within 1 / sqrt(fan in)", async () => {
    seed(12);
    using linear = new Linear(64, 100);
    using conv = new Conv2d(16, 32, 3);
    for (const [layer, fanIn] of [
      [linear, 64],
      [conv, 144],
    ] as const) {
      for (const values of [layer.weight, layer.bias!]) {
        const { largest, std } = moments(await numbers(values));
        expect(largest).toBeLessThanOrEqual(1 / Math.sqrt(fanIn));
        expect(Math.abs(std * Math.sqrt(3 * fanIn) - 1)).toBeLessThan(values === layer.weight ? 0.05 : 0.3);
      }
    }
  });

  it('leave nothing behind but the values', () => {
    const before = memory().numTensors;
    const made = [new Linear(3, 4), new Conv2d(1, 2, 3), new Embedding(3, 4), new BatchNorm2d(2)];
    const values = made.reduce((count, layer) => count + Object.keys(layer.stateDict()).length, 0);
    expect(memory().numTensors).toBe(before + values);
    for (const layer of made) layer.dispose();
    expect(memory().numTensors).toBe(before);
  });

  it('give the same values for the same seed', async () => {
    const make = async (): Promise<number[]> => {
      seed(9);
      using layer = new Linear(3, 4);
      return numbers(layer.weight);
    };
    expect(await make()).toEqual(await make());
  });
});

describe('layers', () => {
  it('Linear multiplies by the transposed weight and adds the bias', async () => {
    using layer = new Linear(2, 3);
    const weight = tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    const bias = tensor([10, 20, 30]);
    layer.weight.assign(weight);
    layer.bias!.assign(bias);
    expect(await numbers(layer.forward(tensor([[1, -1]])))).toEqual([9, 19, 29]);
    expect(layer.forward(zeros([4, 5, 2])).shape).toEqual([4, 5, 3]);
    using bare = new Linear(2, 3, { bias: false });
    expect(bare.parameters().length).toBe(1);
  });

  it('have the parameters and shapes of the documentation', () => {
    scope(() => {
      const shapeOf = (t: Tensor): readonly number[] => t.shape;
      expect(new Conv2d(1, 8, 3, { padding: 'same' }).weight.shape).toEqual([8, 1, 3, 3]);
      expect(shapeOf(new Conv2d(1, 8, 3, { padding: 'same' }).forward(zeros([2, 1, 28, 28])))).toEqual([2, 8, 28, 28]);
      expect(shapeOf(new Conv2d(4, 8, [3, 1], { stride: 2, groups: 2 }).forward(zeros([1, 4, 7, 7])))).toEqual([
        1, 8, 3, 4,
      ]);
      expect(shapeOf(new ConvTranspose2d(8, 4, 2, { stride: 2 }).forward(zeros([1, 8, 7, 7])))).toEqual([1, 4, 14, 14]);
      expect(shapeOf(new MaxPool2d(2).forward(zeros([1, 8, 28, 28])))).toEqual([1, 8, 14, 14]);
      expect(shapeOf(new AvgPool2d(2).forward(zeros([1, 8, 28, 28])))).toEqual([1, 8, 14, 14]);
      expect(shapeOf(new GlobalAvgPool2d().forward(ones([2, 3, 4, 4])))).toEqual([2, 3]);
      expect(shapeOf(new Flatten().forward(zeros([64, 16, 7, 7])))).toEqual([64, 784]);
      expect(shapeOf(new Embedding(100, 16).forward(tensor([[3, 7, 7]], { dtype: 'int32' })))).toEqual([1, 3, 16]);
    });
  });

  it('refuse sizes that are none', () => {
    expect(() => new Linear(0, 1)).toThrow(/inputs is 0/);
    expect(() => new Conv2d(3, 4, 0)).toThrow(/kernelSize is 0/);
    expect(() => new Conv2d(3, 4, 3, { groups: 2 })).toThrow(/2 groups do not divide 3 and 4/);
    expect(() => new Dropout(1)).toThrow(/p is 1/);
    expect(() => new BatchNorm2d(1.5)).toThrow(/channels is 1.5/);
  });

  it('BatchNorm2d uses batch statistics in training, running ones in evaluation', async () => {
    using layer = new BatchNorm2d(1, { eps: 0 });
    const x = tensor([1, 2, 3, 6], { shape: [2, 1, 2, 1] });
    const [mean, variance, unbiased] = [3, 3.5, 14 / 3];
    close(
      await numbers(layer.forward(x)),
      [1, 2, 3, 6].map((value) => (value - mean) / Math.sqrt(variance)),
    );
    close(await numbers(layer.running_mean!), [0.1 * mean]);
    close(await numbers(layer.running_var!), [0.9 + 0.1 * unbiased]);
    layer.eval();
    const expected = [1, 2, 3, 6].map((value) => (value - 0.1 * mean) / Math.sqrt(0.9 + 0.1 * unbiased));
    close(await numbers(layer.forward(x)), expected);
    close(await numbers(layer.running_mean!), [0.1 * mean]);
    x.dispose();
  });

  it('BatchNorm2d updates its statistics under gradients too', async () => {
    using layer = new BatchNorm2d(1);
    const x = tensor([1, 2, 3, 6], { shape: [2, 1, 2, 1] });
    const { value, grads } = lossAndGrad(layer, () => mseLoss(layer.forward(x), x));
    close(await numbers(layer.running_mean!), [0.3]);
    expect(grads.map((gradient) => gradient!.shape)).toEqual([[1], [1]]);
    for (const made of [value, ...grads, x]) made?.dispose();
  });

  it('have the same gradients where they run again for them', async () => {
    using layer = new Linear(2, 2);
    const x = tensor([[1, -2]]);
    const slopes = async (run: () => Tensor): Promise<number[][]> => {
      const { value, grads } = lossAndGrad(layer, () => mseLoss(run(), x));
      const found = [await numbers(value), await numbers(grads[0]!), await numbers(grads[1]!)];
      for (const made of [value, ...grads]) made?.dispose();
      return found;
    };
    const again = await slopes(() => checkpoint((t: Tensor) => layer.forward(t), x));
    expect(again).toEqual(await slopes(() => layer.forward(x)));
    expect(await numbers(layer.forward(x))).toHaveLength(2);
    x.dispose();
  });

  it('LayerNorm and RMSNorm normalise the last axis', async () => {
    using layer = new LayerNorm(2, { eps: 0 });
    close(await numbers(layer.forward(tensor([[1, 3]]))), [-1, 1]);
    using root = new RMSNorm(2, { eps: 0 });
    close(await numbers(root.forward(tensor([[3, 4]]))), [3 / Math.sqrt(12.5), 4 / Math.sqrt(12.5)]);
  });

  it('Dropout drops its share in training and nothing in evaluation', async () => {
    seed(4);
    using layer = new Dropout(0.25);
    const x = ones([4000]);
    const found = await numbers(layer.forward(x));
    expect(new Set(found)).toEqual(new Set([0, Math.fround(1 / 0.75)]));
    const dropped = found.filter((value) => value === 0).length;
    // Within five deviations of a binomial distribution.
    expect(Math.abs(dropped - 1000)).toBeLessThan(5 * Math.sqrt(4000 * 0.25 * 0.75));
    expect(await numbers(layer.forward(x))).not.toEqual(found);
    expect(new Set(await numbers(layer.eval().forward(x)))).toEqual(new Set([1]));
    x.dispose();
  });

  it('tables begin with zeros in the row of padding, as in PyTorch', async () => {
    for (const paddingIdx of [1, -2]) {
      for (const layer of [new Embedding(3, 2, { paddingIdx }), new EmbeddingBag(3, 2, { paddingIdx })]) {
        const table = (await layer.weight.array()) as number[][];
        expect(table.map((row) => row.every((n) => n === 0))).toEqual([false, true, false]);
      }
    }
    const given = new Embedding(3, 2, { paddingIdx: 1, weightInit: onesInit() });
    expect(await given.weight.array()).toEqual([1, 1, 1].map((n) => [n, n]));
    expect(() => new Embedding(3, 2, { paddingIdx: 3 })).toThrow('paddingIdx is 3; it must be an integer from -3 to 2');
  });

  it('Embedding looks rows up', async () => {
    using layer = new Embedding(3, 2);
    const table = tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    layer.weight.assign(table);
    expect(await numbers(layer.forward(tensor([2, 0], { dtype: 'int32' })))).toEqual([5, 6, 1, 2]);
  });

  it('activations are the functions they name', async () => {
    const x = tensor([-2, 0, 3]);
    close(await numbers(new ReLU().forward(x)), [0, 0, 3]);
    close(await numbers(new LeakyReLU(0.1).forward(x)), [-0.2, 0, 3]);
    close(await numbers(new Sigmoid().forward(x)), [1 / (1 + Math.exp(2)), 0.5, 1 / (1 + Math.exp(-3))]);
    close(await numbers(new GELU().forward(x)), [-0.0455003, 0, 2.9959502]);
    const total = Math.exp(-2) + 1 + Math.exp(3);
    close(await numbers(new Softmax().forward(x)), [Math.exp(-2) / total, 1 / total, Math.exp(3) / total]);
    x.dispose();
  });
});
