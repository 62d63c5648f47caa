import { memory, ones, scope, setEngine, type Tensor, tensor, zeros } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { ReLU } from '../layers/activation.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm2d } from '../layers/norm.ts';
import { Module } from './module.ts';
import { buffer, parameter } from './parameter.ts';
import { Sequential } from './sequential.ts';
import { hostState, snapshot } from './state.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

class Block extends Module {
  readonly inner: Sequential = new Sequential(
    new Linear(2, 3),
    new ReLU(),
    (x) => x.mul(2),
    new Linear(3, 2, { bias: false }),
  );
  readonly heads: readonly Linear[] = [new Linear(2, 1), new Linear(2, 1)];
  readonly byName: ReadonlyMap<string, Linear> = new Map([['a', new Linear(1, 1)]]);
  readonly table: { readonly scale: Tensor } = { scale: parameter(ones([1])) };
  readonly counter: Tensor = buffer(zeros([]));
  readonly note: string = 'not a parameter';
  readonly loose: Tensor = tensor([1]);

  forward(x: Tensor): Tensor {
    return this.inner.forward(x);
  }
}

describe('Module', () => {
  it('names what is in its properties, arrays, maps and objects, in order', () => {
    using block = new Block();
    expect(block.namedParameters().map(([name, { shape }]) => `${name} (${shape.join(', ')})`)).toEqual([
      'inner.0.weight (3, 2)',
      'inner.0.bias (3)',
      'inner.3.weight (2, 3)',
      'heads.0.weight (1, 2)',
      'heads.0.bias (1)',
      'heads.1.weight (1, 2)',
      'heads.1.bias (1)',
      'byName.a.weight (1, 1)',
      'byName.a.bias (1)',
      'table.scale (1)',
    ]);
    expect(block.namedBuffers().map(([name]) => name)).toEqual(['counter']);
    expect(block.namedModules().map(([name]) => name)).toEqual([
      '',
      'inner',
      'inner.0',
      'inner.1',
      'inner.3',
      'heads.0',
      'heads.1',
      'byName.a',
    ]);
    expect(block.parameterCount()).toBe(6 + 3 + 6 + 2 * 3 + 2 + 1);
    block.loose.dispose();
  });

  it('Sequential refuses other layers in its list, which its parameters would not follow', () => {
    const model = new Sequential(new Linear(2, 3), new Linear(3, 2));
    const layers = model.layers as unknown as unknown[];
    expect(() => (layers[1] = new Linear(3, 4))).toThrow(TypeError);
    expect(() => layers.push(new Linear(2, 1))).toThrow(TypeError);
    const other = new Sequential(...model.layers.slice(0, -1), new Linear(3, 4));
    expect(other.forward(ones([1, 2])).shape).toEqual([1, 4]);
    expect(other.parameters().map(({ shape }) => shape)).toEqual([[3, 2], [3], [4, 3], [4]]);
  });

  it('lists a shared parameter under both names and counts it once', () => {
    const shared = new Linear(2, 2, { bias: false });
    using model = new Sequential(shared, shared);
    expect(model.namedParameters().map(([name]) => name)).toEqual(['0.weight', '1.weight']);
    expect(model.parameters()).toHaveLength(1);
    expect(model.parameters()[0]).toBe(shared.weight);
    expect(model.parameterCount()).toBe(4);
  });

  it('is not lost in a ring of modules', () => {
    class Ring extends Module {
      readonly weight: Tensor = parameter(ones([1]));
      next: Ring | null = null;
      forward(x: Tensor): Tensor {
        return x;
      }
    }
    using a = new Ring();
    const b = new Ring();
    a.next = b;
    b.next = a;
    expect(a.namedParameters().map(([name]) => name)).toEqual(['weight', 'next.weight']);
  });

  it('switches modes everywhere', () => {
    using model = new Sequential(new Dropout(0.5), new Sequential(new BatchNorm2d(2)));
    expect(
      model
        .eval()
        .namedModules()
        .every(([, { training }]) => !training),
    ).toBe(true);
    expect(
      model
        .train()
        .namedModules()
        .every(([, { training }]) => training),
    ).toBe(true);
  });

  it('freezes and thaws', () => {
    using model = new Sequential(new Linear(2, 2));
    expect(
      model
        .freeze()
        .parameters()
        .some(({ requiresGrad }) => requiresGrad),
    ).toBe(false);
    expect(model.parameters().length).toBe(2);
    expect(
      model
        .freeze(false)
        .parameters()
        .every(({ requiresGrad }) => requiresGrad),
    ).toBe(true);
  });

  it('outlives the scope it is made in, and gives everything back when disposed', async () => {
    const before = memory().numTensors;
    const model = scope(() => {
      const made = new Sequential(new Linear(2, 2), new BatchNorm2d(2));
      return made;
    });
    expect((await model.parameters()[0]!.data()).length).toBe(4);
    model.dispose();
    expect(memory().numTensors).toBe(before);
  });

  it('refuses layers that are none', () => {
    expect(() => new Sequential(new ReLU(), 3 as never)).toThrow(/bad layer 1: 3; must be a module/);
  });
});

describe('state dictionaries', () => {
  const make = (): Sequential => new Sequential(new Linear(2, 2), new BatchNorm2d(2));

  it('carry values from one module to another', async () => {
    using a = make();
    using b = make();
    const running = tensor([5, 6]);
    a.namedBuffers()[0]![1].assign(running);
    running.dispose();
    expect(Object.keys(a.stateDict())).toEqual([
      '0.weight',
      '0.bias',
      '1.weight',
      '1.bias',
      '1.running_mean',
      '1.running_var',
    ]);
    expect(b.loadStateDict(a.stateDict())).toEqual({ missing: [], unexpected: [] });
    expect(await hostState(b.stateDict())).toEqual(await hostState(a.stateDict()));
    expect(b.parameters().every(({ requiresGrad }) => requiresGrad)).toBe(true);
  });

  it('go to the host and back', async () => {
    using a = make();
    using b = make();
    const state = await hostState(a.stateDict());
    expect(state['0.weight']).toMatchObject({ dtype: 'float32', shape: [2, 2] });
    b.loadStateDict(new Map(Object.entries(state)));
    expect(await hostState(b.stateDict())).toEqual(state);
  });

  it('keep every bit of every dtype on the way', async () => {
    class Mixed extends Module {
      half = buffer(tensor([0.1, -2, Number.POSITIVE_INFINITY], { dtype: 'float16' }));
      brain = buffer(tensor([0.1, 3e38], { dtype: 'bfloat16' }));
      long = buffer(tensor([2n ** 62n + 1n, -1n]));
      small = buffer(tensor([-128, 127], { dtype: 'int8' }));
      forward(x: Tensor): Tensor {
        return x;
      }
    }
    using a = new Mixed();
    using b = new Mixed();
    for (const t of Object.values(b.stateDict())) {
      using zero = zeros(t.shape, { dtype: t.dtype });
      t.assign(zero);
    }
    const state = await hostState(a.stateDict());
    expect(state.half!.data).toEqual(Uint16Array.of(0x2e66, 0xc000, 0x7c00));
    b.loadStateDict(new Map(Object.entries(state)));
    expect(await hostState(b.stateDict())).toEqual(state);
  });

  it('name what is missing and what is unknown, and change nothing', async () => {
    using a = make();
    const before = await hostState(a.stateDict());
    const { '0.bias': bias, '1.weight': weight, ...rest } = before;
    const wrong = { ...rest, '0.biass': bias!, other: weight! };
    expect(() => a.loadStateDict(wrong)).toThrow(
      "[loadStateDict] the state lacks '0.bias', '1.weight'; the module has no '0.biass', 'other'; pass { strict: false } to load what there is",
    );
    expect(await hostState(a.stateDict())).toEqual(before);
    try {
      a.loadStateDict(wrong);
    } catch (error) {
      expect((error as NnError).keys).toEqual(['0.bias', '1.weight', '0.biass', 'other']);
    }
    expect(a.loadStateDict(wrong, { strict: false })).toEqual({
      missing: ['0.bias', '1.weight'],
      unexpected: ['0.biass', 'other'],
    });
  });

  it('name the entry whose shape or dtype differs, and change nothing', async () => {
    using a = make();
    const before = await hostState(a.stateDict());
    const changed = Object.fromEntries(
      Object.entries(before).map(([name, array]) => [name, { ...array, data: new Float32Array(array.data.length) }]),
    );
    const otherShape = { ...changed, '1.bias': { dtype: 'float32', shape: [3], data: new Float32Array(3) } as const };
    expect(() => a.loadStateDict(otherShape)).toThrow(/'1.bias' has shape \(2\) in the module and \(3\) in the state/);
    const otherType = { ...changed, '1.bias': { dtype: 'int32', shape: [2], data: new Int32Array(2) } as const };
    expect(() => a.loadStateDict(otherType)).toThrow(/'1.bias' is float32 in the module and int32 in the state/);
    expect(() => a.loadStateDict(otherType)).toThrow(NnError);
    expect(await hostState(a.stateDict())).toEqual(before);
  });

  it('can be kept as they are', async () => {
    using a = make();
    const kept = snapshot(a.stateDict());
    const before = await hostState(kept);
    const zero = zeros([2, 2]);
    a.parameters()[0]!.assign(zero);
    zero.dispose();
    expect(await hostState(kept)).toEqual(before);
    a.loadStateDict(kept);
    expect(await hostState(a.stateDict())).toEqual(before);
    for (const value of Object.values(kept)) value.dispose();
  });
});
