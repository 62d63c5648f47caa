/** Training steps of the suites `mlp` and `cnn`, as the documentation shows them. */
import { scope, type Tensor, tensor } from '@polygrad/core';
import { Adam, lossAndGrad, type Optimizer, SGD } from '@polygrad/nn';
import { mlp } from '../networks/dense.ts';
import { cnn } from '../networks/images.ts';
import type { Network } from '../networks/network.ts';
import { learningRate, type TrainWork } from '../work/cases.ts';
import type { Tools } from '../work/tools.ts';
import { input, settled } from './polygrad-input.ts';
import type { Prepared } from './runner.ts';

/** Seeds of weights, uniform within 1 / sqrt(fan in); biases are 0. */
const seeds: Readonly<Record<TrainWork['kind'], Readonly<Record<string, number>>>> = {
  mlp: { '0.weight': 11, '2.weight': 12 },
  cnn: { '0.weight': 21, '3.weight': 22, '7.weight': 23 },
};

function made(tools: Tools, kind: TrainWork['kind']): Network {
  const network = kind === 'mlp' ? mlp({ network: 'mlp', inputs: 784, hidden: 128, outputs: 10 }) : cnn();
  const values = network.model.namedParameters().map(([name, { shape }]) => {
    const size = shape.reduce((product, extent) => product * extent, 1);
    const bound = (size / shape[0]!) ** -0.5;
    const seed = seeds[kind][name];
    const data = seed === undefined ? new Float32Array(size) : tools.fill(seed, size, -bound, bound);
    return [name, { dtype: 'float32', shape, data }] as const;
  });
  network.model.loadStateDict(new Map(values));
  return network;
}

function imagesOf(tools: Tools, { kind, batch }: TrainWork): Tensor {
  return kind === 'mlp' ? input(tools, 10, 0, 1, batch, 784) : input(tools, 20, 0, 1, batch, 1, 28, 28);
}

/** A network, an optimizer and label sets on the device. */
export function prepareTraining(tools: Tools, work: TrainWork): Prepared {
  const network = made(tools, work.kind);
  const { model } = network;
  const x = imagesOf(tools, work);
  const lr = learningRate[work.optimizer];
  const optimizer: Optimizer =
    work.optimizer === 'adam' ? new Adam(model.parameters(), { lr }) : new SGD(model.parameters(), { lr });
  const targets = Array.from({ length: tools.labelSets }, (_, set) =>
    tensor(Int32Array.from({ length: work.batch }, (_, i) => tools.label(set, i))),
  );
  let at = 0;
  const step = (): Tensor => {
    const target = targets[at++ % targets.length]!;
    return scope(() => {
      const { value, grads } = lossAndGrad(model, () => network.loss(x, target));
      optimizer.step(grads);
      return value;
    });
  };
  return {
    run: async (count) => {
      for (let i = 0; i < count; i++) step().dispose();
      await settled();
    },
    probe: async () => {
      const losses: number[] = [];
      for (let i = 0; i < targets.length; i++) {
        const loss = step();
        losses.push(await loss.item());
        loss.dispose();
      }
      return losses;
    },
    dispose: () => {
      optimizer.dispose();
      model.dispose();
      for (const t of [x, ...targets]) t.dispose();
    },
  };
}
