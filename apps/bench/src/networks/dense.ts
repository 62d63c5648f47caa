/** Networks of dense layers: an MLP, actor and critic, a variational autoencoder, and one that solves an equation. */
import {
  add,
  binaryCrossEntropyWithLogits,
  concat,
  crossEntropy,
  detach,
  exp,
  grad,
  logSoftmax,
  max,
  mean,
  mul,
  relu,
  reshape,
  sin,
  square,
  sub,
  sum,
  takeAlongAxis,
  type Tensor,
  tanh,
  unsqueeze,
} from '@polygrad/core';
import { Linear, Module, ReLU, Sequential } from '@polygrad/nn';
import type { NetworkSpec } from '../work/networks.ts';
import type { Network } from './network.ts';

type Spec<Name extends NetworkSpec['network']> = Extract<NetworkSpec, { network: Name }>;

export function mlp({ inputs, hidden, outputs }: Spec<'mlp'>): Network {
  const model = new Sequential(new Linear(inputs, hidden), new ReLU(), new Linear(hidden, outputs));
  return {
    model,
    loss: (x, y) => crossEntropy(model.forward(x as Tensor), y as Tensor),
    infer: (x) => max(model.forward(x as Tensor)),
  };
}

class ActorCritic extends Module<[x: Tensor], readonly [logits: Tensor, value: Tensor]> {
  readonly first: Linear;
  readonly actor: Linear;
  readonly critic: Linear;

  constructor(hidden: number) {
    super();
    this.first = new Linear(4, hidden);
    this.actor = new Linear(hidden, 2);
    this.critic = new Linear(hidden, 1);
  }

  forward(x: Tensor): readonly [Tensor, Tensor] {
    const h = relu(this.first.forward(x));
    return [this.actor.forward(h), this.critic.forward(h)];
  }
}

/** Policy gradient of an episode: what was seen, what was done, what it gained. */
export function actorCritic({ hidden }: Spec<'actor-critic'>): Network {
  const model = new ActorCritic(hidden);
  return {
    model,
    loss: (seen, done, gains) => {
      const [logits, value] = model.forward(seen as Tensor);
      const chosen = takeAlongAxis(logSoftmax(logits, 1), unsqueeze(done as Tensor, 1), 1);
      const advantage = sub(unsqueeze(gains as Tensor, 1), value);
      return sub(mul(mean(square(advantage)), 0.5), mean(mul(chosen, detach(advantage))));
    },
    infer: (seen) => max(model.forward(seen as Tensor)[0]),
  };
}

class Vae extends Module<[x: Tensor, noise: Tensor], readonly Tensor[]> {
  readonly down: Linear;
  readonly middle: Linear;
  readonly spread: Linear;
  readonly up: Linear;
  readonly out: Linear;

  constructor(hidden: number, latent: number) {
    super();
    this.down = new Linear(784, hidden);
    this.middle = new Linear(hidden, latent);
    this.spread = new Linear(hidden, latent);
    this.up = new Linear(latent, hidden);
    this.out = new Linear(hidden, 784);
  }

  /** Logits of pixels, means and logarithms of variances. */
  forward(x: Tensor, noise: Tensor): readonly [Tensor, Tensor, Tensor] {
    const h = relu(this.down.forward(x));
    const [middle, spread] = [this.middle.forward(h), this.spread.forward(h)];
    const z = add(middle, mul(noise, exp(mul(spread, 0.5))));
    return [this.out.forward(relu(this.up.forward(z))), middle, spread];
  }
}

export function vae({ hidden, latent }: Spec<'vae'>): Network {
  const model = new Vae(hidden, latent);
  return {
    model,
    loss: (x, noise) => {
      const [logits, middle, spread] = model.forward(x as Tensor, noise as Tensor) as readonly [Tensor, Tensor, Tensor];
      const apart = sub(add(square(middle), exp(spread)), add(spread, 1));
      return add(binaryCrossEntropyWithLogits(logits, x as Tensor), mul(mean(apart), 0.5));
    },
    infer: (x, noise) => max(model.forward(x as Tensor, noise as Tensor)[0]!),
  };
}

/** u(x, t): the equation inside, -sin(pi x) at t = 0. */
export function pinn({ width, layers }: Spec<'pinn'>): Network {
  const hidden = Array.from({ length: layers - 1 }, () => new Linear(width, width));
  const model = new Sequential(
    ...[new Linear(2, width), ...hidden].flatMap((layer) => [layer, (x: Tensor) => tanh(x)]),
    new Linear(width, 1),
  );
  const u = (x: Tensor, t: Tensor): Tensor => model.forward(concat([x, t], 1));
  return {
    model,
    loss: (...inputs) => {
      const [x, t] = inputs as readonly [Tensor, Tensor];
      const total = (a: Tensor, b: Tensor): Tensor => sum(u(a, b));
      const byBoth = grad(total, { argnums: [0, 1] });
      const bySpace = grad(total);
      const [ux, ut] = byBoth(x, t);
      const uxx = grad((a: Tensor) => sum(bySpace(a, t)))(x);
      const inside = sub(add(ut, mul(u(x, t), ux)), mul(uxx, 0.01));
      const start = add(u(x, mul(t, 0)), sin(mul(x, Math.PI)));
      return add(mean(square(inside)), mean(square(start)));
    },
    infer: (x, t) => max(reshape(u(x as Tensor, t as Tensor), [-1])),
  };
}
