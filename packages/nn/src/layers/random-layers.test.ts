/** Layers that draw random numbers: what they drop and keep in training, and that they leave everything alone in evaluation. */
import { ones, seed, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { AlphaDropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout } from './dropout.ts';
import type { Module } from '../module/module.ts';
import { RReLU } from './slopes.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
  seed(5);
});

const numbers = async (t: Tensor): Promise<number[]> => Array.from((await t.data()) as Float32Array);

describe('dropout of channels', () => {
  const layers = [
    [new Dropout1d(0.25), [8, 16, 3]],
    [new Dropout2d(0.25), [8, 16, 2, 2]],
    [new Dropout3d(0.25), [8, 16, 2, 2, 1]],
  ] satisfies [Module, number[]][];
  for (const [layer, shape] of layers)
    it(layer.constructor.name, async () => {
      const found = await numbers(layer.forward(ones(shape)));
      const size = shape.slice(2).reduce((a, b) => a * b, 1);
      const channels = Array.from({ length: 128 }, (_, i) => found.slice(i * size, (i + 1) * size));
      // All of a channel or nothing of it; about a quarter goes.
      for (const channel of channels) expect(new Set(channel).size).toBe(1);
      const kept = channels.filter(([first]) => Math.abs(first! - 1 / 0.75) < 1e-6).length;
      expect(channels.filter(([first]) => first === 0).length + kept).toBe(128);
      expect(kept).toBeGreaterThan(75);
      expect(kept).toBeLessThan(117);
      const x = ones(shape);
      expect(layer.eval().forward(x)).toBe(x);
      expect(() => layer.train().forward(ones([2, 3]))).toThrow(/x has shape \[2, 3\]; it must have \d axes/);
    });
});

it('AlphaDropout keeps mean and variance', async () => {
  const x = Array.from({ length: 4096 }, (_, i) => Math.sqrt(12) * ((i + 0.5) / 4096 - 0.5));
  const moments = (values: readonly number[]): [number, number] => {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return [mean, values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length];
  };
  const [mean, variance] = moments(await numbers(new AlphaDropout(0.3).forward(tensor(x))));
  expect(Math.abs(mean)).toBeLessThan(0.08);
  expect(Math.abs(variance - 1)).toBeLessThan(0.08);
  // What is dropped has one value.
  const found = await numbers(new FeatureAlphaDropout(0.5).forward(tensor(x, { shape: [64, 16, 4] })));
  const channels = Array.from({ length: 1024 }, (_, i) => found.slice(i * 4, i * 4 + 4));
  const dropped = channels.filter((c) => new Set(c).size === 1);
  expect(dropped.length).toBeGreaterThan(400);
  expect(new Set(dropped.flat()).size).toBe(1);
});

it('RReLU draws slopes in training', async () => {
  const found = await numbers(new RReLU().forward(ones([256]).neg()));
  for (const v of found) expect(v <= -1 / 8 && v >= -1 / 3).toBe(true);
  expect(new Set(found).size).toBeGreaterThan(200);
});
