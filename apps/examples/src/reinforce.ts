/**
 * REINFORCE (Williams, 1992): a policy learns to balance a pole on a cart. Episodes last as long as the pole stands, so every step of training has another
 * number of rows.
 */
import { categorical, compile, gather, logSoftmax, noGrad, scope, seed, tensor, type Tensor } from '@polygrad/core';
import { Adam, Linear, ReLU, Sequential } from '@polygrad/nn';
import { CartPole, examine, play, report, type State } from './cart-pole.ts';
import { type Result, step, take } from './train.ts';

export async function reinforce(episodes = 300, start = 5): Promise<Result> {
  seed(start);
  using policy = new Sequential(new Linear(4, 32), new ReLU(), new Linear(32, 2));
  using optimizer = new Adam(policy.parameters(), { lr: 1e-2 });
  const cart = new CartPole(start);
  const choose = compile((state: Tensor) => noGrad(() => categorical(policy.forward(state))));
  const draw = (state: State): Promise<number> => take(scope(() => choose(tensor([[...state]]))));
  const learn = compile((states: Tensor, actions: Tensor, returns: Tensor) =>
    step(policy, optimizer, () => {
      const chosen = gather(logSoftmax(policy.forward(states), 1), actions, 1);
      return chosen.reshape([-1]).mul(returns).mean().neg();
    }),
  );
  const lasted: number[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    const states: number[][] = [];
    const actions: number[] = [];
    const count = await play(cart, draw, (state, action) => {
      states.push([...state]);
      actions.push(action);
    });
    // What each decision led to: the steps that followed it, less where they fell late. Centred, so that better than usual is positive.
    const returns: number[] = [];
    for (let t = states.length - 1, sum = 0; t >= 0; t--) returns.unshift((sum = 1 + 0.98 * sum));
    const mean = returns.reduce((a, b) => a + b, 0) / returns.length;
    const spread = Math.sqrt(returns.reduce((a, b) => a + (b - mean) ** 2, 0) / returns.length) + 1e-6;
    const all = [
      tensor(states),
      tensor(
        actions.map((a) => [a]),
        { dtype: 'int32' },
      ),
      tensor(returns.map((r) => (r - mean) / spread)),
    ] as const;
    learn(...all).dispose();
    for (const t of all) t.dispose();
    lasted.push(count);
  }
  const last = await examine(draw, 10, 1000);
  choose.dispose();
  learn.dispose();
  return report(lasted, last);
}
