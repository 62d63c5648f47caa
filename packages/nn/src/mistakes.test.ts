/** What people who write a training get wrong: each mistake is refused where it is made, with what to do instead. */
import { noGrad, ones, randn, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import * as nn from './index.ts';

let batch: nn.TrainBatch & { readonly x: Tensor };
beforeAll(async () => {
  await setEngine(createReferenceEngine());
  batch = { x: ones([2, 2]), y: tensor([0, 1], { dtype: 'int32' }) };
});

/** Calls something as a program in JavaScript could. */
const loose = (f: unknown, ...args: unknown[]): unknown => (f as (...args: unknown[]) => unknown)(...args);

/** Trains a small model with options, or batches, that are not right. */
function trained(wrong: object, data: unknown = [batch], model: nn.Module = new nn.Linear(2, 2)): Promise<nn.History> {
  const optimizer = new nn.SGD(model.parameters(), { lr: 0.1 });
  const options = { optimizer, loss: nn.crossEntropy, epochs: 1, ...wrong };
  return loose(nn.fit, model, data, options) as Promise<nn.History>;
}

class Through extends nn.Module {
  readonly inner = new nn.Linear(2, 2);
  readonly after: (made: () => Tensor) => Tensor;
  constructor(after: (made: () => Tensor) => Tensor) {
    super();
    this.after = after;
  }
  forward(x: Tensor): Tensor {
    return this.after(() => this.inner.forward(x));
  }
}

describe('a loss without a way back to the parameters', () => {
  const lost = /\[lossAndGrad\] no gradient: the value depends on none of 2 tensors; .* noGrad, detach or argMax/;

  it('is refused by fit', async () => {
    await expect(trained({}, [batch], new Through(noGrad))).rejects.toThrow(lost);
    await expect(trained({}, [batch], new Through((made) => made().detach()))).rejects.toThrow(lost);
  });

  it('is refused by lossAndGrad, of another model too', () => {
    const [model, other] = [new nn.Linear(2, 2), new nn.Linear(2, 2)];
    expect(() => nn.lossAndGrad(model, () => other.forward(batch.x).sum())).toThrow(lost);
    const count = () => model.forward(batch.x).argMax(1).cast('float32').sum();
    expect(() => nn.lossAndGrad(model, count)).toThrow(lost);
    // One of several parameters is enough.
    const { grads } = nn.lossAndGrad(model, () => model.bias!.sum());
    expect(grads.map((grad) => grad?.shape)).toEqual([[2, 2], [2]]);
  });

  it('is refused in the name of lossAndGrad where it is no loss', () => {
    const model = new nn.Linear(2, 2);
    expect(() => loose(nn.lossAndGrad, model, async () => ones([]))).toThrow(
      /^\[lossAndGrad\] the function returned a promise: lossAndGrad ends/,
    );
    expect(() => loose(nn.lossAndGrad, model, () => 1)).toThrow(/^\[lossAndGrad\] the function returned 1/);
  });
});

describe('fit', () => {
  it('says of rows that they are no batches', async () => {
    const rows = [{ x: [1, 2], y: 0 }];
    await expect(trained({}, rows)).rejects.toThrow(/bad x of a batch: a list.*, as Dataset.batch makes/);
  });

  it('says of pairs how batches are written', async () => {
    await expect(trained({}, [[batch.x, batch.y]])).rejects.toThrow(/bad batch: a list; must be an object \{ x, y \}/);
  });

  it('says of an iterator that it is used up', async () => {
    function* once() {
      yield batch;
    }
    await expect(trained({ epochs: 2 }, once())).rejects.toThrow(/there are no batches in epoch 2; .*iterators end/);
  });

  it('refuses metrics and callbacks in other forms', async () => {
    await expect(trained({ metrics: [nn.accuracy] })).rejects.toThrow(/bad metrics: a list.*such as \{ accuracy \}/);
    await expect(trained({ callbacks: [nn.earlyStopping] })).rejects.toThrow(
      /bad callback: a function; must be an object/,
    );
    const misspelt = { onEpochEnds: () => undefined };
    await expect(trained({ callbacks: [misspelt] })).rejects.toThrow(/nothing calls 'onEpochEnds' of a callback/);
    await expect(trained({ callbacks: [{ on_epoch_end: () => undefined }] })).rejects.toThrow(
      /nothing calls 'on_epoch_end' of a callback/,
    );
    // What is called otherwise is the callback's own.
    await trained({ callbacks: [{ once: 1, onEpochEnd: () => undefined }] });
    const watch = (report: { valLoss?: number }) => report.valLoss;
    await expect(trained({ callbacks: [loose(nn.earlyStopping, { watch })] })).rejects.toThrow(
      /bad result of watch: undefined; must be a number/,
    );
  });

  it('looks for the reason of a NaN in the data at first, and in the learning rate later', async () => {
    const known = { x: ones([1, 2]), y: tensor([7], { dtype: 'int32' }) };
    await expect(trained({}, [known])).rejects.toThrow(/class number out of range: 7 for 2 classes/);
    const beyond = { x: ones([1, 2]), y: known.y.add(1) };
    await expect(trained({}, [beyond])).rejects.toThrow(/became NaN \(epoch 1.*wrong class numbers in the batch/);
    const line = [{ x: ones([1, 2]), y: ones([1, 2]) }];
    const model = new nn.Linear(2, 2);
    const optimizer = new nn.SGD(model.parameters(), { lr: 1e30 });
    const options = { optimizer, loss: nn.mseLoss, epochs: 4 };
    await expect(trained(options, line, model)).rejects.toThrow(/epoch 2.*lower the learning rate/);
  });
});

it('accuracy asks for class numbers', () => {
  expect(() => nn.accuracy(ones([2, 2]), ones([2, 2]))).toThrow(
    /\[accuracy\] targets are Tensor float32 \[2, 2\]; give class numbers, cast\(\) or argMax\(\)/,
  );
});

it('accuracy asks for numbers of all classes', () => {
  const labels = tensor([0, 1], { dtype: 'int32' });
  expect(() => nn.accuracy(labels, labels)).toThrow(
    /\[accuracy\] predictions are Tensor int32 \[2\]; give \[rows, classes\]$/,
  );
});

it('saveModel and compile of other libraries', async () => {
  const model = new nn.Linear(2, 2);
  await expect(loose(nn.saveModel, model, 'here')).rejects.toThrow(/bad path: a Linear; .*the model comes second/);
  expect(() => Reflect.get(model, 'compile')).toThrow(/no 'compile' of a Linear: .*or fit/);
});

it('batch norm asks for the axes of its name', () => {
  expect(() => new nn.BatchNorm2d(3).forward(ones([4, 3]))).toThrow(/x has shape \[4, 3\]; it must be \[N, C, H, W\]/);
  expect(() => new nn.BatchNorm1d(2).forward(ones([1, 2, 3, 3]))).toThrow(/must be \[N, C\] or \[N, C, L\]/);
  expect(() => new nn.BatchNorm3d(2).forward(ones([1, 2, 3, 3]))).toThrow(/must be \[N, C, D, H, W\]/);
  expect(new nn.BatchNorm1d(3).forward(ones([4, 3])).shape).toEqual([4, 3]);
});

describe('optimizers', () => {
  const optimizer = () => new nn.SGD(new nn.Linear(2, 2).parameters(), { lr: 0.1 });

  it('say where the learning rate is, also to whom sets another', () => {
    const sgd = optimizer();
    for (const name of ['lr', 'learning_rate', 'param_groups']) {
      expect(() => Reflect.get(sgd, name), name).toThrow(/of SGD: learningRate, a number or a schedule/);
      expect(() => Reflect.set(sgd, name, 0.5), name).toThrow(`[Optimizer] no '${name}' of SGD`);
    }
    sgd.learningRate = 0.5;
    expect(sgd.currentRate).toBe(0.5);
    expect(() => Reflect.get(sgd, 'zero_grad')).toThrow(/zeroGrad\(\)/);
  });

  it('say what gradients are', () => {
    const sgd = optimizer();
    expect(() => loose(sgd.step.bind(sgd), ones([]))).toThrow(/bad gradients: a Tensor.*left out after backward\(\)/);
    expect(() => loose(nn.clipGradNorm, new nn.Linear(2, 2), 1)).toThrow(
      /bad gradients: a Linear; must be a list, such as model.parameters\(\)/,
    );
  });

  it('say what a model without parameters may lack', () => {
    class Hidden extends nn.Module {
      readonly #layer = new nn.Linear(2, 2);
      readonly scale = randn([2], { requiresGrad: true });
      forward(x: Tensor): Tensor {
        return this.#layer.forward(x).mul(this.scale);
      }
    }
    expect(() => new nn.SGD(new Hidden().parameters(), { lr: 0.1 })).toThrow(
      /no parameters; .*with layers and parameter\(\) in public fields/,
    );
  });
});

describe('a parameter whose place a plain tensor has taken', () => {
  const replaced = (): nn.Linear => {
    const layer = new nn.Linear(2, 1);
    layer.parameters();
    (layer as { weight: Tensor }).weight = tensor([[1, 2]]);
    return layer;
  };
  const message =
    /^\[Module\] 'weight' was a parameter and is a plain tensor; use weight\.assign\(\), or parameter\(\) and a new optimizer$/;

  it('is refused where gradients, parameters and states are asked for, inside of other modules too', () => {
    const layer = replaced();
    expect(() => nn.lossAndGrad(layer, () => layer.forward(ones([1, 2])).sum())).toThrow(message);
    expect(() => layer.parameters()).toThrow(message);
    expect(() => layer.stateDict()).toThrow(message);
    expect(() => layer.zeroGrad()).toThrow(message);
    expect(() => new nn.Sequential(replaced()).namedParameters()).toThrow(message);
    layer.dispose();
  });

  it('may be taken by a parameter, by nothing, and by a tensor that is a buffer', () => {
    const layer = new nn.Linear(2, 1) as nn.Module & { weight: Tensor; bias: Tensor | null };
    layer.parameters();
    layer.weight = nn.parameter(ones([1, 2]));
    layer.bias = null;
    expect(layer.parameters().map((p) => p === layer.weight)).toEqual([true]);
    layer.weight = nn.buffer(ones([1, 2]));
    expect(layer.parameters()).toEqual([]);
    // Never a parameter.
    (layer as unknown as { mask: Tensor }).mask = ones([1]);
    expect(layer.parameters()).toEqual([]);
    layer.dispose();
  });
});

it('what is no tensor is refused in the name of the function, and lists of layers with how they are given', () => {
  expect(() => loose(nn.parameter, 3)).toThrow('[parameter] bad value: 3; must be a tensor');
  expect(() => loose(nn.buffer, [1])).toThrow('[buffer] bad value: a list; must be a tensor');
  expect(() => new nn.Sequential([new nn.ReLU()] as never)).toThrow(
    '[Sequential] bad layer 0: a list; must be a module or a function, and those of a list come as ...list',
  );
});
