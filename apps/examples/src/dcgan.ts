/**
 * A generative adversarial network of convolutions (Radford, Metz and Chintala, 2015): one network draws discs out of noise, another one tells them
 * from real ones. Each learns from the other.
 */
import {
  binaryCrossEntropyWithLogits,
  noGrad,
  ones,
  rand,
  randn,
  scope,
  seed,
  detach,
  tensor,
  type Tensor,
  zeros,
} from '@polygrad/core';
import {
  Adam,
  BatchNorm2d,
  Conv2d,
  ConvTranspose2d,
  Flatten,
  LeakyReLU,
  Linear,
  ReLU,
  Sequential,
  Tanh,
  Unflatten,
} from '@polygrad/nn';
import { type Result, step, take } from './train.ts';

const [side, batch, noise] = [16, 32, 16];

/** Discs of radius 4, -1 outside and 1 inside, anywhere. */
function real(): Tensor {
  const places = tensor(Array.from({ length: side }, (_, i) => i)).reshape([1, 1, side, 1]);
  const [x, y] = [rand([batch, 1, 1, 1]).mul(6).add(5), rand([batch, 1, 1, 1]).mul(6).add(5)];
  const away = places
    .sub(y)
    .square()
    .add(places.reshape([1, 1, 1, side]).sub(x).square());
  return away.less(16).cast('float32').mul(2).sub(1);
}

export async function dcgan(steps = 400): Promise<Result> {
  seed(8);
  using generator = new Sequential(
    new Linear(noise, 32 * 4 * 4),
    new Unflatten(1, [32, 4, 4]),
    new BatchNorm2d(32),
    new ReLU(),
    new ConvTranspose2d(32, 16, 4, { stride: 2, padding: 1 }),
    new BatchNorm2d(16),
    new ReLU(),
    new ConvTranspose2d(16, 1, 4, { stride: 2, padding: 1 }),
    new Tanh(),
  );
  using critic = new Sequential(
    new Conv2d(1, 16, 4, { stride: 2, padding: 1 }),
    new LeakyReLU(0.2),
    new Conv2d(16, 32, 4, { stride: 2, padding: 1 }),
    new LeakyReLU(0.2),
    new Flatten(),
    new Linear(32 * 4 * 4, 1),
  );
  const options = { lr: 1e-3, betas: [0.5, 0.999] } as const;
  using makes = new Adam(generator.parameters(), options);
  using tells = new Adam(critic.parameters(), options);
  /** How many pixels of what is drawn are neither clearly in nor out: few once discs are drawn. */
  const grey = (): Tensor =>
    scope(() =>
      noGrad(() =>
        generator
          .forward(randn([batch, noise]))
          .abs()
          .less(0.9)
          .cast('float32')
          .mean(),
      ),
    );
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    step(critic, tells, () => {
      const drawn = detach(generator.forward(randn([batch, noise])));
      const right = binaryCrossEntropyWithLogits(critic.forward(real()), ones([batch, 1]));
      return right.add(binaryCrossEntropyWithLogits(critic.forward(drawn), zeros([batch, 1])));
    }).dispose();
    step(generator, makes, () =>
      binaryCrossEntropyWithLogits(critic.forward(generator.forward(randn([batch, noise]))), ones([batch, 1])),
    ).dispose();
    if (i % Math.ceil(steps / 20) === 0 || i === steps - 1) losses.push(await take(grey()));
  }
  using picture = scope(() =>
    noGrad(() =>
      generator
        .forward(randn([batch, noise]))
        .greater(0)
        .cast('int32'),
    ),
  );
  const [first] = (await picture.array()) as number[][][][];
  return {
    losses,
    note: `the numbers are the share of grey pixels; a picture:\n${first![0]!.map((row) => row.map((v) => ' #'[v]).join('')).join('\n')}`,
  };
}
