/** A variational autoencoder (Kingma and Welling, 2013) of small pictures: a disc that lies anywhere becomes two numbers, and two numbers a disc. */
import {
  binaryCrossEntropyWithLogits,
  exp,
  noGrad,
  randn,
  scope,
  seed,
  split,
  tensor,
  type Tensor,
} from '@polygrad/core';
import { Adam, Linear, Module, ReLU, Sequential } from '@polygrad/nn';
import { type Result, step, train } from './train.ts';

const [side, batch, latent] = [12, 64, 2];

/** Pictures of a disc that lies anywhere. */
function pictures(i: number): Tensor {
  const rows = Array.from({ length: batch }, (_, k) => {
    const [x, y] = [2 + ((i * 7 + k * 5) % 8), 2 + ((i * 3 + k * 11 + Math.floor(k / 8)) % 8)];
    return Array.from({ length: side * side }, (_, at) =>
      Number((Math.floor(at / side) - y) ** 2 + ((at % side) - x) ** 2 < 7),
    );
  });
  return tensor(rows);
}

class Vae extends Module {
  readonly encoder: Sequential = new Sequential(new Linear(side * side, 64), new ReLU(), new Linear(64, 2 * latent));
  readonly decoder: Sequential = new Sequential(new Linear(latent, 64), new ReLU(), new Linear(64, side * side));

  /** Pictures of codes, as logits. */
  forward(code: Tensor): Tensor {
    return this.decoder.forward(code);
  }

  /** The loss per picture: what is needed to tell the picture, given the code, and the code (the evidence lower bound). */
  loss(x: Tensor): Tensor {
    const [mean, logVariance] = split(this.encoder.forward(x), 2, 1) as [Tensor, Tensor];
    const code = mean.add(exp(logVariance.mul(0.5)).mul(randn(mean.shape)));
    const told = binaryCrossEntropyWithLogits(this.forward(code), x, { reduction: 'sum' });
    const divergence = exp(logVariance).add(mean.square()).sub(logVariance).sub(1).sum().mul(0.5);
    return told.add(divergence).div(batch);
  }
}

export async function vae(steps = 1500): Promise<Result> {
  seed(2);
  using model = new Vae();
  using optimizer = new Adam(model.parameters(), { lr: 2e-3 });
  const losses = await train(steps, (i) => step(model, optimizer, () => model.loss(pictures(i))));
  using drawn = scope(() =>
    noGrad(() =>
      model
        .forward(randn([1, latent]))
        .greater(0)
        .cast('int32')
        .reshape([side, side]),
    ),
  );
  return {
    losses,
    note: `a picture of its own:\n${((await drawn.array()) as number[][]).map((row) => row.map((v) => ' #'[v]).join('')).join('\n')}`,
  };
}
