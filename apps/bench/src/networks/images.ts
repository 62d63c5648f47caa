/** Networks of convolutions: the one for MNIST, ResNet-18 and a U-Net. */
import { binaryCrossEntropyWithLogits, concat, crossEntropy, max, maxPool2d, relu, type Tensor } from '@polygrad/core';
import {
  BatchNorm2d,
  Conv2d,
  ConvTranspose2d,
  Flatten,
  GlobalAvgPool2d,
  Linear,
  MaxPool2d,
  Module,
  ReLU,
  Sequential,
} from '@polygrad/nn';
import type { NetworkSpec } from '../work/networks.ts';
import type { Network } from './network.ts';

type Spec<Name extends NetworkSpec['network']> = Extract<NetworkSpec, { network: Name }>;

/** Images to classes. */
function classifier(model: Module<[x: Tensor], Tensor>): Network {
  return {
    model,
    loss: (x, y) => crossEntropy(model.forward(x as Tensor), y as Tensor),
    infer: (x) => max(model.forward(x as Tensor)),
  };
}

export function cnn(): Network {
  return classifier(
    new Sequential(
      new Conv2d(1, 8, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Conv2d(8, 16, 3, { padding: 1 }),
      new ReLU(),
      new MaxPool2d(2),
      new Flatten(),
      new Linear(784, 10),
    ),
  );
}

/** Two convolutions, and what came in beside them. */
class Residual extends Module {
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly shortcut: Sequential;

  constructor(inputs: number, outputs: number, stride: number) {
    super();
    this.conv1 = new Conv2d(inputs, outputs, 3, { padding: 1, stride, bias: false });
    this.bn1 = new BatchNorm2d(outputs);
    this.conv2 = new Conv2d(outputs, outputs, 3, { padding: 1, bias: false });
    this.bn2 = new BatchNorm2d(outputs);
    const same = stride === 1 && inputs === outputs;
    this.shortcut = same
      ? new Sequential()
      : new Sequential(new Conv2d(inputs, outputs, 1, { stride, bias: false }), new BatchNorm2d(outputs));
  }

  forward(x: Tensor): Tensor {
    const y = this.bn2.forward(this.conv2.forward(relu(this.bn1.forward(this.conv1.forward(x)))));
    return relu(y.add(this.shortcut.forward(x)));
  }
}

/** The form for small images (He et al. 2015, section 4.2): a first convolution of 3 x 3 and no pooling behind it. */
export function resnet18({ width }: Spec<'resnet18'>): Network {
  const stages = [1, 2, 4, 8].flatMap((times, stage) => {
    const outputs = width * times;
    const inputs = stage === 0 ? width : outputs / 2;
    return [new Residual(inputs, outputs, stage === 0 ? 1 : 2), new Residual(outputs, outputs, 1)];
  });
  return classifier(
    new Sequential(
      new Conv2d(3, width, 3, { padding: 1, bias: false }),
      new BatchNorm2d(width),
      new ReLU(),
      ...stages,
      new GlobalAvgPool2d(),
      new Flatten(),
      new Linear(8 * width, 10),
    ),
  );
}

/** Two convolutions of 3 x 3. */
function pair(inputs: number, outputs: number): Sequential {
  return new Sequential(
    new Conv2d(inputs, outputs, 3, { padding: 1 }),
    new ReLU(),
    new Conv2d(outputs, outputs, 3, { padding: 1 }),
    new ReLU(),
  );
}

class UNet extends Module {
  readonly down1: Sequential;
  readonly down2: Sequential;
  readonly middle: Sequential;
  readonly grow2: ConvTranspose2d;
  readonly up2: Sequential;
  readonly grow1: ConvTranspose2d;
  readonly up1: Sequential;
  readonly out: Conv2d;

  constructor(width: number) {
    super();
    this.down1 = pair(1, width);
    this.down2 = pair(width, 2 * width);
    this.middle = pair(2 * width, 4 * width);
    this.grow2 = new ConvTranspose2d(4 * width, 2 * width, 2, { stride: 2 });
    this.up2 = pair(4 * width, 2 * width);
    this.grow1 = new ConvTranspose2d(2 * width, width, 2, { stride: 2 });
    this.up1 = pair(2 * width, width);
    this.out = new Conv2d(width, 1, 1);
  }

  forward(x: Tensor): Tensor {
    const first = this.down1.forward(x);
    const second = this.down2.forward(maxPool2d(first, 2));
    const middle = this.middle.forward(maxPool2d(second, 2));
    const half = this.up2.forward(concat([this.grow2.forward(middle), second], 1));
    return this.out.forward(this.up1.forward(concat([this.grow1.forward(half), first], 1)));
  }
}

export function unet({ width }: Spec<'unet'>): Network {
  const model = new UNet(width);
  return {
    model,
    loss: (x, mask) => binaryCrossEntropyWithLogits(model.forward(x as Tensor), mask as Tensor),
    infer: (x) => max(model.forward(x as Tensor)),
  };
}
