/**
 * What a small application in a browser does, and all it carries: a network trained to follow a sine. The first steps run
 * without a single `await`.
 */
import '@polygrad/backend-cpu';
import { linspace, mseLoss, reshape, scope, seed, sin } from '@polygrad/core/functions';
import { Adam, Linear, ReLU, Sequential, lossAndGrad } from '@polygrad/nn';

/** Trains and returns the loss after every twentieth step. */
export async function train(steps = 200) {
  seed(1);
  const x = reshape(linspace(-3, 3, 128), [128, 1]);
  const model = new Sequential(new Linear(1, 32), new ReLU(), new Linear(32, 1));
  const optimizer = new Adam(model.parameters(), { lr: 0.01 });
  const losses = [];
  for (let step = 0; step < steps; step++) {
    const loss = scope(() => {
      const { value, grads } = lossAndGrad(model, () => mseLoss(model.forward(x), sin(x)));
      optimizer.step(grads);
      return value;
    });
    if (step % 20 === 19) losses.push(await loss.item());
    loss.dispose();
  }
  return losses;
}
