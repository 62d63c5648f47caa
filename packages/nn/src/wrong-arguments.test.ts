/** Layers, optimizers and training with one argument of a wrong kind: they work, or refuse it with an error of this library. */
import { isTensor, keep, ones, PolygradError, setEngine, type Tensor, zeros } from '@polygrad/core';
import { createNullEngine, HostileError, hostileArguments, wrongCalls } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import * as nn from './index.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

type Call = (...args: never[]) => unknown;
type New = new (...args: never[]) => unknown;

type Prepared = [call: Call, args: unknown[]];

let weights: Tensor;
let dead: Tensor;
beforeAll(async () => {
  // What is refused does not hang on values: none is computed, and zeros are read.
  const engine = createNullEngine();
  engine.downloadSync = (_, into) => into.fill(0);
  engine.download = async (_, into) => into.fill(0);
  await setEngine(engine);
  weights = ones([2], { requiresGrad: true });
  dead = ones([2]);
  dead.dispose();
});

const made = (Class: unknown): Call => ((...args: never[]) => new (Class as New)(...args)) as Call;
const forward = (layer: { forward(...args: never[]): unknown }): Call =>
  ((...args: never[]) => layer.forward(...args)) as Call;
const model = (): nn.Module => new nn.Linear(2, 2);
const batch = () => ({ x: ones([3, 2]), y: zeros([3, 2]) });
const sgd = (m: nn.Module): nn.Optimizer => new nn.SGD(m.parameters(), { lr: 0.1 });
const training = (): Prepared => {
  const m = model();
  const options = {
    optimizer: sgd(m),
    loss: nn.mseLoss,
    epochs: 1,
    metrics: { accuracy: nn.mseLoss },
    callbacks: [{}],
  };
  return [nn.fit as Call, [m, [batch()], options]];
};

const calls: Readonly<Record<string, () => Prepared | Promise<Prepared>>> = {
  Linear: () => [made(nn.Linear), [2, 2, {}]],
  Conv2d: () => [made(nn.Conv2d), [1, 1, 3, {}]],
  ConvTranspose2d: () => [made(nn.ConvTranspose2d), [1, 1, [3, 3], {}]],
  Embedding: () => [made(nn.Embedding), [3, 2, {}]],
  Dropout: () => [made(nn.Dropout), [0.5]],
  BatchNorm2d: () => [made(nn.BatchNorm2d), [2, {}]],
  LayerNorm: () => [made(nn.LayerNorm), [[2], {}]],
  RMSNorm: () => [made(nn.RMSNorm), [2, {}]],
  MaxPool2d: () => [made(nn.MaxPool2d), [2, {}]],
  AvgPool2d: () => [made(nn.AvgPool2d), [[2, 2], {}]],
  Flatten: () => [made(nn.Flatten), [{}]],
  Softmax: () => [made(nn.Softmax), [1]],
  GELU: () => [made(nn.GELU), [{}]],
  LeakyReLU: () => [made(nn.LeakyReLU), [0.1]],
  Sequential: () => [made(nn.Sequential), [new nn.ReLU(), (x: Tensor) => x]],
  MultiHeadAttention: () => [made(nn.MultiHeadAttention), [4, 2, {}]],
  TransformerBlock: () => [made(nn.TransformerBlock), [4, 2, {}]],
  LSTM: () => [made(nn.LSTM), [2, 2, {}]],
  GRU: () => [made(nn.GRU), [2, 2, {}]],
  RNN: () => [made(nn.RNN), [2, 2, { nonlinearity: 'relu' }]],
  'Linear forward': () => [forward(new nn.Linear(2, 2)), [ones([1, 2])]],
  'Conv2d forward': () => [forward(new nn.Conv2d(1, 1, 1)), [ones([1, 1, 2, 2])]],
  'BatchNorm2d forward': () => [forward(new nn.BatchNorm2d(1)), [ones([2, 1, 2, 2])]],
  'Embedding forward': () => [forward(new nn.Embedding(3, 2)), [zeros([2], { dtype: 'int32' })]],
  'Sequential forward': () => [forward(new nn.Sequential(new nn.ReLU())), [ones([2])]],
  'MultiHeadAttention forward': () => [
    forward(new nn.MultiHeadAttention(4, 2)),
    [ones([1, 2, 4]), ones([1, 2, 4]), ones([1, 2, 4]), { mask: null }],
  ],
  'TransformerBlock forward': () => [forward(new nn.TransformerBlock(4, 2)), [ones([1, 2, 4]), { mask: null }]],
  'LSTM forward': () => [
    forward(new nn.LSTM(2, 2)),
    [ones([1, 2, 2]), { hidden: zeros([1, 1, 2]), cell: zeros([1, 1, 2]) }],
  ],
  'RNN forward': () => [forward(new nn.RNN(2, 2)), [ones([1, 2, 2]), undefined, { lengths: [1] }]],
  'GRU forward': () => [forward(new nn.GRU(2, 2)), [ones([1, 2, 2]), { hidden: zeros([1, 1, 2]) }]],
  SGD: () => [made(nn.SGD), [[weights], { lr: 0.1 }]],
  Adam: () => [made(nn.Adam), [[weights], { betas: [0.9, 0.99] }]],
  AdamW: () => [made(nn.AdamW), [[weights], {}]],
  RMSProp: () => [made(nn.RMSProp), [[weights], {}]],
  Adagrad: () => [made(nn.Adagrad), [[weights], {}]],
  Adadelta: () => [made(nn.Adadelta), [[weights], {}]],
  Lion: () => [made(nn.Lion), [[weights], { betas: [0.9, 0.99] }]],
  step: () => {
    const optimizer = new nn.SGD([weights], { lr: 0 });
    return [((g: never) => optimizer.step(g)) as Call, [[zeros([2])]]];
  },
  loadState: async () => {
    const optimizer = new nn.Adam([weights]);
    return [((s: never) => optimizer.loadState(s)) as Call, [await optimizer.state()]];
  },
  loadStateDict: () => {
    const m = model();
    return [((s: never, o: never) => m.loadStateDict(s, o)) as Call, [m.stateDict(), { strict: false }]];
  },
  hostState: () => [nn.hostState as Call, [model().stateDict()]],
  snapshot: () => [nn.snapshot as Call, [model().stateDict()]],
  parameter: () => [nn.parameter as Call, [ones([2])]],
  buffer: () => [nn.buffer as Call, [ones([2])]],
  clipGradNorm: () => [nn.clipGradNorm as Call, [[ones([2])], 1]],
  clipGradValue: () => [nn.clipGradValue as Call, [[ones([2])], 1]],
  constantRate: () => [nn.constantRate as Call, [0.1]],
  stepDecay: () => [nn.stepDecay as Call, [0.1, { every: 1 }]],
  multiStepDecay: () => [nn.multiStepDecay as Call, [0.1, { at: [1, 2] }]],
  exponentialDecay: () => [nn.exponentialDecay as Call, [0.1, 0.5]],
  cosineDecay: () => [nn.cosineDecay as Call, [0.1, { steps: 2 }]],
  polynomialDecay: () => [nn.polynomialDecay as Call, [0.1, { steps: 2 }]],
  oneCycle: () => [nn.oneCycle as Call, [0.1, { steps: 2 }]],
  linearWarmup: () => [nn.linearWarmup as Call, [2, (step: number) => step]],
  Conv3d: () => [made(nn.Conv3d), [1, 1, [1, 1, 1], {}]],
  GroupNorm: () => [made(nn.GroupNorm), [1, 2, {}]],
  InstanceNorm1d: () => [made(nn.InstanceNorm1d), [2, {}]],
  LocalResponseNorm: () => [made(nn.LocalResponseNorm), [2, {}]],
  ZeroPad2d: () => [made(nn.ZeroPad2d), [[1, 1, 1, 1]]],
  ConstantPad1d: () => [made(nn.ConstantPad1d), [1, 0.5]],
  MaxUnpool1d: () => [made(nn.MaxUnpool1d), [2, {}]],
  LPPool1d: () => [made(nn.LPPool1d), [2, 2, {}]],
  AdaptiveAvgPool2d: () => [made(nn.AdaptiveAvgPool2d), [2, {}]],
  Upsample: () => [made(nn.Upsample), [{ scaleFactor: 2 }]],
  PReLU: () => [made(nn.PReLU), [{}]],
  Bilinear: () => [made(nn.Bilinear), [1, 1, 1, {}]],
  EmbeddingBag: () => [made(nn.EmbeddingBag), [2, 2, {}]],
  LSTMCell: () => [made(nn.LSTMCell), [2, 2, {}]],
  RNNCell: () => [made(nn.RNNCell), [2, 2, { nonlinearity: 'relu' }]],
  TransformerDecoderLayer: () => [made(nn.TransformerDecoderLayer), [4, 2, { dimFeedforward: 4 }]],
  TransformerEncoder: () => [made(nn.TransformerEncoder), [() => new nn.TransformerBlock(4, 2), 1, null]],
  RotaryEmbedding: () => [made(nn.RotaryEmbedding), [{}]],
  Dropout2d: () => [made(nn.Dropout2d), [0.5]],
  RReLU: () => [made(nn.RReLU), [0.1, 0.2]],
  Unflatten: () => [made(nn.Unflatten), [1, [2, 2]]],
  ModuleList: () => [made(nn.ModuleList), [[new nn.ReLU()]]],
  ModuleDict: () => [made(nn.ModuleDict), [{ a: new nn.ReLU() }]],
  weightNorm: () => [((o: never) => nn.weightNorm(new nn.Linear(2, 2), o)) as Call, [{ axis: 0 }]],
  spectralNorm: () => [((o: never) => nn.spectralNorm(new nn.Linear(2, 2), o)) as Call, [{ axis: 0 }]],
  forwardHook: () => [nn.forwardHook as Call, [model(), () => undefined]],
  forwardPreHook: () => [nn.forwardPreHook as Call, [model(), () => undefined]],
  summary: () => [nn.summary as Call, [model(), [1, 2], {}]],
  forwardWithIndices: () => [nn.forwardWithIndices as Call, [new nn.MaxPool1d(1), ones([1, 1, 2])]],
  AMSGrad: () => [made(nn.AMSGrad), [[weights], {}]],
  NAdam: () => [made(nn.NAdam), [[weights], {}]],
  Rprop: () => [made(nn.Rprop), [[weights], { etas: [0.5, 1.5] }]],
  LAMB: () => [made(nn.LAMB), [[weights], {}]],
  Adafactor: () => [made(nn.Adafactor), [[weights], { eps: [1e-30, 1e-3] }]],
  Muon: () => [made(nn.Muon), [[ones([2, 2])], {}]],
  LBFGS: () => [made(nn.LBFGS), [[weights], {}]],
  ParameterGroups: () => [made(nn.ParameterGroups), [nn.SGD, [{ parameters: [weights] }], {}]],
  layerRates: () => [nn.layerRates as Call, [[model()], { lr: 0.1 }]],
  WeightAverage: () => [made(nn.WeightAverage), [model(), { decay: 0.5 }]],
  GradientAccumulator: () => [made(nn.GradientAccumulator), [2]],
  ReduceOnPlateau: () => [made(nn.ReduceOnPlateau), [sgd(model()), {}]],
  clipGradNorms: () => [nn.clipGradNorms as Call, [[[ones([2])]], 1, { order: 1 }]],
  linearRate: () => [nn.linearRate as Call, [0.1, {}]],
  heldRate: () => [nn.heldRate as Call, [0.1, {}]],
  cyclicRate: () => [nn.cyclicRate as Call, [0.1, 0.2, {}]],
  cosineRestarts: () => [nn.cosineRestarts as Call, [0.1, { steps: 2 }]],
  sequentialRates: () => [nn.sequentialRates as Call, [[(s: number) => s, (s: number) => s], [2]]],
  chainedRates: () => [nn.chainedRates as Call, [0.1, [(s: number) => s]]],
  constantInit: () => [nn.constantInit as Call, [1]],
  normalInit: () => [nn.normalInit as Call, [0, 1]],
  uniformInit: () => [nn.uniformInit as Call, [0, 1]],
  truncNormalInit: () => [nn.truncNormalInit as Call, [0, 1, { low: -1 }]],
  orthogonalInit: () => [nn.orthogonalInit as Call, [1]],
  'orthogonalInit made': () => [nn.orthogonalInit() as Call, [[2, 2], 'float32']],
  kaimingUniform: () => [nn.kaimingUniform as Call, [{}]],
  kaimingNormal: () => [nn.kaimingNormal as Call, [{}]],
  'zerosInit made': () => [nn.zerosInit() as Call, [[2, 2], 'float32']],
  'kaimingUniform made': () => [nn.kaimingUniform() as Call, [[2, 2], 'float32']],
  fansOf: () => [nn.fansOf as Call, [[2, 2]]],
  gainOf: () => [nn.gainOf as Call, ['relu']],
  accuracy: () => [nn.accuracy as Call, [ones([2, 3]), zeros([2], { dtype: 'int32' })]],
  lossAndGrad: () => {
    const m = new nn.Linear(2, 1, { bias: false });
    return [nn.lossAndGrad as Call, [m, () => m.forward(ones([1, 2])).sum()]];
  },
  earlyStopping: () => [nn.earlyStopping as Call, [{}]],
  progress: () => [nn.progress as Call, ['none']],
  rateMonitor: () => [nn.rateMonitor as Call, [{ currentRate: 1 }, { every: 1 }]],
  classWeights: () => [nn.classWeights as Call, [[0, 1, 1], { classes: 2 }]],
  fit: training,
  'fit batch': () => {
    const [, [m, , options]] = training();
    return [((b: never) => nn.fit(m as nn.Module, [b], options as never)) as Call, [batch()]];
  },
  evaluate: () => [nn.evaluate as Call, [model(), [batch()], { loss: nn.mseLoss, metrics: { accuracy: nn.mseLoss } }]],
};

const isOurs = (error: unknown): boolean => error instanceof PolygradError;

it.each(Object.entries(calls))('%s', async (_, prepared) => {
  const [call, args] = await prepared();
  for (const value of args) if (isTensor(value)) keep(value);
  await call(...(args as never[]));
  const complaints = new Set<string>();
  for await (const [text, changed] of wrongCalls(call, args, dead)) {
    try {
      await call(...(changed as never[]));
    } catch (error) {
      if (!isOurs(error)) complaints.add(`${text}: ${(error as Error).message}`);
    }
  }
  expect([...complaints]).toEqual([]);
});

/** What an object of the user's throws when its properties are read, or a class or a metric that is called, is the user's. */
const isTheirs = (error: unknown, text: string): boolean =>
  error instanceof HostileError
    ? text.includes('a proxy') || text === '#2.metrics: an object without a text'
    : /revoked|Class constructor/.test(String((error as Error | null)?.message));

it.each(sampled(Object.entries(calls), 3))('%s with hostile arguments', async (_, prepared) => {
  const [call, args] = await prepared();
  for (const value of args) if (isTensor(value)) keep(value);
  const complaints = new Set<string>();
  for await (const [text, changed] of wrongCalls(call, args, null, hostileArguments())) {
    try {
      await call(...(changed as never[]));
    } catch (error) {
      if (isTheirs(error, text) || (isOurs(error) && (error as Error).message.length < 2000)) continue;
      complaints.add(`${text}: ${String((error as Error).message).slice(0, 300)}`);
    }
  }
  expect([...complaints]).toEqual([]);
});

it('modules that hold lists without an end are walked, or refused', () => {
  const lists = (...held: unknown[]): nn.Module => Object.assign(model(), { held });
  const cyclic: unknown[] = [];
  cyclic.push(cyclic, cyclic);
  let branching: unknown[] = [1];
  for (let i = 0; i < 60; i++) branching = [branching, branching];
  expect(lists(cyclic, new Array(2 ** 32 - 1), new Map([[{ toString: null }, 1]])).parameters().length).toBe(2);
  // Without names each list is looked into once.
  expect(lists(branching).parameters().length).toBe(2);
  expect(() => lists(branching).namedParameters()).toThrow(
    '[Module] too many parts in a module: more than 1048576 lists, objects and values',
  );
  expect(() => new nn.LSTM(1, 1, { numLayers: 2 ** 31 })).toThrow(
    '[LSTM] numLayers is 2147483648; it must be an integer from 1 to 1024',
  );
});

it('names of other libraries for modes are refused, not taken for the other mode', () => {
  expect(() => nn.kaimingUniform({ mode: 'fan_in' as never })).toThrow(
    "[kaimingUniform] bad mode: 'fan_in'; must be 'in' or 'out'",
  );
  expect(() => nn.kaimingNormal({ nonlinearity: 'leaky_relu' as never })).toThrow(
    "[gainOf] bad nonlinearity: 'leaky_relu'",
  );
});
