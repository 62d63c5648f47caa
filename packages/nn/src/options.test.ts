/** Options of layers, optimizers, schedules and training: unknown names are refused, with the one that was meant. */
import { concat, flatten, gather, ones, sum, type Tensor, variance } from '@polygrad/core/functions';
import { createReferenceEngine } from '@polygrad/testing';
import { setEngine } from '@polygrad/core';
import { beforeAll, expect, it } from 'vitest';
import * as nn from './index.ts';

beforeAll(() => setEngine(createReferenceEngine()));

const list = (): Tensor[] => [ones([2], { requiresGrad: true })];
const calls: Readonly<Record<string, [call: (options: never) => unknown, wrong: string, right: string]>> = {
  Linear: [(o) => new nn.Linear(2, 2, o), 'biases', 'bias'],
  Conv2d: [(o) => new nn.Conv2d(1, 1, 3, o), 'pad', 'padding'],
  ConvTranspose2d: [(o) => new nn.ConvTranspose2d(1, 1, 3, o), 'output_padding', 'outputPadding'],
  Embedding: [(o) => new nn.Embedding(2, 2, o), 'padding_idx', 'paddingIdx'],
  BatchNorm2d: [(o) => new nn.BatchNorm2d(2, o), 'epsilon', 'eps'],
  LayerNorm: [(o) => new nn.LayerNorm(2, o), 'elementwise_affine', 'elementwiseAffine'],
  RMSNorm: [(o) => new nn.RMSNorm(2, o), 'epsilon', 'eps'],
  MaxPool2d: [(o) => new nn.MaxPool2d(2, o), 'strides', 'stride'],
  AvgPool2d: [(o) => new nn.AvgPool2d(2, o), 'ceilmode', 'ceilMode'],
  Flatten: [(o) => new nn.Flatten(o), 'starts', 'start'],
  GELU: [(o) => new nn.GELU(o), 'approx', 'approximate'],
  SGD: [(o) => new nn.SGD(list(), o), 'learningRate', 'lr'],
  Adam: [(o) => new nn.Adam(list(), o), 'weight_decay', 'weightDecay'],
  AdamW: [(o) => new nn.AdamW(list(), o), 'beta', 'betas'],
  RMSProp: [(o) => new nn.RMSProp(list(), o), 'learningRate', 'lr'],
  Adagrad: [(o) => new nn.Adagrad(list(), o), 'lrate', 'lr'],
  Adadelta: [(o) => new nn.Adadelta(list(), o), 'Rho', 'rho'],
  Lion: [(o) => new nn.Lion(list(), o), 'Betas', 'betas'],
  stepDecay: [(o) => nn.stepDecay(1, o), 'factors', 'factor'],
  multiStepDecay: [(o) => nn.multiStepDecay(1, o), 'fact', 'factor'],
  cosineDecay: [(o) => nn.cosineDecay(1, o), 'step', 'steps'],
  polynomialDecay: [(o) => nn.polynomialDecay(1, o), 'Power', 'power'],
  oneCycle: [(o) => nn.oneCycle(1, o), 'start_factor', 'startFactor'],
  kaimingUniform: [(o) => nn.kaimingUniform(o), 'modes', 'mode'],
  kaimingNormal: [(o) => nn.kaimingNormal(o), 'nonlinear', 'nonlinearity'],
  earlyStopping: [(o) => nn.earlyStopping(o), 'min_delta', 'minDelta'],
  classWeights: [(o) => nn.classWeights([0, 1], o), 'numClasses', 'classes'],
  rateMonitor: [(o) => nn.rateMonitor({ currentRate: 1 }, o), 'evry', 'every'],
  loadStateDict: [(o) => new nn.Linear(1, 1).loadStateDict({}, o), 'stricts', 'strict'],
};

it.each(Object.entries(calls))('%s', (name, [call, wrong, right]) => {
  expect(() => call({ [wrong]: undefined } as never)).toThrow(nn.NnError);
  expect(() => call({ [wrong]: undefined } as never)).toThrow(
    `[${name}] no option '${wrong}', did you mean '${right}'? Known are `,
  );
  expect(() => call('text' as never)).toThrow(`[${name}] bad options: 'text'; must be an object`);
  expect(() => call(null as never)).toThrow(`[${name}] bad options: null; must be an object`);
});

it('calls that come from PyTorch by habit say what to do', () => {
  const x = ones([2, 3]);
  expect(() => new nn.Sequential([new nn.Linear(2, 2)] as never)).toThrow(
    'bad layer 0: a list; must be a module or a function',
  );
  expect(() => new nn.Sequential(nn.ReLU as never)).toThrow(
    '[Sequential] bad layer 0: a function; must be made with new ReLU()',
  );
  expect(() => new nn.Sequential(new nn.LSTM(3, 2) as never).forward(ones([1, 2, 3]))).toThrow(
    'bad result of layer 0: an object; must be one tensor',
  );
  expect(() => new nn.Linear(4, 2).forward(x)).toThrow('[Linear] x has shape [2, 3]; its last axis must have 4');
  expect(() => gather(x, 1 as never, ones([1, 1]) as never)).toThrow(
    '[gather] bad axis: a Tensor; indices come first and the axis last',
  );
  expect(() => sum(x, { dim: 1 } as never)).toThrow("no option 'dim', did you mean 'axis'?");
  expect(() => new nn.Conv2d(1, 1, 3, { padding_mode: 'zeros' } as never)).toThrow("did you mean 'paddingMode'?");
  expect(() => concat(x as never)).toThrow('bad tensors: a Tensor; must be an array');
  expect(flatten(ones([2, 3, 4]), 1).shape).toEqual([2, 12]);
});

it('options of other libraries say what is written here', () => {
  const refused = (call: (options: never) => unknown, options: object, words: string): void =>
    expect(() => call(options as never)).toThrow(words);
  const x = ones([1, 2, 4]);
  const attention = new nn.MultiHeadAttention(4, 2);
  const ofLayer =
    "no option 'causal'; it is an option of the layer, given when it is made: { causal: true }; known are mask";
  refused((o) => attention.forward(x, x, x, o), { causal: true }, ofLayer);
  refused((o) => attention.forward(x, o), { causal: true }, ofLayer);
  refused((o) => new nn.TransformerBlock(4, 2).forward(x, o), { causal: true }, ofLayer);
  refused((o) => attention.forward(x, o), {}, 'bad key: an object; must be a tensor; options come fourth');
  refused((o) => new nn.MultiHeadAttention(4, 2, o), { isCausal: true }, "did you mean 'causal'? Known are");
  refused(
    (o) => new nn.Linear(2, 2, o),
    { activation: 'relu' },
    'as in new Sequential(layer, new ReLU()); known are bias',
  );
  refused(nn.earlyStopping, { monitor: 'val_loss' }, "no option 'monitor'; it is watch, as in");
  refused(nn.earlyStopping, { restoreBestWeights: true }, "did you mean 'restoreBest'?");
  refused((o) => variance(x, o), { unbiased: true }, "no option 'unbiased'; PyTorch divides by n - 1, which is");
});

it('a layer of another library by its name says so, and keeps no field that nobody reads', () => {
  const layer = new nn.Linear(2, 2);
  for (const name of ['trainable', 'requires_grad', 'requiresGrad'])
    expect(() => Object.assign(layer, { [name]: false })).toThrow(`[Module] no '${name}' of a Linear: freeze()`);
  expect(() => Reflect.get(new nn.Sequential(layer), 'add')).toThrow('new Sequential(...model.layers, layer)');
});

it('fit and evaluate refuse theirs, too', async () => {
  const model = new nn.Linear(2, 2);
  await expect(nn.fit(model, [], { epoch: 1 } as never)).rejects.toThrow(
    "[fit] no option 'epoch', did you mean 'epochs'?",
  );
  for (const name of ['batch_size', 'batchSize'])
    await expect(nn.fit(model, [], { [name]: 32 } as never)).rejects.toThrow(
      `[fit] no option '${name}'; data gives batches, as Dataset.from(rows).batch(32) does`,
    );
  await expect(nn.fit(model, [], { lr: 0.1 } as never)).rejects.toThrow("[fit] no option 'lr'; the optimizer has it");
  await expect(nn.fit(model, [], { loss: 'mse' } as never)).rejects.toThrow(
    "[fit] bad loss: 'mse'; must be a function",
  );
  await expect(nn.fit(model, [], null as never)).rejects.toThrow('[fit] bad options: null; must be an object');
  await expect(nn.evaluate(model, [], { metric: {} } as never)).rejects.toThrow("did you mean 'metrics'?");
  expect(() => new nn.Linear(2, 2, { bias: 'no' as never })).toThrow("[Linear] bad bias: 'no'; must be true or false");
});

it('parameters that are no tensors, and sizes that are neither numbers nor lists, are refused by name', () => {
  for (const wrong of [null, undefined, {}, 1, 'x'])
    expect(() => new nn.Adam([wrong as never])).toThrow('[Adam] bad parameters[0]: ');
  expect(() => new nn.Adam([{ params: [] } as never])).toThrow('must be a tensor; for groups, ParameterGroups');
  for (const wrong of [null, undefined, {}, 'x'])
    expect(() => new nn.Conv2d(1, 2, wrong as never)).toThrow(/^\[Conv2d\]/);
});
