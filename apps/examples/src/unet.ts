/** A U-Net (Ronneberger, Fischer and Brox, 2015): finds discs in noise, pixel by pixel. */
import {
  binaryCrossEntropyWithLogits,
  concat,
  maxPool2d,
  noGrad,
  scope,
  seed,
  tensor,
  type Tensor,
} from '@polygrad/core';
import { Adam, Conv2d, ConvTranspose2d, Module, ReLU, Sequential } from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

const [side, batch, width] = [32, 8, 8];

/** Pictures of a disc in noise, and where the disc is. */
function batchOf(i: number): { x: Tensor; mask: Tensor } {
  const random = (...place: number[]): number => {
    const x = Math.sin(place.reduce((sum, p, at) => sum + p * (12.9898 + 65.233 * at), 1)) * 43758.5453;
    return x - Math.floor(x);
  };
  const masks = Array.from({ length: batch }, (_, k) => {
    const [cx, cy, r] = [8 + 16 * random(i, k, 1), 8 + 16 * random(i, k, 2), 4 + 4 * random(i, k, 3)];
    return [
      Array.from({ length: side }, (_, row) =>
        Array.from({ length: side }, (_, c) => Number((row - cy) ** 2 + (c - cx) ** 2 < r * r)),
      ),
    ];
  });
  const x = masks.map((picture, k) =>
    picture.map((rows) => rows.map((row, r) => row.map((v, c) => 0.6 * v + random(i, k, r, c)))),
  );
  return { x: tensor(x), mask: tensor(masks) };
}

const pair = (inputs: number, outputs: number): Sequential =>
  new Sequential(
    new Conv2d(inputs, outputs, 3, { padding: 1 }),
    new ReLU(),
    new Conv2d(outputs, outputs, 3, { padding: 1 }),
    new ReLU(),
  );

class UNet extends Module {
  readonly down: Sequential = pair(1, width);
  readonly middle: Sequential = pair(width, 2 * width);
  readonly bottom: Sequential = pair(2 * width, 4 * width);
  readonly growMiddle: ConvTranspose2d = new ConvTranspose2d(4 * width, 2 * width, 2, { stride: 2 });
  readonly upMiddle: Sequential = pair(4 * width, 2 * width);
  readonly grow: ConvTranspose2d = new ConvTranspose2d(2 * width, width, 2, { stride: 2 });
  readonly up: Sequential = pair(2 * width, width);
  readonly out: Conv2d = new Conv2d(width, 1, 1);

  forward(x: Tensor): Tensor {
    const first = this.down.forward(x);
    const second = this.middle.forward(maxPool2d(first, 2));
    const third = this.bottom.forward(maxPool2d(second, 2));
    const half = this.upMiddle.forward(concat([this.growMiddle.forward(third), second], 1));
    return this.out.forward(this.up.forward(concat([this.grow.forward(half), first], 1)));
  }
}

export async function unet(steps = 120): Promise<Result> {
  seed(6);
  using model = new UNet();
  using optimizer = new Adam(model.parameters(), { lr: 3e-3 });
  const losses = await train(steps, (i) =>
    step(model, optimizer, () => {
      const { x, mask } = batchOf(i);
      return binaryCrossEntropyWithLogits(model.forward(x), mask);
    }),
  );
  const overlap = scope(() =>
    noGrad(() => {
      const { x, mask } = batchOf(10_000);
      const found = model.forward(x).greater(0).cast('float32');
      const both = found.mul(mask).sum();
      return both.div(found.add(mask).sum().sub(both));
    }),
  );
  return { losses, note: `intersection over union on new pictures: ${(await take(overlap)).toFixed(3)}` };
}
