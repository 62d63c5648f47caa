/** Optimizers of 16-bit parameters: their float32 copies against float32 trainings, state, and changes from outside. */
import { cast, setEngine, type Tensor, tensor } from '@polygrad/core';
import { decodeSafetensors, encodeSafetensors } from '@polygrad/data';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as nn from '../index.ts';

beforeAll(async () => setEngine(createReferenceEngine()));

const kinds: Readonly<Record<string, (p: Iterable<Tensor>) => nn.Optimizer>> = {
  SGD: (p) => new nn.SGD(p, { lr: 1e-3, momentum: 0.5 }),
  AdamW: (p) => new nn.AdamW(p, { lr: 1e-4 }),
  Adafactor: (p) => new nn.Adafactor(p, { lr: 1e-4 }),
  RMSProp: (p) => new nn.RMSProp(p, { lr: 1e-4 }),
};

const start = [[1, -2, 0.5]];
const gradient = (step: number): Tensor => tensor([[1, -0.5, ((step % 3) - 1) * 0.25]]);

describe.each(['float16', 'bfloat16'] as const)('parameters in %s', (dtype) => {
  for (const [name, make] of Object.entries(kinds))
    it(`take the steps of float32 with ${name}, rounded`, async () => {
      const [small, full] = [nn.parameter(tensor(start, { dtype })), nn.parameter(tensor(start))];
      const [a, b] = [make([small]), make([full])];
      for (let step = 0; step < 20; step++) {
        a.step([gradient(step).cast(dtype)]);
        b.step([gradient(step)]);
      }
      expect(small.dtype).toBe(dtype);
      expect(await small.array()).toEqual(await full.cast(dtype).array());
      const { slots } = await a.state();
      expect(slots['0.master']).toMatchObject({ dtype: 'float32', data: await full.data() });
      expect(Object.values(slots).every((slot) => slot.dtype === 'float32')).toBe(true);
    });

  it('add up steps that the dtype alone would lose', async () => {
    const p = nn.parameter(tensor([1], { dtype }));
    const optimizer = new nn.SGD([p], { lr: 2 ** -14 });
    // 1 - 2^-14 is 1 in both dtypes; 512 of these are 2^-5.
    for (let step = 0; step < 512; step++) optimizer.step([tensor([1], { dtype })]);
    expect(await p.item()).toBe(1 - 2 ** -5);
  });

  it('follow what is assigned to them from outside', async () => {
    const p = nn.parameter(tensor([1, 1], { dtype }));
    const optimizer = new nn.SGD([p], { lr: 2 ** -14 });
    optimizer.step([tensor([1, 1])]);
    p.assign(tensor([1, 3], { dtype }));
    optimizer.step([tensor([1, 1])]);
    const { slots } = await optimizer.state();
    expect([...slots['0.master']!.data]).toEqual([1 - 2 ** -13, 3 - 2 ** -14]);
  });

  it('go on from their state and weights in a file, with the same bits', async () => {
    const run = async (from: number, to: number, file?: Uint8Array, state?: nn.OptimizerState): Promise<unknown[]> => {
      const p = nn.parameter(tensor(start, { dtype }));
      const optimizer = new nn.AdamW([p], { lr: 1e-3 });
      if (file !== undefined) {
        const { tensors } = decodeSafetensors(file);
        const { p: weights, ...slots } = Object.fromEntries(tensors as unknown as Map<string, nn.StateArray>);
        p.assign(tensor(weights!.data, { shape: weights!.shape, dtype }));
        optimizer.loadState({ steps: state!.steps, slots });
      }
      for (let step = from; step < to; step++) optimizer.step([gradient(step)]);
      const found = await optimizer.state();
      const values = { dtype: p.dtype, shape: p.shape, data: await p.data() };
      return [encodeSafetensors({ p: values, ...found.slots } as never), found];
    };
    const [file, state] = await run(0, 3);
    expect(await run(3, 8, file as Uint8Array, state as nn.OptimizerState)).toEqual(await run(0, 8));
  });
});

describe('a model in bfloat16', () => {
  it('learns with float32 copies of its weights', async () => {
    const model = new nn.Linear(2, 1, { dtype: 'bfloat16' });
    const optimizer = new nn.Adam(model.parameters(), { lr: 0.05 });
    const x = tensor([
      [0, 1],
      [1, 0],
      [1, 1],
    ]);
    const y = tensor([[2], [-1], [1]]);
    let last = Number.POSITIVE_INFINITY;
    for (let step = 0; step < 300; step++) {
      const { value, grads } = nn.lossAndGrad(model, () =>
        nn.mseLoss(model.forward(cast(x, 'bfloat16')), cast(y, 'bfloat16')),
      );
      optimizer.step(grads);
      if (step % 50 === 49) last = Number(await value.item());
      value.dispose();
    }
    expect(last).toBeLessThan(1e-3);
  });
});
