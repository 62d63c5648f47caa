/**
 * A physics-informed network (Raissi, Perdikaris and Karniadakis, 2019): it learns the solution of u'' = -u, u(0) = 0, u'(0) = 1 from the equation
 * alone. The solution is the sine, which it never sees.
 */
import { grad, linspace, noGrad, scope, seed, type Tensor, zeros } from '@polygrad/core';
import { Adam, cosineDecay, Linear, Sequential, Tanh } from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

const end = 2 * Math.PI;

export async function pinn(steps = 4000): Promise<Result> {
  seed(3);
  using net = new Sequential(new Linear(1, 32), new Tanh(), new Linear(32, 32), new Tanh(), new Linear(32, 1));
  const u = (t: Tensor): Tensor => net.forward(t.mul(1 / end));
  // Each row depends on its own time only, so the gradient of the sum holds all slopes.
  const slope = grad((t: Tensor) => u(t).sum()) as (t: Tensor) => Tensor;
  const curve = grad((t: Tensor) => slope(t).sum()) as (t: Tensor) => Tensor;
  using optimizer = new Adam(net.parameters(), { lr: cosineDecay(5e-3, { steps }) });
  const losses = await train(steps, () =>
    step(net, optimizer, () => {
      const t = linspace(0, end, 64).reshape([64, 1]);
      const start = zeros([1, 1]);
      const equation = curve(t).add(u(t)).square().mean();
      return equation.add(u(start).square().sum()).add(slope(start).sub(1).square().sum());
    }),
  );
  const distance = scope(() =>
    noGrad(() => {
      const t = linspace(0, end, 101).reshape([101, 1]);
      return u(t).sub(t.sin()).abs().max();
    }),
  );
  return { losses, note: `largest distance from the sine: ${(await take(distance)).toFixed(4)}` };
}
