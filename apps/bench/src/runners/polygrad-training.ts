/** Training steps of Polygrad: the networks and the step, as the documentation shows them. */
import { crossEntropy, scope, type Tensor, tensor } from '@polygrad/core';
import {
  Adam,
  Conv2d,
  Flatten,
  Linear,
  MaxPool2d,
  type Optimizer,
  ReLU,
  SGD,
  Sequential,
  lossAndGrad,
} from '@polygrad/nn';
import { learningRate, type TrainWork } from '../work/cases.ts';
import type { Tools } from '../work/tools.ts';
import { input, settled } from './polygrad-input.ts';
import type { Prepared } from './runner.ts';

interface Network {
  readonly model: Sequential;
  readonly x: Tensor;
}

/** Uniform within 1 / sqrt(fanIn), from the sequence `seed`. */
function weightOf(tools: Tools, seed: number, fanIn: number) {
  return {
    weightInit: (shape: readonly number[]) => input(tools, seed, -(fanIn ** -0.5), fanIn ** -0.5, ...shape),
    biasInit: zeros,
  };
}

function zeros(shape: readonly number[]): Tensor {
  return tensor(new Float32Array(shape.reduce((product, extent) => product * extent, 1)), { shape });
}

function network(tools: Tools, { kind, batch }: TrainWork): Network {
  switch (kind) {
    case 'mlp':
      return {
        model: new Sequential(
          new Linear(784, 128, weightOf(tools, 11, 784)),
          new ReLU(),
          new Linear(128, 10, weightOf(tools, 12, 128)),
        ),
        x: input(tools, 10, 0, 1, batch, 784),
      };
    case 'cnn':
      return {
        model: new Sequential(
          new Conv2d(1, 8, 3, { padding: 'same', ...weightOf(tools, 21, 9) }),
          new ReLU(),
          new MaxPool2d(2),
          new Conv2d(8, 16, 3, { padding: 'same', ...weightOf(tools, 22, 72) }),
          new ReLU(),
          new MaxPool2d(2),
          new Flatten(),
          new Linear(784, 10, weightOf(tools, 23, 784)),
        ),
        x: input(tools, 20, 0, 1, batch, 1, 28, 28),
      };
  }
  return kind satisfies never;
}

/** A network, an optimizer and label sets on the device. */
export function prepareTraining(tools: Tools, work: TrainWork): Prepared {
  const { model, x } = network(tools, work);
  const lr = learningRate[work.optimizer];
  const optimizer: Optimizer =
    work.optimizer === 'adam' ? new Adam(model.parameters(), { lr }) : new SGD(model.parameters(), { lr });
  const targets = Array.from({ length: tools.labelSets }, (_, set) =>
    tensor(Int32Array.from({ length: work.batch }, (_, i) => tools.label(set, i))),
  );
  let at = 0;
  const step = (): Tensor => {
    const target = targets[at++ % targets.length] as Tensor;
    return scope(() => {
      const { value, grads } = lossAndGrad(model, () => crossEntropy(model.forward(x), target));
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
