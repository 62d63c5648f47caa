/** ResNet-18 in its form for small images (He et al., 2015), on pictures in the shape of CIFAR-10: stripes of ten directions and colours in noise. */
import { crossEntropy, noGrad, relu, scope, seed, tensor, type Tensor } from '@polygrad/core';
import {
  accuracy,
  BatchNorm2d,
  Conv2d,
  Flatten,
  GlobalAvgPool2d,
  Linear,
  Module,
  ReLU,
  Sequential,
  SGD,
} from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

const [side, classes, batch] = [32, 10, 16];

class Residual extends Module {
  readonly body: Sequential;
  readonly shortcut: Sequential;

  constructor(inputs: number, outputs: number, stride: number) {
    super();
    const conv = (from: number, size: number, by: number): Conv2d =>
      new Conv2d(from, outputs, size, { stride: by, padding: size === 3 ? 1 : 0, bias: false });
    this.body = new Sequential(
      conv(inputs, 3, stride),
      new BatchNorm2d(outputs),
      new ReLU(),
      conv(outputs, 3, 1),
      new BatchNorm2d(outputs),
    );
    this.shortcut =
      inputs === outputs ? new Sequential() : new Sequential(conv(inputs, 1, stride), new BatchNorm2d(outputs));
  }

  forward(x: Tensor): Tensor {
    return relu(this.body.forward(x).add(this.shortcut.forward(x)));
  }
}

/** ResNet-18 is `width` 64. */
export function resnet18(width: number): Sequential {
  const blocks = [1, 2, 4, 8].flatMap((times, stage) => [
    new Residual(stage === 0 ? width : (width * times) / 2, width * times, stage === 0 ? 1 : 2),
    new Residual(width * times, width * times, 1),
  ]);
  const first = [new Conv2d(3, width, 3, { padding: 1, bias: false }), new BatchNorm2d(width), new ReLU()];
  return new Sequential(...first, ...blocks, new GlobalAvgPool2d(), new Flatten(), new Linear(8 * width, classes));
}

function batchOf(i: number): { x: Tensor; y: Tensor } {
  const labels = Array.from({ length: batch }, (_, k) => (i * 7 + k * 3) % classes);
  const noise = (...place: number[]): number => {
    const x = Math.sin(place.reduce((sum, p, at) => sum + p * (12.9898 + 65.233 * at), 1)) * 43758.5453;
    return x - Math.floor(x);
  };
  const data = Float32Array.from({ length: batch * 3 * side * side }, (_, at) => {
    const [column, row] = [at % side, Math.floor(at / side) % side];
    const [channel, k] = [Math.floor(at / (side * side)) % 3, Math.floor(at / (3 * side * side))];
    const turn = (labels[k]! / classes) * Math.PI;
    const wave = Math.sin(0.8 * (column * Math.cos(turn) + row * Math.sin(turn)) + 6 * noise(i, k) + channel);
    return wave + 2 * (noise(i, at) - 0.5);
  });
  return { x: tensor(data).reshape([batch, 3, side, side]), y: tensor(labels, { dtype: 'int32' }) };
}

export async function resnet(steps = 60, width = 16): Promise<Result> {
  seed(10);
  using model = resnet18(width);
  using optimizer = new SGD(model.parameters(), { lr: 0.05, momentum: 0.9, weightDecay: 5e-4 });
  const losses = await train(steps, (i) =>
    step(model, optimizer, () => {
      const { x, y } = batchOf(i);
      return crossEntropy(model.forward(x), y);
    }),
  );
  model.eval();
  const right = scope(() =>
    noGrad(() => {
      const { x, y } = batchOf(100_000);
      return accuracy(model.forward(x), y).mean();
    }),
  );
  return { losses, note: `right about new pictures: ${(100 * (await take(right))).toFixed(0)} % (width ${width})` };
}
