/** Containers, hooks, apply, summary and normed weights: what modules offer beside their forward. */
import { flush, memory, ones, setEngine, stats, type Tensor, tensor, zeros } from '@polygrad/core';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { ReLU } from '../layers/activation.ts';
import { Conv2d } from '../layers/conv.ts';
import { Embedding } from '../layers/embedding.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm2d } from '../layers/norm.ts';
import { LSTM } from '../layers/recurrent.ts';
import { Flatten } from '../layers/shape.ts';
import { removeSpectralNorm, removeWeightNorm, spectralNorm, weightNorm } from '../layers/weight-norm.ts';
import { quantize } from '../precision/quantized-linear.ts';
import { ModuleDict, ModuleList } from './containers.ts';
import { forwardHook, forwardPreHook } from './hooks.ts';
import { Module } from './module.ts';
import { Sequential } from './sequential.ts';
import { summary } from './summary.ts';

beforeEach(() => setEngine(createReferenceEngine()));

describe('containers', () => {
  class Net extends Module {
    readonly layers = new ModuleList([new Linear(2, 3), new Linear(3, 1)]);
    readonly heads = new ModuleDict({ a: new Linear(1, 1), b: new Linear(1, 2) });
    forward(x: Tensor): Tensor {
      let value = x;
      for (const layer of this.layers) value = layer.forward(value);
      return this.heads.get('b')!.forward(value);
    }
  }

  it('have PyTorch names, and are looked through', () => {
    const net = new Net();
    expect(net.forward(ones([4, 2])).shape).toEqual([4, 2]);
    expect(Object.keys(net.stateDict()).filter((name) => name.endsWith('weight'))).toEqual([
      'layers.0.weight',
      'layers.1.weight',
      'heads.a.weight',
      'heads.b.weight',
    ]);
    expect(new Net().loadStateDict(net.stateDict())).toEqual({ missing: [], unexpected: [] });
    expect(net.layers.append(new Linear(1, 1)).length).toBe(3);
    expect(net.layers.at(-1)).toBeInstanceOf(Linear);
    expect(net.heads.names()).toEqual(['a', 'b']);
    expect([net.heads.size, net.heads.has('a'), [...net.heads].length]).toEqual([2, true, 2]);
    net.eval();
    expect(net.layers.at(0)!.training).toBe(false);
  });

  it('refuse what is no module, names of members, and to be called', () => {
    expect(() => new ModuleList([(x: Tensor) => x] as never)).toThrow(/\[ModuleList\] bad layer 0.*a Module/);
    expect(() => new ModuleDict({ training: new ReLU() })).toThrow(/'training' is a member of every module/);
    expect(() => new ModuleList().forward()).toThrow(/\[ModuleList\] forward is not defined/);
    expect(() => new ModuleDict().forward()).toThrow(/\[ModuleDict\] forward is not defined/);
  });
});

it('apply visits inner modules first', () => {
  const seen: string[] = [];
  new Sequential(new Sequential(new Linear(1, 1), new ReLU()), new ReLU()).apply((_, name) => void seen.push(name));
  expect(seen).toEqual(['1', '0.1', '0.0', '0', '']);
});

describe('hooks', () => {
  it('see and change arguments and results, in the order they were added, until they are taken away', async () => {
    const layer = new Linear(1, 1, { bias: false });
    layer.weight.assign(tensor([[2]]));
    const order: string[] = [];
    const removers = [
      forwardPreHook(layer, ([x]) => {
        order.push('before');
        return [x.add(1)];
      }),
      forwardHook(layer, (y, [x]) => {
        order.push('after');
        return y.add(x);
      }),
      forwardHook(layer, () => void order.push('last')),
    ];
    expect(await layer.forward(tensor([[1]])).array()).toEqual([[6]]);
    expect(order).toEqual(['before', 'after', 'last']);
    expect(layer.namedParameters().length).toBe(1);
    for (const remove of removers) remove();
    expect(Object.hasOwn(layer, 'forward')).toBe(false);
    expect(await layer.forward(tensor([[1]])).array()).toEqual([[2]]);
  });

  it('stand beside a normed weight', () => {
    const layer = spectralNorm(new Linear(2, 2));
    let count = 0;
    const remove = forwardHook(layer, () => void count++);
    layer.forward(ones([1, 2]));
    remove();
    layer.forward(ones([1, 2]));
    expect(count).toBe(1);
    expect(() => forwardHook(layer, 3 as never)).toThrow(/hook.*a function/);
    expect(() => forwardPreHook({} as never, () => {})).toThrow(/a Module/);
  });
});

describe('summary', () => {
  it('says shapes, parameters and bytes without computing, and leaves the network as it was', () => {
    setEngine(createNullEngine());
    const net = new Sequential(
      new Conv2d(1, 4, 3, { padding: 1 }),
      new BatchNorm2d(4),
      new ReLU(),
      new Flatten(),
      new Linear(64, 10),
    );
    (net.layers[0] as Conv2d).freeze();
    flush(); // first values of parameters
    const before = [stats().planMisses, memory().numTensors];
    const found = summary(net, [2, 1, 4, 4]);
    expect([stats().planMisses, memory().numTensors]).toEqual(before);
    expect(net.training && (net.layers[1] as BatchNorm2d).training).toBe(true);
    expect(found.rows.map(({ name, kind, parameters }) => [name, kind, parameters])).toEqual([
      ['', 'Sequential', 0],
      ['0', 'Conv2d', 40],
      ['1', 'BatchNorm2d', 8],
      ['2', 'ReLU', 0],
      ['3', 'Flatten', 0],
      ['4', 'Linear', 650],
    ]);
    expect(found.rows[1]!.shapes).toEqual([[2, 4, 4, 4]]);
    expect([found.parameters, found.trainable, found.stateBytes]).toEqual([698, 658, 4 * 706]);
    expect(found.resultBytes).toBe(4 * (4 * 128 + 20));
    expect(String(found).split('\n')).toHaveLength(8);
    expect(String(found)).toContain('698 parameters (658 trainable), 2824 bytes');
  });

  it('takes several inputs, integers, and results of several tensors', () => {
    expect(summary(new LSTM(3, 4), [2, 5, 3]).rows[0]!.shapes).toEqual([
      [2, 5, 4],
      [1, 2, 4],
      [1, 2, 4],
    ]);
    expect(summary(new Embedding(5, 2), [[3]], { dtype: 'int32' }).rows[0]!.shapes).toEqual([[3, 2]]);
    expect(() => summary(new Linear(2, 1), [1, 3])).toThrow();
    expect(() => summary(new Linear(2, 1), [1, -3])).toThrow(/shape is -3/);
  });
});

describe('normed weights', () => {
  it('are given back as they were, and learn', async () => {
    const layer = new Linear(3, 2);
    const before = await layer.weight.array();
    weightNorm(layer);
    layer
      .forward(ones([1, 3]))
      .sum()
      .backward();
    expect(layer.stateDict().weight_g!.grad?.shape).toEqual([2, 1]);
    removeWeightNorm(layer);
    const after = (await layer.weight.array()) as number[][];
    for (const [i, row] of (before as number[][]).entries())
      for (const [j, v] of row.entries()) expect(after[i]![j]).toBeCloseTo(v, 6);
    expect(layer.namedParameters().map(([name]) => name)).toEqual(['bias', 'weight']);
  });

  it('bring the largest singular value to 1', async () => {
    const layer = spectralNorm(new Linear(2, 2, { bias: false }), { iterations: 30 });
    layer.stateDict().weight_orig!.assign(
      tensor([
        [3, 0],
        [0, 1],
      ]),
    );
    layer.forward(zeros([1, 2]));
    const found = (await layer.weight.array()) as number[][];
    expect(found[0]![0]).toBeCloseTo(1, 5);
    expect(found[1]![1]).toBeCloseTo(1 / 3, 5);
  });

  it('are one parameter again, with the values of the last norm, and can be quantized then', async () => {
    const layer = new Linear(3, 2);
    const model = spectralNorm(layer, { iterations: 3 });
    const x = tensor([[1, -2, 3]]);
    model.forward(x);
    model.eval();
    const wanted = (await model.forward(x).array()) as number[][];
    expect(() => quantize(model)).toThrow(/is computed; call removeWeightNorm\(\) or removeSpectralNorm\(\) first/);
    const remove = forwardHook(model, () => undefined);
    expect(() => removeSpectralNorm(model)).toThrow(/has hooks, or another norm, that came later/);
    remove();
    const tensors = memory().numTensors;
    removeSpectralNorm(model);
    expect(memory().numTensors).toBeLessThanOrEqual(tensors - 2);
    expect(model.namedParameters().map(([name]) => name)).toEqual(['bias', 'weight']);
    expect(await model.forward(x).array()).toEqual(wanted);
    expect(() => removeSpectralNorm(model)).toThrow(/a weight of spectralNorm/);
    const found = (await quantize(model).forward(x).array()) as number[][];
    for (const [i, value] of wanted[0]!.entries()) expect(found[0]![i]).toBeCloseTo(value, 1);
  });

  it('refuse what is no parameter, and recurrent layers', () => {
    expect(() => weightNorm(new ReLU())).toThrow(/no parameter 'weight'/);
    expect(() => spectralNorm(new LSTM(2, 2), { name: 'weight_hh_l0' })).toThrow(/cannot be replaced/);
    expect(() => removeWeightNorm(new Linear(1, 1))).toThrow(/a weight of weightNorm/);
  });
});

it('names of PyTorch and Keras say what to write here', () => {
  const model = new Sequential(new Linear(2, 1)) as unknown as Record<string, unknown>;
  expect(() => model.state_dict).toThrow("[Module] no 'state_dict' of a Sequential: stateDict()");
  expect(() => model.cuda).toThrow("setEngine('cuda')");
  expect(() => model.predict).toThrow('forward(x), after eval()');
  expect(() => model.fit).toThrow('fit(model, data, options)');
  class Net extends Module {
    readonly children: readonly Linear[];
    readonly summary: string = 'mine';
    constructor() {
      super();
      this.children = [new Linear(2, 3)];
    }
    forward(x: Tensor): Tensor {
      return this.children[0]!.forward(x);
    }
    predict(x: Tensor): Tensor {
      return this.forward(x);
    }
  }
  const net = new Net();
  expect([net.summary, net.predict(ones([1, 2])).shape]).toEqual(['mine', [1, 3]]);
  expect(net.namedParameters().map(([name]) => name)).toEqual(['children.0.weight', 'children.0.bias']);
  expect(() => net.apply(undefined as never)).toThrow('[apply] bad visit: undefined; must be a function');
});
