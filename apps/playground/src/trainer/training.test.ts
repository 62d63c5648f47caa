import { createCpuEngine } from '@polygrad/backend-cpu';
import { memory, seed, setDynamicSizes, setEngine, stats } from '@polygrad/core';
import { encodeIdx, encodeSafetensors, imageDatasetFromIdx, RandomStream } from '@polygrad/data';
import { hostState } from '@polygrad/nn';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_LAYERS, parseLayers } from '../common/layers.ts';
import { Sampler, samplesOf } from './dataset.ts';
import { DigitNetwork } from './network.ts';
import { Training } from './training.ts';
import { decodeWeights, encodeWeights } from './weights.ts';

/** Images of two bars each whose places tell the class. */
function digits(count: number): ReturnType<typeof imageDatasetFromIdx> {
  const random = new RandomStream(3);
  const images = new Uint8Array(count * 784);
  const labels = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const label = (labels[i] = i % 10);
    for (let y = 4; y < 24; y++) {
      for (const x of [4 + (label % 5) * 4, 6 + Math.floor(label / 5) * 9]) {
        images[i * 784 + y * 28 + x] = 155 + random.below(100);
      }
    }
  }
  const idx = (data: Uint8Array, shape: number[]): Uint8Array => encodeIdx({ dtype: 'uint8', shape, data });
  return imageDatasetFromIdx(idx(images, [count, 28, 28]), idx(labels, [count]));
}

const engine = createCpuEngine({ threads: 1 });
const data = digits(200);

beforeAll(async () => {
  await setEngine(engine);
});
afterAll(() => engine.dispose());

describe('Training', () => {
  it('learns, and a new learning rate makes no new plan', async () => {
    seed(1);
    const before = memory().numTensors;
    const training = new Training(parseLayers('pool 2, linear 16'), 0.01);
    const sampler = new Sampler(data, 1);
    for (let i = 0; i < 4; i++) await training.step(sampler.next(20));
    const first = (await training.means())!;
    const { planMisses } = stats();
    for (let i = 0; i < 40; i++) {
      training.rate = 0.01 - i * 1e-4;
      await training.step(sampler.next(20));
    }
    const last = (await training.means())!;
    expect(stats().planMisses).toBe(planMisses);
    expect([first.images, last.images]).toEqual([80, 800]);
    expect(last.loss).toBeLessThan(first.loss);
    expect([training.steps, training.images]).toEqual([44, 880]);
    const order = Uint32Array.from({ length: 200 }, (_, i) => i);
    expect(await training.recognised(data, order, 0, 200)).toBeGreaterThan(150);
    const [sample] = samplesOf(data, 0);
    const probabilities = await training.predict(sample!.pixels);
    expect(probabilities.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 5);
    expect(probabilities.indexOf(Math.max(...probabilities))).toBe(0);
    expect(await training.means()).toBeNull();
    training.dispose();
    expect(memory().numTensors).toBe(before);
  });

  it('takes back steps that are only looked at', async () => {
    seed(4);
    const training = new Training(parseLayers('pool 2, linear 8'), 0.01);
    const sampler = new Sampler(data, 1);
    for (let i = 0; i < 3; i++) await training.step(sampler.next(20));
    const before = await training.state();
    const value = await training.undone(async () => {
      for (let i = 0; i < 3; i++) await training.step(sampler.next(20));
      expect(training.steps).toBe(6);
      return (await training.means())!.images;
    });
    expect(value).toBe(120);
    expect([training.steps, training.images]).toEqual([3, 60]);
    expect(await training.state()).toEqual(before);
    await expect(training.undone(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await training.state()).toEqual(before);
    training.dispose();
  });

  it('goes on from its state as if nothing had happened', async () => {
    // Other networks of this file have the same form: sizes that share a plan may have other last bits.
    setDynamicSizes('never');
    const layers = parseLayers('pool 2, linear 8');
    seed(2);
    const whole = new Training(layers, 0.01);
    seed(2);
    const first = new Training(layers, 0.01);
    for (const [training, steps] of [
      [whole, 6],
      [first, 3],
    ] as const) {
      const sampler = new Sampler(data, 4);
      for (let i = 0; i < steps; i++) await training.step(sampler.next(16));
    }
    const second = new Training(layers, 0.01);
    const { weights, optimizer } = await first.state();
    second.load(weights, optimizer);
    const sampler = new Sampler(data, 4);
    for (let i = 0; i < 6; i++) {
      const batch = sampler.next(16);
      if (i >= 3) await second.step(batch);
    }
    const [a, b] = [await hostState(whole.model.stateDict()), await hostState(second.model.stateDict())];
    expect(b).toEqual(a);
    for (const training of [whole, first, second]) training.dispose();
    setDynamicSizes('automatic');
  });
});

describe('weights', () => {
  it('have the names and shapes of npm start, and come back with their layers', async () => {
    const model = new DigitNetwork(DEFAULT_LAYERS);
    expect(Object.entries(model.stateDict()).map(([name, { shape }]) => `${name} ${shape.join('x')}`)).toEqual([
      'conv1.weight 8x1x3x3',
      'conv1.bias 8',
      'conv2.weight 16x8x3x3',
      'conv2.bias 16',
      'out.weight 10x784',
      'out.bias 10',
    ]);
    const file = await encodeWeights(model.stateDict(), model.layers);
    const { weights, layers } = decodeWeights(file, 'file');
    expect(layers).toEqual(DEFAULT_LAYERS);
    const other = new DigitNetwork(layers!);
    other.loadStateDict(weights);
    expect(await hostState(other.stateDict())).toEqual(await hostState(model.stateDict()));
    const plain = encodeSafetensors(await hostState(model.stateDict()));
    expect(decodeWeights(plain, 'file').layers).toBeNull();
    const wrong = encodeSafetensors({}, { 'playground.layers': 'pool 4, pool 4, pool 4' });
    expect(() => decodeWeights(wrong, 'file')).toThrow('Layer 3');
    const sick = encodeSafetensors({ w: { dtype: 'float32', shape: [2], data: new Float32Array([1, Number.NaN]) } });
    expect(() => decodeWeights(sick, 'sick.safetensors')).toThrow("sick.safetensors: 'w' holds NaN at 1");
    for (const module of [model, other]) module.dispose();
  });
});

describe('Sampler', () => {
  it('gives every image once per epoch, the same order for the same seed', () => {
    const seen: number[] = [];
    const [a, b] = [new Sampler(data, 5), new Sampler(data, 5)];
    for (let i = 0; i < 4; i++) {
      const batch = a.next(50);
      expect(b.next(50).y.data).toEqual(batch.y.data);
      seen.push(...(batch.y.data as Int32Array));
    }
    for (let label = 0; label < 10; label++) expect(seen.filter((l) => l === label).length).toBe(20);
    expect(a.next(30).x.shape).toEqual([30, 1, 28, 28]);
  });

  it('samples one of each class, others on another page', () => {
    const [first, second] = [samplesOf(data, 0), samplesOf(data, 1)];
    expect(first.map(({ label }) => label)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(first.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(second[3]!.index).toBe(13);
    expect(samplesOf(data, 20)).toEqual(first);
  });
});
