/** fit with optimizers whose parameters have another order than the model's, or are others. */
import { compile, mseLoss, seed, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Linear } from '../layers/linear.ts';
import { Module } from '../module/module.ts';
import { Sequential } from '../module/sequential.ts';
import { GradientAccumulator } from '../optim/averages.ts';
import { ParameterGroups } from '../optim/groups.ts';
import type { Optimizer } from '../optim/optimizer.ts';
import { SGD } from '../optim/sgd.ts';
import { GradScaler } from '../precision/grad-scaler.ts';
import { fit } from './fit.ts';
import { lossAndGrad } from './loss-and-grad.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('optimizers with an order of their own', () => {
  class Chain extends Module {
    first: Linear;
    last: Linear;
    constructor(first: Linear, last: Linear) {
      super();
      this.first = first;
      this.last = last;
    }
    forward(x: Tensor): Tensor {
      return this.last.forward(this.first.forward(x));
    }
  }
  /** Two layers alike, so that gradients in a wrong place would go unnoticed. */
  const alike = (): { model: Sequential; first: Linear; last: Linear } => {
    seed(4);
    const [first, last] = [new Linear(2, 2), new Linear(2, 2)];
    return { model: new Sequential(first, last), first, last };
  };
  let rows: { x: Tensor; y: Tensor };
  beforeEach(() => {
    rows = {
      x: tensor([
        [1, 2],
        [3, -1],
      ]),
      y: tensor([
        [0, 1],
        [1, 3],
      ]),
    }; // prettier-ignore
  });
  const values = async (model: Sequential): Promise<number[]> =>
    (await Promise.all(model.parameters().map(async (p) => Array.from((await p.data()) as Float32Array)))).flat();
  type Kinds = (first: Linear, last: Linear) => readonly Tensor[];
  const after = async (
    take: (model: Sequential, first: Linear, last: Linear) => Promise<unknown>,
  ): Promise<number[]> => {
    const { model, first, last } = alike();
    await take(model, first, last);
    return values(model);
  };
  const fitted = (optimizerOf: (m: Sequential, f: Linear, l: Linear) => Optimizer, more = {}): Promise<number[]> =>
    after((m, f, l) => fit(m, [rows], { optimizer: optimizerOf(m, f, l), loss: mseLoss, epochs: 3, ...more }));
  const plain = (m: Sequential): Optimizer => new SGD(m.parameters(), { lr: 0.1 });
  const turned = (_: Sequential, first: Linear, last: Linear): Optimizer =>
    new ParameterGroups(
      SGD,
      [{ parameters: last.parameters() }, { parameters: [first.bias!] }, { parameters: [first.weight] }],
      { lr: 0.1 },
    );

  it('get the gradients of their parameters, in groups, mixed precision, sums of batches and by hand', async () => {
    const wanted = await fitted(plain);
    expect(await fitted(turned)).toEqual(wanted);
    expect(await fitted(turned, { compile })).toEqual(wanted);
    const by = async (optimizerOf: typeof turned): Promise<number[]> =>
      fitted(optimizerOf, { precision: 'bfloat16' as const, scaler: new GradScaler({ initScale: 4 }) });
    expect(await by(turned)).toEqual(await by(plain));
    const summed = (optimizerOf: typeof turned): Promise<number[]> =>
      after(async (m, f, l) => {
        const [optimizer, sums] = [optimizerOf(m, f, l), new GradientAccumulator(2)];
        for (let i = 0; i < 4; i++) {
          const grads = sums.add(lossAndGrad(m, () => mseLoss(m.forward(rows.x), rows.y)).grads);
          if (grads !== null) optimizer.step(grads);
        }
      });
    expect(await summed(turned)).toEqual(await summed(plain));
  });

  it('of some of the parameters leave the others as they are', async () => {
    const some: Kinds = (_, last) => last.parameters();
    const start = await after(async () => {});
    const found = await fitted((_, f, l) => new SGD(some(f, l), { lr: 0.1 }));
    const frozen = await after(async (m, f) => {
      f.freeze();
      await fit(m, [rows], { optimizer: plain(m), loss: mseLoss, epochs: 3 });
    });
    expect([found, found.slice(0, 6)]).toEqual([frozen, start.slice(0, 6)]);
    // Two optimizers of one model share its gradients.
    const both = await after(async (m, f, l) => {
      const [one, other] = [f, l].map((part) => new SGD(part.parameters(), { lr: 0.1 }));
      for (let i = 0; i < 3; i++) {
        const { grads } = lossAndGrad(m, () => mseLoss(m.forward(rows.x), rows.y));
        one!.step(grads);
        other!.step(grads);
      }
    });
    expect(both).toEqual(await fitted(plain));
  });

  it('that lack a replaced layer are refused; those of a part of the model, or of more than it, learn', async () => {
    const { first, last } = alike();
    const model = new Chain(first, last);
    const optimizer = new SGD(model.parameters(), { lr: 0.1 });
    const replaced = new Linear(2, 2);
    model.last = replaced;
    const train = (own: Optimizer) => fit(model, [rows], { optimizer: own, loss: mseLoss, epochs: 1 });
    await expect(train(optimizer)).rejects.toThrow(
      "[fit] the optimizer lacks parameter 'last.weight', and 2 of its 4 are not the model's; after replacing layers make it anew",
    );
    for (const parameters of [replaced.parameters(), [...model.parameters(), ...last.parameters()]]) {
      const before = await replaced.weight.array();
      await train(new SGD(parameters, { lr: 0.1 }));
      expect(await replaced.weight.array()).not.toEqual(before);
    }
    // What is frozen is not missed.
    replaced.freeze();
    expect((await train(optimizer)).epochs).toHaveLength(1);
  });

  it('of another model are refused by fit; their steps take gradients of a copy by place', async () => {
    const { model } = alike();
    const optimizer = plain(alike().model);
    await expect(fit(model, [rows], { optimizer, loss: mseLoss, epochs: 1 })).rejects.toThrow(
      /the optimizer has 4 parameters, none of the model's 4/,
    );
    optimizer.step(lossAndGrad(model, () => mseLoss(model.forward(rows.x), rows.y)).grads);
    expect(optimizer.steps).toBe(1);
  });
});
