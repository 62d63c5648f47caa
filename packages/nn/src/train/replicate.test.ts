/** Several engines of one process: data-parallel steps, and a model in two halves. */
import { afterEach, describe, expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import { flush, idle, rand, scope, setDynamicSizes, setEngine, stats, type Tensor } from '@polygrad/core';
import { Adam } from '../optim/adam.ts';
import { BatchNorm1d } from '../layers/norm.ts';
import { Linear } from '../layers/linear.ts';
import { Sequential } from '../module/sequential.ts';
import { ReLU } from '../layers/activation.ts';
import { lossAndGrad } from './loss-and-grad.ts';
import { replicate } from './replicate.ts';

/** A small network whose parameters are the same each time. */
function network(): Sequential {
  const model = new Sequential(new Linear(5, 7), new ReLU(), new Linear(7, 3));
  for (const [i, parameter] of model.parameters().entries()) {
    using values = rand(parameter.shape, { key: 40 + i });
    parameter.assign(values.sub(0.5));
  }
  return model;
}

const lossOf = (model: Sequential, x: Tensor, y: Tensor): Tensor => model.forward(x).sub(y).square().mean();

async function values(model: Sequential): Promise<number[]> {
  const all = await Promise.all(model.parameters().map((p) => p.data()));
  return all.flatMap((data) => Array.from(data as Float32Array));
}

afterEach(() => setDynamicSizes('automatic'));

describe.each([true, false])('engines that read at once: %s', (synchronous) => {
  it('replicate takes the steps of one engine', async () => {
    await setEngine(createReferenceEngine({ name: 'home' }));
    const [x, y] = [rand([10, 5], { key: 1 }), rand([10, 3], { key: 2 })];
    const alone = network();
    const optimizer = new Adam(alone.parameters(), { lr: 0.05 });
    const losses: number[] = [];
    for (let i = 0; i < 5; i++) {
      const { value, grads } = lossAndGrad(alone, () => lossOf(alone, x, y));
      optimizer.step(grads);
      losses.push(await value.item());
      value.dispose();
    }

    const engines = [0, 1, 2].map((i) => createReferenceEngine({ name: `part${i}`, synchronous }));
    const model = network();
    const replicas = replicate(model, engines);
    const own = new Adam(model.parameters(), { lr: 0.05 });
    for (let i = 0; i < 5; i++) {
      const { value, grads } = replicas.lossAndGrad([x, y], (a, b) => lossOf(model, a!, b!));
      own.step(grads);
      expect(await value.item()).toBeCloseTo(losses[i]!, 5);
      value.dispose();
    }
    await idle();
    const [expected, found] = [await values(alone), await values(model)];
    for (const [i, v] of found.entries()) expect(v).toBeCloseTo(expected[i]!, 4);
    for (const engine of engines) expect(stats(engine).kernels).toBeGreaterThan(5);
    expect(model.parameters().map((p) => p.device)).toEqual(['home', 'home', 'home', 'home']);
  });

  it('halves of a model on two devices learn as on one', async () => {
    const home = createReferenceEngine({ name: 'home', synchronous });
    await setEngine(home);
    // The step as a whole has the plan of a class, its halves have their own, and sums differ.
    setDynamicSizes('never');
    const [x, y] = [rand([6, 5], { key: 1 }), rand([6, 3], { key: 2 })];
    const train = async (model: Sequential, move: (t: Tensor, back: boolean) => Tensor): Promise<number[]> => {
      const [first, relu, second] = [model.layers[0], model.layers[1], model.layers[2]] as [Linear, ReLU, Linear];
      const optimizer = new Adam(model.parameters(), { lr: 0.05 });
      const losses: number[] = [];
      for (let i = 0; i < 5; i++) {
        const { value, grads } = lossAndGrad(model, () =>
          move(second.forward(move(relu.forward(first.forward(x)), false)), true)
            .sub(y)
            .square()
            .mean(),
        );
        optimizer.step(grads);
        losses.push(await value.item());
        value.dispose();
      }
      return losses;
    };
    const expected = await train(network(), (t) => t.mul(1));
    const other = createReferenceEngine({ name: 'other', synchronous });
    const model = network();
    const half = model.layers[2] as Linear;
    for (const parameter of half.parameters()) scope(() => parameter.assign(parameter.to(other)));
    flush();
    await idle();
    const found = await train(model, (t, back) => t.to(back ? home : other));
    expect(found).toEqual(expected);
    expect(model.parameters().map((p) => p.device)).toEqual(['home', 'home', 'other', 'other']);
    expect(stats(other).kernels).toBeGreaterThan(5);
  });
});

it('statistics of batches are those of the last part, and stay at home', async () => {
  await setEngine(createReferenceEngine({ name: 'home' }));
  const model = new Sequential(new Linear(2, 4), new BatchNorm1d(4));
  const replicas = replicate(model, [createReferenceEngine({ name: 'a' }), createReferenceEngine({ name: 'b' })]);
  const { value, grads } = replicas.lossAndGrad([rand([8, 2], { key: 3 })], (x) => model.forward(x!).square().mean());
  expect(Number.isFinite(await value.item())).toBe(true);
  for (const g of grads) g?.dispose();
  await idle();
  for (const [, buffer] of model.namedBuffers()) expect(buffer.device).toBe('home');
});

it('refuses what it cannot divide', async () => {
  await setEngine(createReferenceEngine());
  const model = new Linear(2, 1);
  expect(() => replicate(model, [])).toThrow(/no list of engines/);
  expect(() => replicate(null as never, [createReferenceEngine()])).toThrow();
  const replicas = replicate(model, [createReferenceEngine({ name: 'a' })]);
  expect(() => replicas.lossAndGrad([rand([2, 2], { key: 1 }), rand([3, 2], { key: 1 })], (x) => x!.sum())).toThrow(
    /2, 3 rows/,
  );
  expect(() => replicas.lossAndGrad([], (x) => x!.sum())).toThrow(/a batch is a list/);
});
