/** Checkpoints that PyTorch 1.13.1 wrote (tooling/goldens/checkpoints.py): loaded, networks give the values that they gave there. */
import { readFileSync } from 'node:fs';
import { flatten, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { decodeSafetensors } from '@polygrad/data';
import { beforeEach, describe, expect, it } from 'vitest';
import { ReLU } from '../layers/activation.ts';
import { TransformerBlock } from '../layers/attention.ts';
import { Conv2d } from '../layers/conv.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm2d, LayerNorm } from '../layers/norm.ts';
import { LSTM } from '../layers/recurrent.ts';
import { type AnyModule, Module } from './module.ts';
import { Sequential } from './sequential.ts';
import { hostState, type StateArray } from './state.ts';
import { torchNames } from './torch-names.ts';

const file = new URL('./fixtures/torch.safetensors', import.meta.url);
const { tensors } = decodeSafetensors(readFileSync(file));

/** The state of one network of the file. */
function stateOf(name: string): Map<string, StateArray> {
  const own = [...tensors].filter(([key]) => key.startsWith(`${name}.`));
  return new Map(own.map(([key, value]) => [key.slice(name.length + 1), value as StateArray]));
}

const given = (name: string): Tensor => {
  const { data, shape } = tensors.get(name) as StateArray;
  return tensor(data, { shape, dtype: 'float32' });
};

class Cnn extends Module {
  readonly features = new Sequential(new Conv2d(2, 4, 3, { padding: 1 }), new BatchNorm2d(4), new ReLU());
  readonly head = new Linear(100, 3);

  forward(x: Tensor): Tensor {
    return this.head.forward(flatten(this.features.forward(x), { start: 1 }));
  }
}

/** Largest distance of a result from PyTorch's. */
async function distance(y: Tensor, name: string): Promise<number> {
  const [found, wanted] = [await y.data(), tensors.get(name)!.data as Float32Array];
  expect(y.shape).toEqual(tensors.get(name)!.shape);
  return Math.max(...wanted.map((value, i) => Math.abs(value - Number(found[i]))));
}

beforeEach(() => setEngine(createReferenceEngine()));

describe('a checkpoint of PyTorch', () => {
  it('with a batch norm gives what it gave there', async () => {
    const state = stateOf('cnn');
    expect(state.get('features.1.num_batches_tracked')?.data).toEqual(BigInt64Array.of(3n));
    using model = new Cnn();
    expect(model.loadStateDict(state)).toEqual({ missing: [], unexpected: [] });
    model.eval();
    expect(await distance(model.forward(given('x.cnn')), 'y.cnn')).toBeLessThan(1e-6);
  });

  it('of an LSTM in two layers and directions, and of an encoder layer, too', async () => {
    using lstm = new LSTM(3, 4, { numLayers: 2, bidirectional: true });
    lstm.loadStateDict(stateOf('lstm'));
    expect(await distance(lstm.forward(given('x.lstm')).output, 'y.lstm')).toBeLessThan(1e-6);
    using block = new TransformerBlock(8, 2, { dimFeedforward: 12, normFirst: false });
    block.loadStateDict(stateOf('encoder'));
    block.eval();
    expect(await distance(block.forward(given('x.encoder')), 'y.encoder')).toBeLessThan(1e-6);
  });

  it('of a wrapped network is taken with rename, and refused without', async () => {
    for (const prefix of ['module.', '_orig_mod.', 'module._orig_mod.']) {
      const state = new Map([...stateOf('cnn')].map(([name, value]) => [prefix + name, value]));
      using model = new Cnn();
      expect(() => model.loadStateDict(state)).toThrow(/the state lacks 'features.0.weight'.*the module has no '/);
      expect(model.loadStateDict(state, { rename: torchNames })).toEqual({ missing: [], unexpected: [] });
      model.eval();
      expect(await distance(model.forward(given('x.cnn')), 'y.cnn')).toBeLessThan(1e-6);
    }
  });

  it('has older names of norms, and names of a network that is built otherwise', async () => {
    const ones = { dtype: 'float32', shape: [2], data: Float32Array.of(1, 2) } as const;
    using norm = new LayerNorm(2);
    norm.loadStateDict({ gamma: ones, beta: ones }, { rename: torchNames });
    expect(await norm.bias!.array()).toEqual([1, 2]);
    using own: AnyModule = new Sequential(new LayerNorm(2));
    const rename = (name: string) => (name === 'extra' ? null : name.replace('norm_', '0.'));
    own.loadStateDict({ norm_weight: ones, norm_bias: ones, extra: ones }, { rename });
    expect(() => own.loadStateDict({ a: ones, b: ones }, { rename: () => '0.bias' })).toThrow(
      "[loadStateDict] 'a' and 'b' both become '0.bias'; rename only one",
    );
    expect(() => own.loadStateDict({}, { rename: 'tf' as never })).toThrow(
      /rename.*a function of a name, such as torchNames/,
    );
  });

  it('keeps a member of its own that is called as a wrapper is', () => {
    class Holder extends Module {
      readonly module = new Linear(1, 1);
      forward(x: Tensor): Tensor {
        return this.module.forward(x);
      }
    }
    using holder = new Holder();
    expect(holder.loadStateDict(holder.stateDict(), { rename: torchNames })).toEqual({ missing: [], unexpected: [] });
  });

  it('passes counts of batches over only beside running statistics', () => {
    const { weight, bias } = new Linear(1, 1);
    const count = { dtype: 'int64', shape: [], data: BigInt64Array.of(1n) } as const;
    using linear = new Linear(1, 1);
    expect(() => linear.loadStateDict({ weight, bias: bias!, num_batches_tracked: count })).toThrow(
      /the module has no 'num_batches_tracked'/,
    );
  });

  it('that does not fit is refused with all that is wrong at once', async () => {
    using model = new Cnn();
    const before = await hostState(model.stateDict());
    const { 'head.bias': _, ...rest } = Object.fromEntries(stateOf('cnn'));
    const wide = { dtype: 'float32', shape: [3, 99], data: new Float32Array(297) } as const;
    const half = { dtype: 'float16', shape: [4], data: new Uint16Array(4) } as const;
    const wrong = { ...rest, 'head.weight': wide, 'features.1.bias': half, 'features.9.weight': half };
    expect(() => model.loadStateDict(wrong)).toThrow(
      "[loadStateDict] the state lacks 'head.bias'; the module has no 'features.9.weight'; " +
        "'features.1.bias' is float32 in the module and float16 in the state; " +
        "'head.weight' has shape (3, 100) in the module and (3, 99) in the state; the state is of another module",
    );
    expect(await hostState(model.stateDict())).toEqual(before);
  });
});
