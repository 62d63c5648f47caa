/** The network: two convolutions with pooling, and a linear layer. 9,098 parameters for 28 x 28 images of 10 classes. */
import type { Tensor } from '@polygrad/core';
import { Conv2d, Linear, MaxPool2d, Module } from '@polygrad/nn';

/** conv 8 - pool - conv 16 - pool - linear, 3 x 3 kernels, ReLU after each convolution. */
export class DigitNet extends Module {
  readonly conv1: Conv2d = new Conv2d(1, 8, 3, { padding: 'same' });
  readonly conv2: Conv2d = new Conv2d(8, 16, 3, { padding: 'same' });
  readonly pool: MaxPool2d = new MaxPool2d(2);
  readonly out: Linear;

  /** Images are `height` x `width`, both at least 4. */
  constructor(height: number, width: number, classes: number) {
    super();
    this.out = new Linear(16 * Math.floor(Math.floor(height / 2) / 2) * Math.floor(Math.floor(width / 2) / 2), classes);
  }

  /** @param x shape [rows, 1, height, width]; returns logits [rows, classes] */
  forward(x: Tensor): Tensor {
    const first = this.pool.forward(this.conv1.forward(x).relu());
    const second = this.pool.forward(this.conv2.forward(first).relu());
    return this.out.forward(second.flatten({ start: 1 }));
  }
}
