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

it('neither gradients nor what assigned tensors named before', async () => {
  await setEngine(createReferenceEngine());
  const model = new Linear(3, 1);
  const optimizer = new Adam(model.parameters());
  const made: WeakRef<object>[] = [];
  const step = compile((x: Tensor) => {
    const { value, grads } = lossAndGrad(model, () => mean(square(model.forward(x))));
    for (const gradient of grads) made.push(new WeakRef(gradient!));
    const before = model.parameters().map((parameter) => (parameter as unknown as { node: object }).node);
    for (const node of before) made.push(new WeakRef(node));
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
  const last = 2 * model.parameters().length;
  expect(made.slice(0, -last).filter((ref) => ref.deref() !== undefined).length).toBe(0);
  step.dispose();
});
