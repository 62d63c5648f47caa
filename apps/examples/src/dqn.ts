/**
 * Deep Q-learning (Mnih et al., 2015): balances a pole on a cart with a network that tells how long each push will keep it standing. Steps are remembered, and
 * learned from in random order, against a copy of the network that follows slowly.
 */
import { argMax, gather, noGrad, scope, seed, smoothL1Loss, detach, tensor, type Tensor } from '@polygrad/core';
import { Adam, Linear, ReLU, Sequential } from '@polygrad/nn';
import { CartPole } from './cart-pole.ts';
import { type Result, step, take } from './train.ts';

interface Memory {
  readonly state: readonly number[];
  readonly action: number;
  readonly next: readonly number[];
  readonly goesOn: number;
}

const [batch, most, discount] = [64, 200, 0.99];
const network = (): Sequential =>
  new Sequential(new Linear(4, 64), new ReLU(), new Linear(64, 64), new ReLU(), new Linear(64, 2));

export async function dqn(episodes = 150): Promise<Result> {
  seed(7);
  const [q, target] = [network(), network()];
  const follow = (share: number): void =>
    scope(() =>
      noGrad(() => {
        const own = q.parameters();
        for (const [i, p] of target.parameters().entries()) p.assign(p.mul(1 - share).add(own[i]!.mul(share)));
      }),
    );
  follow(1);
  const optimizer = new Adam(q.parameters(), { lr: 5e-4 });
  const cart = new CartPole(3);
  const memories: Memory[] = [];
  let random = 1;
  const chance = (): number => {
    random = (Math.imul(random, 48271) >>> 0) % 0x7fffffff;
    return random / 0x7fffffff;
  };
  const learn = (): void => {
    const some = Array.from({ length: batch }, () => memories[Math.floor(chance() * memories.length)]!);
    const column = (of: (m: Memory) => number): Tensor => tensor(some.map(of));
    step(q, optimizer, () => {
      const best = target.forward(tensor(some.map((m) => [...m.next]))).max(1);
      const wanted = detach(
        column((m) => m.goesOn)
          .mul(best)
          .mul(discount)
          .add(1),
      );
      const actions = tensor(
        some.map((m) => [m.action]),
        { dtype: 'int32' },
      );
      return smoothL1Loss(gather(q.forward(tensor(some.map((m) => [...m.state]))), actions, 1).reshape([-1]), wanted);
    }).dispose();
    follow(0.01);
  };
  const lasted: number[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    let count = 0;
    for (let state: number[] | null = cart.reset(); state !== null && count < most; count++) {
      const at = state;
      const explore = chance() < Math.max(0.05, 1 - episode / (0.4 * episodes));
      const action = explore
        ? Math.floor(chance() * 2)
        : await take(scope(() => noGrad(() => argMax(q.forward(tensor([at])), 1))));
      state = cart.push(action === 1);
      memories.push({ state: at, action, next: state ?? at, goesOn: Number(state !== null) });
      if (memories.length > 10_000) memories.shift();
      if (memories.length >= 2 * batch) learn();
    }
    lasted.push(count);
  }
  const average = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;
  const tenth = Math.ceil(episodes / 10);
  const parts = Array.from({ length: Math.ceil(episodes / tenth) }, (_, i) =>
    average(lasted.slice(i * tenth, (i + 1) * tenth)),
  );
  return {
    losses: parts.map((n) => -n),
    note: `the pole stood ${parts.at(-1)!.toFixed(0)} steps at last, ${parts[0]!.toFixed(0)} at first (at most ${most})`,
  };
}
