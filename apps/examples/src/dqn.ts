/**
 * Deep Q-learning (Mnih et al., 2015): balances a pole on a cart with a network that tells how long each push will keep it standing. Steps are remembered, and
 * learned from in random order, against a copy of the network that follows slowly. The network chooses the next push, the copy values it (van Hasselt et al.,
 * 2016): one network that does both believes its own mistakes.
 */
import { argMax, detach, gather, noGrad, scope, seed, smoothL1Loss, tensor, type Tensor } from '@polygrad/core';
import { RandomStream } from '@polygrad/data';
import { Adam, Linear, linearRate, ReLU, Sequential } from '@polygrad/nn';
import { CartPole, examine, most, play, report, type State } from './cart-pole.ts';
import { type Result, step, take } from './train.ts';

interface Memory {
  readonly state: State;
  readonly action: number;
  readonly next: State;
  readonly goesOn: number;
}

const [batch, room, discount] = [64, 20_000, 0.99];
const network = (): Sequential =>
  new Sequential(new Linear(4, 64), new ReLU(), new Linear(64, 64), new ReLU(), new Linear(64, 2));
/** Places and angles as numbers of about the same size. */
const scaled = ([x, v, angle, turn]: State): number[] => [x! / 2.4, v! / 2, angle! / 0.2, turn! / 2];

export async function dqn(episodes = 150, start = 7): Promise<Result> {
  seed(start);
  const random = new RandomStream(start);
  const chance = (): number => random.below(2 ** 30) / 2 ** 30;
  using q = network();
  using target = network();
  const follow = (share: number): void =>
    scope(() =>
      noGrad(() => {
        const own = q.parameters();
        for (const [i, p] of target.parameters().entries()) p.assign(p.mul(1 - share).add(own[i]!.mul(share)));
      }),
    );
  follow(1);
  const lr = linearRate(1e-3, { from: 1, to: 0.1, steps: 60 * episodes });
  using optimizer = new Adam(q.parameters(), { lr });
  const memories: Memory[] = [];
  const choose = (from: Sequential, state: State): Promise<number> =>
    take(scope(() => noGrad(() => argMax(from.forward(tensor([scaled(state)])), 1))));
  const learn = (): void => {
    const some = Array.from({ length: batch }, () => memories[random.below(memories.length)]!);
    const states = (of: (m: Memory) => State): Tensor => tensor(some.map((m) => scaled(of(m))));
    step(q, optimizer, () => {
      const next = states((m) => m.next);
      const best = gather(target.forward(next), argMax(q.forward(next), 1).reshape([-1, 1]), 1).reshape([-1]);
      const goesOn = tensor(some.map((m) => m.goesOn));
      // Only the fall counts, by -1: values begin near what they are for states that are safe, and what is learned is danger.
      const wanted = detach(best.mul(discount).mul(goesOn).add(goesOn).sub(1));
      const actions = tensor(
        some.map((m) => [m.action]),
        { dtype: 'int32' },
      );
      return smoothL1Loss(gather(q.forward(states((m) => m.state)), actions, 1).reshape([-1]), wanted);
    }).dispose();
    follow(0.01);
  };
  const cart = new CartPole(start);
  const lasted: number[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    const explore = Math.max(0.02, 1 - episode / (0.3 * episodes));
    const count = await play(
      cart,
      (state) => (chance() < explore ? random.below(2) : choose(q, state)),
      (state, action, next) => {
        memories.push({ state, action, next: next ?? state, goesOn: Number(next !== null) });
        if (memories.length > room) memories.shift();
        if (memories.length >= 4 * batch) learn();
      },
    );
    lasted.push(count);
    // Solved. Going on would only forget what falling is like: memories of it are rare by then.
    if (episode % 10 === 9 && (await examine((state) => choose(target, state), 5, 2000)) === most) break;
  }
  const last = await examine((state) => choose(target, state), 10, 1000);
  return report(lasted, last);
}
