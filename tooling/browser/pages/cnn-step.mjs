/** A convolutional network trained for some steps on noise: what pages that train one need of core and nn. */
import { crossEntropy, scope, seed, rand, randint } from '@polygrad/core/functions';
import { Adam, Conv2d, Flatten, Linear, MaxPool2d, ReLU, Sequential, lossAndGrad } from '@polygrad/nn';
export async function train(steps = 3) {
  seed(1);
  const x = rand([8, 1, 28, 28]);
  const y = randint(0, 10, [8]);
  const model = new Sequential(
    new Conv2d(1, 8, 3),
    new ReLU(),
    new MaxPool2d(2),
    new Conv2d(8, 16, 3),
    new ReLU(),
    new MaxPool2d(2),
    new Flatten(),
    new Linear(400, 10),
  );
  const optimizer = new Adam(model.parameters(), { lr: 0.001 });
  const losses = [];
  for (let step = 0; step < steps; step++) {
    const loss = scope(() => {
      const { value, grads } = lossAndGrad(model, () => crossEntropy(model.forward(x), y));
      optimizer.step(grads);
      return value;
    });
    losses.push(await loss.item());
    loss.dispose();
  }
  return losses;
}
