/**
 * REINFORCE (Williams, 1992): a policy learns to balance a pole on a cart. Episodes last as long as the pole stands, so every step of training has another
 * number of rows.
 */
import { categorical, gather, logSoftmax, noGrad, scope, seed, tensor, type Tensor } from '@polygrad/core';
import { Adam, Linear, ReLU, Sequential } from '@polygrad/nn';
import { CartPole } from './cart-pole.ts';
import { type Result, step, take } from './train.ts';

const most = 200;

export async function reinforce(episodes = 300): Promise<Result> {
  seed(5);
  const policy = new Sequential(new Linear(4, 32), new ReLU(), new Linear(32, 2));
  const optimizer = new Adam(policy.parameters(), { lr: 1e-2 });
  const cart = new CartPole(1);
  const lasted: number[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    const states: number[][] = [];
    const actions: number[] = [];
    for (let state: number[] | null = cart.reset(); state !== null && states.length < most; ) {
      const at = state;
      const action = await take(scope(() => noGrad(() => categorical(policy.forward(tensor([at]))))));
      states.push(state);
      actions.push(action);
      state = cart.push(action === 1);
    }
    // What each decision led to: the steps that followed it, less where they fell late. Centred, so that better than usual is positive.
    const returns: number[] = [];
    for (let t = states.length - 1, sum = 0; t >= 0; t--) returns.unshift((sum = 1 + 0.98 * sum));
    const mean = returns.reduce((a, b) => a + b, 0) / returns.length;
    const spread = Math.sqrt(returns.reduce((a, b) => a + (b - mean) ** 2, 0) / returns.length) + 1e-6;
    step(policy, optimizer, () => {
      const chosen = gather(
        logSoftmax(policy.forward(tensor(states)), 1),
        tensor(
          actions.map((a) => [a]),
          { dtype: 'int32' },
        ),
        1,
      ) as Tensor;
      return chosen
        .reshape([-1])
        .mul(tensor(returns.map((r) => (r - mean) / spread)))
        .mean()
        .neg();
    }).dispose();
    lasted.push(states.length);
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
