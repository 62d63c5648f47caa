/** Compiled steps of training against the same steps without, bit for bit, with all that modules and optimizers keep in JavaScript. */
import {
  type Compiled,
  compile,
  crossEntropy,
  getEngine,
  mseLoss,
  rand,
  randint,
  scope,
  seed,
  setEngine,
  stats,
  type Tensor,
} from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { ReLU, Tanh } from '../layers/activation.ts';
import { Conv2d } from '../layers/conv.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm2d } from '../layers/norm.ts';
import { MaxPool2d } from '../layers/pool.ts';
import { LSTM } from '../layers/recurrent.ts';
import { Flatten } from '../layers/shape.ts';
import { Module } from '../module/module.ts';
import { Sequential } from '../module/sequential.ts';
import { Adam, AdamW } from '../optim/adam.ts';
import { clipGradNorm } from '../optim/clip.ts';
import type { Optimizer } from '../optim/optimizer.ts';
import { cosineDecay, stepDecay } from '../optim/schedule.ts';
import { SGD } from '../optim/sgd.ts';
import { lossAndGrad } from './loss-and-grad.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

interface Training {
  readonly model: Module;
  readonly optimizer: Optimizer;
  readonly step: (x: Tensor, y: Tensor) => Tensor;
}

type Batch = (step: number) => readonly [x: Tensor, y: Tensor];

/** What a training is after so many steps, and how many were replayed. */
async function train(
  make: () => Training,
  batch: Batch,
  steps: number,
  compiled: boolean,
  between: (training: Training, step: number) => void,
): Promise<{ values: unknown[]; replays: number }> {
  seed(11);
  const training = make();
  const step = compiled ? compile(training.step) : (x: Tensor, y: Tensor) => scope(() => training.step(x, y));
  const { replays } = stats();
  const values: unknown[] = [];
  for (let i = 0; i < steps; i++) {
    between(training, i);
    const [x, y] = scope(() => batch(i));
    using loss = step(x, y);
    values.push(await loss.item());
    x.dispose();
    y.dispose();
  }
  for (const t of Object.values(training.model.stateDict())) values.push(await t.array());
  values.push(await training.optimizer.state());
  const found = { values, replays: stats().replays - replays };
  if (compiled) (step as Compiled<[Tensor, Tensor], Tensor>).dispose();
  training.model.dispose();
  training.optimizer.dispose();
  expect(stats().recordings).toBe(0);
  return found;
}

/** Trains twice and compares; returns how many steps were replayed. */
async function replaysOf(
  make: () => Training,
  batch: Batch,
  steps: number = 20,
  between: (training: Training, step: number) => void = () => {},
): Promise<number> {
  const plain = await train(make, batch, steps, false, between);
  const compiled = await train(make, batch, steps, true, between);
  expect(compiled.values).toEqual(plain.values);
  return compiled.replays;
}

const rows =
  (n: number): Batch =>
  (step) => [rand([n, 6], { key: step + 1 }), rand([n, 2], { key: step + 100 })];

function mlp(): Training {
  const model = new Sequential(new Linear(6, 8), new Tanh(), new Dropout(0.25), new Linear(8, 2));
  const optimizer = new AdamW(model.parameters(), { lr: cosineDecay(0.1, { steps: 20 }) });
  const step = (x: Tensor, y: Tensor): Tensor => {
    const { value, grads } = lossAndGrad(model, () => mseLoss(model.forward(x), y));
    clipGradNorm(grads, 0.5).dispose();
    optimizer.step(grads);
    return value;
  };
  return { model, optimizer, step };
}

function cnn(): Training {
  const model = new Sequential(
    new Conv2d(1, 2, 3, { padding: 'same' }),
    new BatchNorm2d(2),
    new ReLU(),
    new MaxPool2d(2),
    new Flatten(),
    new Dropout(0.25),
    new Linear(2 * 4, 3),
  );
  const optimizer = new Adam(model.parameters(), { lr: stepDecay(0.05, { every: 7, factor: 0.5 }) });
  const step = (x: Tensor, y: Tensor): Tensor => {
    const loss = crossEntropy(model.forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  return { model, optimizer, step };
}

const images: Batch = (step) => [rand([4, 1, 4, 4], { key: step + 1 }), randint(0, 3, [4], { key: step + 1 })];

describe('a compiled step of training', () => {
  it('of an MLP with AdamW, a schedule, dropout and clipped gradients', async () => {
    expect(await replaysOf(mlp, rows(5))).toBe(15);
  });

  it('of a CNN with Adam, a schedule, dropout, batch norm and backward()', async () => {
    expect(await replaysOf(cnn, images)).toBe(15);
  });

  it('of an LSTM, whose layers are loops', async () => {
    const make = (): Training => {
      class Net extends Module {
        readonly lstm = new LSTM(2, 3);
        readonly out = new Linear(3, 1);
        forward(x: Tensor): Tensor {
          return this.out.forward(this.lstm.forward(x).output.mean(1));
        }
      }
      const model = new Net();
      const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
      const step = (x: Tensor, y: Tensor): Tensor => {
        const { value, grads } = lossAndGrad(model, () => mseLoss(model.forward(x), y));
        optimizer.step(grads);
        return value;
      };
      return { model, optimizer, step };
    };
    const batch: Batch = (step) => [rand([2, 6, 2], { key: step + 1 }), rand([2, 1], { key: step + 100 })];
    expect(await replaysOf(make, batch, 8)).toBeGreaterThan(2);
  });

  it('with batches of other sizes, modes, frozen layers and other rates in between', async () => {
    const batch: Batch = (step) => rows(step % 5 === 4 ? 3 : 5)(step);
    const between = ({ model, optimizer }: Training, step: number): void => {
      if (step === 8) model.eval();
      if (step === 12) model.train();
      if (step === 15) optimizer.learningRate = 0.01;
      if (step === 16) (model as Sequential).namedParameters()[0]![1].requiresGrad = false;
      if (step === 22) model.freeze(false);
    };
    expect(await replaysOf(mlp, batch, 30, between)).toBeGreaterThan(8);
  });

  it('goes on from a state that was loaded, and refuses what a step without compile refuses', async () => {
    seed(1);
    const { model, optimizer, step } = mlp();
    const compiled = compile(step);
    const [x, y] = rows(5)(0);
    for (let i = 0; i < 4; i++) compiled(x, y).dispose();
    const saved = await optimizer.state();
    for (let i = 0; i < 3; i++) compiled(x, y).dispose();
    expect(optimizer.steps).toBe(7);
    optimizer.loadState(saved);
    expect(optimizer.steps).toBe(4);
    const before = await Promise.all(model.parameters().map((p) => p.array()));
    optimizer.learningRate = Number.NaN;
    expect(() => compiled(x, y)).toThrow(NnError);
    expect(() => compiled(x, y)).toThrow(/\[step\] bad learningRate for step 5: NaN/);
    expect(await Promise.all(model.parameters().map((p) => p.array()))).toEqual(before);
    expect(optimizer.steps).toBe(4);
    optimizer.learningRate = 0.1;
    compiled(x, y).dispose();
    expect(optimizer.steps).toBe(5);
    compiled.dispose();
    expect(getEngine().name).toBe('reference');
  });
});
