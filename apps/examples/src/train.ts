/** What every program here does: steps of an optimizer, and the losses on the way. */
import { scope, type Tensor } from '@polygrad/core';
import { type AnyModule, lossAndGrad, type Optimizer } from '@polygrad/nn';

/** What a program gives: losses in order, and a line about what came out. */
export interface Result {
  readonly losses: readonly number[];
  readonly note: string;
}

/** One step: the loss, its gradients, and the update. Everything but the loss is given back. */
export function step(model: AnyModule, optimizer: Optimizer, loss: () => Tensor): Tensor {
  return scope(() => {
    const { value, grads } = lossAndGrad(model, loss);
    optimizer.step(grads);
    return value;
  });
}

/** Reads a number and gives its tensor back. */
export async function take(value: Tensor): Promise<number> {
  const number = await value.item();
  value.dispose();
  return Number(number);
}

/** Trains for some steps; reads a loss every few. */
export async function train(
  steps: number,
  once: (i: number) => Tensor,
  every: number = Math.ceil(steps / 20),
): Promise<number[]> {
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const loss = once(i);
    if (i % every === 0 || i === steps - 1) losses.push(await take(loss));
    else loss.dispose();
  }
  return losses;
}
