/**
 * Everything of nn where core came through its entry without methods, as in bundles that leave operations out: each layer trains, each
 * optimizer steps, `fit` and `evaluate` run.
 */
import { readFileSync } from 'node:fs';
import { crossEntropy, isTensor, mseLoss, ones, seed, setEngine, type Tensor, tensor } from '@polygrad/core/functions';
import { decodeSafetensors } from '@polygrad/data';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import * as nn from './index.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
  seed(3);
});

/** The sequence that a recurrent layer makes. */
class Output extends nn.Module<[x: Tensor], Tensor> {
  readonly inner: nn.LSTM | nn.GRU | nn.RNN;

  constructor(inner: nn.LSTM | nn.GRU | nn.RNN) {
    super();
    this.inner = inner;
  }

  forward(x: Tensor): Tensor {
    return this.inner.forward(x).output;
  }
}

/** What containers hold, one after the other. */
class Chain extends nn.Module {
  readonly inner: nn.ModuleList<nn.Linear> | nn.ModuleDict<nn.Linear>;

  constructor(inner: nn.ModuleList<nn.Linear> | nn.ModuleDict<nn.Linear>) {
    super();
    this.inner = inner;
  }

  forward(x: Tensor): Tensor {
    return [...this.inner].reduce((t, entry) => ('forward' in entry ? entry : entry[1]).forward(t), x);
  }
}

/** Layers that torch-layers.test.ts compares with PyTorch, without methods too. */
const compared = Object.keys(
  decodeSafetensors(readFileSync(new URL('./layers/fixtures/layers.safetensors', import.meta.url))).metadata!,
).map((name) => /^\w*/.exec(name)![0]);

const image = [2, 4, 6, 6];
const layers: Readonly<
  Record<string, () => [layer: nn.Module<[x: Tensor], Tensor>, input: readonly number[] | Tensor]>
> = {
  Linear: () => [new nn.Linear(4, 3), [2, 4]],
  QuantizedLinear: () => [new nn.QuantizedLinear(4, 3), [2, 4]],
  Conv2d: () => [new nn.Conv2d(4, 2, 3, { padding: 1 }), image],
  ConvTranspose2d: () => [new nn.ConvTranspose2d(4, 2, 3, { stride: 2 }), image],
  BatchNorm2d: () => [new nn.BatchNorm2d(4), image],
  LayerNorm: () => [new nn.LayerNorm(6), image],
  RMSNorm: () => [new nn.RMSNorm(6), image],
  Embedding: () => [new nn.Embedding(5, 3), tensor([0, 4, 2], { dtype: 'int32' })],
  MultiHeadAttention: () => [new nn.MultiHeadAttention(4, 2), [2, 3, 4]],
  TransformerBlock: () => [new nn.TransformerBlock(4, 2, { dropout: 0.1 }), [2, 3, 4]],
  LSTM: () => [new Output(new nn.LSTM(4, 2, { numLayers: 2, dropout: 0.1 })), [2, 3, 4]],
  GRU: () => [new Output(new nn.GRU(4, 2, { bidirectional: true })), [2, 3, 4]],
  RNN: () => [new Output(new nn.RNN(4, 2, { nonlinearity: 'relu' })), [2, 3, 4]],
  Dropout: () => [new nn.Dropout(0.5), image],
  MaxPool2d: () => [new nn.MaxPool2d(2), image],
  AvgPool2d: () => [new nn.AvgPool2d(2), image],
  GlobalAvgPool2d: () => [new nn.GlobalAvgPool2d(), image],
  Flatten: () => [new nn.Flatten(), image],
  Unflatten: () => [new nn.Unflatten(1, [2, 2]), image],
  Identity: () => [new nn.Identity(), image],
  Dropout1d: () => [new nn.Dropout1d(), [2, 4, 3]],
  Dropout2d: () => [new nn.Dropout2d(), image],
  Dropout3d: () => [new nn.Dropout3d(), [2, 4, 3, 2, 2]],
  AlphaDropout: () => [new nn.AlphaDropout(), image],
  FeatureAlphaDropout: () => [new nn.FeatureAlphaDropout(), image],
  RReLU: () => [new nn.RReLU(), image],
  RotaryEmbedding: () => [new nn.RotaryEmbedding(), [2, 3, 4]],
  ZeroPad1d: () => [new nn.ZeroPad1d(1), [2, 4, 3]],
  ZeroPad3d: () => [new nn.ZeroPad3d(1), [2, 4, 3, 2, 2]],
  CircularPad1d: () => [new nn.CircularPad1d(1), [2, 4, 3]],
  CircularPad2d: () => [new nn.CircularPad2d(1), image],
  CircularPad3d: () => [new nn.CircularPad3d(1), [2, 4, 3, 2, 2]],
  ModuleList: () => [new Chain(new nn.ModuleList([new nn.Linear(4, 3)])), [2, 4]],
  ModuleDict: () => [new Chain(new nn.ModuleDict({ one: new nn.Linear(4, 3) })), [2, 4]],
  ELU: () => [new nn.ELU(), [3]],
  GELU: () => [new nn.GELU({ approximate: 'tanh' }), [3]],
  HardSwish: () => [new nn.HardSwish(), [3]],
  LeakyReLU: () => [new nn.LeakyReLU(), [3]],
  LogSoftmax: () => [new nn.LogSoftmax(), [3]],
  Mish: () => [new nn.Mish(), [3]],
  ReLU: () => [new nn.ReLU(), [3]],
  ReLU6: () => [new nn.ReLU6(), [3]],
  SELU: () => [new nn.SELU(), [3]],
  Sigmoid: () => [new nn.Sigmoid(), [3]],
  SiLU: () => [new nn.SiLU(), [3]],
  Softmax: () => [new nn.Softmax(), [3]],
  Softplus: () => [new nn.Softplus(), [3]],
  Tanh: () => [new nn.Tanh(), [3]],
  Sequential: () => [new nn.Sequential(new nn.Linear(4, 4), new nn.GELU(), new nn.Linear(4, 1)), [2, 4]],
};
const optimizers: Readonly<Record<string, (parameters: Iterable<Tensor>) => nn.Optimizer>> = {
  SGD: (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.1 }),
  Adam: (p) => new nn.Adam(p, { weightDecay: 0.1 }),
  AdamW: (p) => new nn.AdamW(p),
  RMSProp: (p) => new nn.RMSProp(p, { centered: true, momentum: 0.9, weightDecay: 0.1 }),
  Adagrad: (p) => new nn.Adagrad(p, { weightDecay: 0.1 }),
  Adadelta: (p) => new nn.Adadelta(p, { weightDecay: 0.1 }),
  Lion: (p) => new nn.Lion(p, { weightDecay: 0.1 }),
  AMSGrad: (p) => new nn.AMSGrad(p),
  Adamax: (p) => new nn.Adamax(p),
  NAdam: (p) => new nn.NAdam(p),
  RAdam: (p) => new nn.RAdam(p),
  Rprop: (p) => new nn.Rprop(p),
  LAMB: (p) => new nn.LAMB(p),
  Adafactor: (p) => new nn.Adafactor(p),
  Muon: (p) => new nn.Muon([...p].slice(0, 1)),
  ParameterGroups: (p) => new nn.ParameterGroups(nn.Adam, [{ parameters: p }]),
};

/** Classes that the entry exports and that derive from `base`. */
const derived = (base: object): string[] =>
  Object.entries(nn)
    .filter(([, value]) => typeof value === 'function' && Object.prototype.isPrototypeOf.call(base, value))
    .map(([name]) => name)
    .sort();

it('has no methods, and knows every layer and optimizer', () => {
  expect(() => ones([1]).exp()).toThrow(/import '@polygrad\/core'/);
  const known = new Set([...Object.keys(layers), ...compared.filter((name) => name in nn && /^[A-Z]/.test(name))]);
  expect([...known].sort()).toEqual(derived(nn.Module));
  expect(Object.keys(optimizers).sort()).toEqual(derived(nn.Optimizer));
});

it.each(Object.keys(layers))('%s trains', async (name) => {
  const [layer, input] = layers[name]!();
  const x = isTensor(input) ? input : ones(input);
  const loss = (): Tensor => {
    const y = layer.forward(x);
    return mseLoss(y, ones(y.shape));
  };
  if ([...layer.parameters()].length === 0) return expect(await loss().item()).not.toBeNaN();
  const { value, grads } = nn.lossAndGrad(layer, loss);
  nn.clipGradNorm(Object.values(grads), 1);
  nn.clipGradValue(Object.values(grads), 0.5);
  expect(await value.item()).not.toBeNaN();
  expect(Object.keys(nn.snapshot(layer.stateDict()))).toEqual(Object.keys(layer.stateDict()));
});

it.each(Object.keys(optimizers))('%s steps', async (name) => {
  const layer = new nn.Linear(3, 1);
  const optimizer = optimizers[name]!(layer.parameters());
  const losses: number[] = [];
  for (let step = 0; step < 3; step++) {
    const { value, grads } = nn.lossAndGrad(layer, () => mseLoss(layer.forward(ones([2, 3])), ones([2, 1])));
    optimizer.step(grads.slice(0, optimizer.parameters.length));
    losses.push(await value.item());
  }
  expect(losses[2]).not.toBe(losses[0]);
});

it('fits and evaluates', async () => {
  const model = new nn.Linear(2, 3);
  const data = [{ x: ones([4, 2]), y: tensor([0, 1, 2, 0], { dtype: 'int32' }) }];
  const optimizer = new nn.Adam(model.parameters());
  await nn.fit(model, data, { optimizer, loss: crossEntropy, epochs: 2, metrics: { accuracy: nn.accuracy } });
  const found = await nn.evaluate(model, data, { loss: crossEntropy, metrics: { accuracy: nn.accuracy } });
  expect(Object.values(found).every((value) => value !== undefined)).toBe(true);
});
