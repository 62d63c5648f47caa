/** Recordings of compiled steps hold no tensor that a step made and did not return: hundreds of recordings would hold as many steps. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { compile, mean, setEngine, square, stats, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { Linear } from '../layers/linear.ts';
import { Adam } from '../optim/adam.ts';
import { lossAndGrad } from './loss-and-grad.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

it('not the new values of parameters', async () => {
  await setEngine(createReferenceEngine());
  const model = new Linear(3, 1);
  const made: WeakRef<object>[] = [];
  class Seen extends Adam {
    protected override update(
      p: Tensor,
      g: Tensor,
      state: readonly Tensor[],
      s: never,
    ): { parameter: Tensor; state: Tensor[] } {
      const next = super.update(p, g, state, s);
      made.push(new WeakRef(next.parameter));
      return next;
    }
  }
  const optimizer = new Seen(model.parameters());
  const step = compile((x: Tensor) => {
    const { value, grads } = lossAndGrad(model, () => mean(square(model.forward(x))));
    optimizer.step(grads);
    return value;
  });
  const { recordings = 0 } = stats();
  for (const rows of [9, 10, 11, 12, 13]) {
    const x = tensor(new Float32Array(3 * rows), { shape: [rows, 3] });
    const value = step(x);
    await value.item();
    value.dispose();
    x.dispose();
  }
  expect(stats().recordings - recordings).toBeGreaterThan(2);
  await turn();
  collect();
  await turn();
  collect();
  // The last call's, which the runtime may still have.
  const last = model.parameters().length;
  expect(made.slice(0, -last).filter((ref) => ref.deref() !== undefined).length).toBe(0);
  step.dispose();
});
