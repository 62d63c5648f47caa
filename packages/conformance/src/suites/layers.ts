/**
 * Layers of @polygrad/nn, the loss that is there, and optimizers on an engine in float32: results, gradients and running statistics against the interpreter in
 * float64. That the formulas are PyTorch's is a matter of nn's own tests.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import * as nn from '@polygrad/nn';
import { createReferenceEngine } from '@polygrad/testing';
import type { ConformanceCase } from '../case.ts';
import { elementsOf } from '../host.ts';

type Wide = 'float32' | 'float64';
type Input = readonly number[] | { readonly indices: readonly number[]; readonly shape: readonly number[] };
type Results = Tensor | Readonly<Record<string, Tensor>> | readonly Tensor[];

interface LayerCase {
  readonly make: (dtype: Wide) => nn.AnyModule;
  /** Shapes of numbers, or integers. */
  readonly inputs: readonly Input[];
  /** What is called; the module's forward, unless given. */
  readonly call?: (module: never, ...inputs: Tensor[]) => Results;
}

/** Numbers that both dtypes hold, from -0.8 to 0.8; hardly two neighbours are equal. */
const element = (at: number, salt: number): number => (((37 * at + 11 * salt) % 103) - 51) / 64;
const filled = (shape: readonly number[], salt: number, dtype: Wide): Tensor => {
  const size = shape.reduce((all, n) => all * n, 1);
  return pg.tensor(
    Array.from({ length: size }, (_, at) => element(at, salt)),
    { shape, dtype },
  );
};

const layer = (make: LayerCase['make'], ...inputs: Input[]): LayerCase => ({ make, inputs });
const called = <M extends nn.AnyModule>(
  make: (dtype: Wide) => M,
  inputs: readonly Input[],
  call: (module: M, ...inputs: Tensor[]) => Results,
): LayerCase => ({ make, inputs, call: call as NonNullable<LayerCase['call']> });
const indices = (shape: readonly number[], ...list: number[]): Input => ({ indices: list, shape });

const activations: Readonly<Record<string, () => nn.AnyModule>> = {
  CELU: () => new nn.CELU(0.7),
  ELU: () => new nn.ELU(0.7),
  GELU: () => new nn.GELU(),
  GLU: () => new nn.GLU(1),
  HardShrink: () => new nn.HardShrink(0.3),
  HardSigmoid: () => new nn.HardSigmoid(),
  HardSwish: () => new nn.HardSwish(),
  HardTanh: () => new nn.HardTanh(-0.3, 0.5),
  LeakyReLU: () => new nn.LeakyReLU(0.2),
  LogSigmoid: () => new nn.LogSigmoid(),
  LogSoftmax: () => new nn.LogSoftmax(1),
  Mish: () => new nn.Mish(),
  RReLU: () => new nn.RReLU(0.1, 0.5).eval(),
  ReLU: () => new nn.ReLU(),
  ReLU6: () => new nn.ReLU6(),
  SELU: () => new nn.SELU(),
  SiLU: () => new nn.SiLU(),
  Sigmoid: () => new nn.Sigmoid(),
  SoftShrink: () => new nn.SoftShrink(0.3),
  Softmax: () => new nn.Softmax(1),
  Softmax2d: () => new nn.Softmax2d(),
  Softmin: () => new nn.Softmin(1),
  Softplus: () => new nn.Softplus(3),
  Softsign: () => new nn.Softsign(),
  Tanh: () => new nn.Tanh(),
  TanhShrink: () => new nn.TanhShrink(),
  Threshold: () => new nn.Threshold(0.15, -2),
};

const pads: Readonly<Record<string, (rank: number) => nn.AnyModule>> = {
  CircularPad: (rank) => new [nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d][rank - 1]!(1),
  ConstantPad: (rank) => new [nn.ConstantPad1d, nn.ConstantPad2d, nn.ConstantPad3d][rank - 1]!(1, 0.5),
  ReflectionPad: (rank) => new [nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d][rank - 1]!(1),
  ReplicationPad: (rank) => new [nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d][rank - 1]!(1),
  ZeroPad: (rank) => new [nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d][rank - 1]!(1),
};

/** Shapes of images along one axis, two and three. */
const images = [
  [2, 3, 9],
  [2, 3, 6, 5],
  [1, 2, 4, 5, 4],
] as const;
const perRank = (name: string, make: (rank: number) => nn.AnyModule): Record<string, LayerCase> =>
  Object.fromEntries([1, 2, 3].map((rank) => [`${name}${rank}d`, layer(() => make(rank), images[rank - 1]!)]));

/** Layers by name; what stands behind a comma is a variant. */
export const layers: Readonly<Record<string, LayerCase>> = {
  Linear: layer((dtype) => new nn.Linear(6, 5, { dtype }), [3, 4, 6]),
  Bilinear: layer((dtype) => new nn.Bilinear(3, 4, 5, { dtype }), [6, 3], [6, 4]),
  Embedding: layer(
    (dtype) => new nn.Embedding(7, 5, { paddingIdx: 2, scaleGradByFreq: true, dtype }),
    indices([2, 4], 1, 2, 6, 0, 6, 6, 3, 2),
  ),
  EmbeddingBag: called(
    (dtype) => new nn.EmbeddingBag(7, 5, { mode: 'sum', dtype }),
    [indices([5], 1, 6, 6, 0, 3), [5]],
    (bag, at, perSampleWeights) => bag.forward(at!, { offsets: [0, 2, 2], perSampleWeights: perSampleWeights! }),
  ),
  Identity: layer(() => new nn.Identity(), [3, 4]),
  Flatten: layer(() => new nn.Flatten(), [2, 3, 4]),
  Unflatten: layer(() => new nn.Unflatten(1, [2, 3]), [2, 6]),
  Conv1d: layer((dtype) => new nn.Conv1d(4, 6, 3, { stride: 2, padding: 1, groups: 2, dtype }), [2, 4, 11]),
  Conv2d: layer((dtype) => new nn.Conv2d(3, 4, 3, { padding: 2, dilation: 2, dtype }), [2, 3, 7, 6]),
  'Conv2d, circular': layer(
    (dtype) => new nn.Conv2d(2, 3, 3, { padding: 1, paddingMode: 'circular', dtype }),
    [1, 2, 5, 5],
  ),
  Conv3d: layer((dtype) => new nn.Conv3d(2, 3, 2, { stride: [1, 2, 1], dtype }), [1, 2, 4, 5, 4]),
  ConvTranspose1d: layer((dtype) => new nn.ConvTranspose1d(4, 6, 3, { stride: 2, outputPadding: 1, dtype }), [2, 4, 5]),
  ConvTranspose2d: layer((dtype) => new nn.ConvTranspose2d(3, 4, 3, { stride: 2, padding: 1, dtype }), [2, 3, 4, 5]),
  ConvTranspose3d: layer((dtype) => new nn.ConvTranspose3d(2, 3, 2, { stride: 2, dtype }), [1, 2, 2, 3, 2]),
  Unfold: layer(() => new nn.Unfold([2, 3], { padding: 1, stride: 2 }), [1, 2, 4, 5]),
  Fold: layer(() => new nn.Fold([4, 5], [2, 3]), [1, 12, 9]),
  ...perRank('MaxPool', (rank) => new [nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d][rank - 1]!(2, { stride: 1 })),
  ...perRank('AvgPool', (rank) => new [nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d][rank - 1]!(2, { padding: 1 })),
  ...perRank(
    'AdaptiveAvgPool',
    (rank) => new [nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d][rank - 1]!(3),
  ),
  ...perRank(
    'AdaptiveMaxPool',
    (rank) => new [nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d][rank - 1]!(3),
  ),
  MaxUnpool1d: layer(() => new nn.MaxUnpool1d(2), [1, 2, 2], indices([1, 2, 2], 0, 3, 1, 2)),
  MaxUnpool2d: layer(() => new nn.MaxUnpool2d(2), [1, 1, 2, 2], indices([1, 1, 2, 2], 0, 3, 13, 10)),
  MaxUnpool3d: layer(() => new nn.MaxUnpool3d(2), [1, 1, 1, 2, 1], indices([1, 1, 1, 2, 1], 3, 14)),
  LPPool1d: layer(() => new nn.LPPool1d(2, 3), [2, 2, 9]),
  LPPool2d: layer(() => new nn.LPPool2d(2, 2), [1, 2, 4, 6]),
  GlobalAvgPool2d: layer(() => new nn.GlobalAvgPool2d(), [2, 3, 4, 5]),
  Upsample: layer(() => new nn.Upsample({ size: [5, 7], mode: 'bilinear', alignCorners: true }), [1, 2, 3, 4]),
  PixelShuffle: layer(() => new nn.PixelShuffle(2), [1, 8, 2, 3]),
  PixelUnshuffle: layer(() => new nn.PixelUnshuffle(2), [1, 2, 4, 6]),
  ...Object.assign({}, ...Object.entries(pads).map(([name, make]) => perRank(name, make))),
  BatchNorm1d: layer((dtype) => new nn.BatchNorm1d(3, { dtype }), [5, 3]),
  BatchNorm2d: layer((dtype) => new nn.BatchNorm2d(3, { dtype }), [2, 3, 4, 3]),
  BatchNorm3d: layer((dtype) => new nn.BatchNorm3d(2, { momentum: null, dtype }), [2, 2, 2, 3, 2]),
  LayerNorm: layer((dtype) => new nn.LayerNorm([3, 4], { dtype }), [2, 3, 4]),
  RMSNorm: layer((dtype) => new nn.RMSNorm(6, { eps: 1e-5, dtype }), [3, 6]),
  GroupNorm: layer((dtype) => new nn.GroupNorm(2, 4, { dtype }), [2, 4, 3, 2]),
  InstanceNorm1d: layer((dtype) => new nn.InstanceNorm1d(3, { affine: true, dtype }), [2, 3, 6]),
  InstanceNorm2d: layer((dtype) => new nn.InstanceNorm2d(3, { trackRunningStats: true, dtype }), [2, 3, 3, 3]),
  InstanceNorm3d: layer((dtype) => new nn.InstanceNorm3d(2, { dtype }), [1, 2, 2, 3, 3]),
  LocalResponseNorm: layer(() => new nn.LocalResponseNorm(3, { alpha: 0.5 }), [2, 5, 2, 3]),
  'Linear, weightNorm': layer((dtype) => nn.weightNorm(new nn.Linear(4, 3, { dtype })), [5, 4]),
  'Linear, spectralNorm': layer((dtype) => nn.spectralNorm(new nn.Linear(4, 3, { dtype }), { iterations: 2 }), [5, 4]),
  ...Object.fromEntries(Object.entries(activations).map(([name, make]) => [name, layer(make, [2, 4, 3, 2])])),
  PReLU: layer((dtype) => new nn.PReLU({ numParameters: 4, dtype }), [2, 4, 3]),
  Dropout: layer(() => new nn.Dropout().eval(), [3, 4]),
  Dropout1d: layer(() => new nn.Dropout1d().eval(), [2, 3, 4]),
  Dropout2d: layer(() => new nn.Dropout2d().eval(), [2, 3, 2, 2]),
  Dropout3d: layer(() => new nn.Dropout3d().eval(), [1, 2, 2, 2, 2]),
  AlphaDropout: layer(() => new nn.AlphaDropout().eval(), [3, 4]),
  FeatureAlphaDropout: layer(() => new nn.FeatureAlphaDropout().eval(), [2, 3, 4]),
  RNNCell: layer((dtype) => new nn.RNNCell(3, 4, { dtype }), [5, 3], [5, 4]),
  GRUCell: layer((dtype) => new nn.GRUCell(3, 4, { dtype }), [5, 3], [5, 4]),
  LSTMCell: called(
    (dtype) => new nn.LSTMCell(3, 4, { dtype }),
    [
      [5, 3],
      [5, 4],
      [5, 4],
    ],
    (cell, x, hidden, state) => ({ ...cell.forward(x!, { hidden: hidden!, cell: state! }) }),
  ),
  RNN: called(
    (dtype) => new nn.RNN(3, 4, { numLayers: 2, nonlinearity: 'relu', dtype }),
    [[2, 5, 3]],
    (rnn, x) => ({
      ...rnn.forward(x!),
    }),
  ),
  GRU: called(
    (dtype) => new nn.GRU(3, 4, { bidirectional: true, dtype }),
    [[2, 5, 3]],
    (gru, x) => ({
      ...gru.forward(x!),
    }),
  ),
  LSTM: called(
    (dtype) => new nn.LSTM(3, 5, { numLayers: 2, bidirectional: true, projSize: 2, dtype }),
    [[3, 6, 3]],
    (lstm, x) => ({ ...lstm.forward(x!, undefined, { lengths: [6, 2, 0] }) }),
  ),
  'LSTM, a long sequence': called(
    (dtype) => new nn.LSTM(2, 3, { dtype }),
    [[2, 80, 2]],
    (lstm, x) => ({
      ...lstm.forward(x!),
    }),
  ),
  MultiHeadAttention: called(
    (dtype) => new nn.MultiHeadAttention(8, 2, { kdim: 5, vdim: 6, addBiasKv: true, dtype }),
    [
      [2, 4, 8],
      [2, 3, 5],
      [2, 3, 6],
    ],
    (attention, q, k, v) => ({ ...attention.forwardWithWeights(q!, k!, v!) }),
  ),
  'MultiHeadAttention, causal': layer((dtype) => new nn.MultiHeadAttention(8, 2, { causal: true, dtype }), [2, 5, 8]),
  TransformerBlock: layer((dtype) => new nn.TransformerBlock(8, 2, { dtype }), [2, 4, 8]),
  TransformerEncoderLayer: layer(
    (dtype) => new nn.TransformerEncoderLayer(8, 2, { dimFeedforward: 12, dropout: 0, dtype }),
    [2, 4, 8],
  ),
  TransformerDecoderLayer: layer(
    (dtype) => new nn.TransformerDecoderLayer(8, 2, { dimFeedforward: 12, dropout: 0, causal: true, dtype }),
    [2, 4, 8],
    [2, 3, 8],
  ),
  TransformerEncoder: layer(
    (dtype) =>
      new nn.TransformerEncoder(
        () => new nn.TransformerEncoderLayer(8, 2, { dimFeedforward: 12, dropout: 0, dtype }),
        2,
      ),
    [2, 4, 8],
  ),
  TransformerDecoder: layer(
    (dtype) =>
      new nn.TransformerDecoder(
        () => new nn.TransformerDecoderLayer(8, 2, { dimFeedforward: 12, dropout: 0, dtype }),
        2,
      ),
    [2, 4, 8],
    [2, 3, 8],
  ),
  Transformer: layer(
    (dtype) =>
      new nn.Transformer({
        dModel: 8,
        nhead: 2,
        numEncoderLayers: 1,
        numDecoderLayers: 1,
        dimFeedforward: 12,
        dropout: 0,
        dtype,
      }),
    [2, 4, 8],
    [2, 3, 8],
  ),
  RotaryEmbedding: layer(() => new nn.RotaryEmbedding(), [2, 2, 4, 6]),
  ctcLoss: called(
    () => new nn.Identity(),
    [[6, 2, 4]],
    (_, x) =>
      nn.ctcLoss(
        pg.logSoftmax(x!),
        pg.tensor(
          [
            [1, 2, 2],
            [3, 1, 0],
          ],
          { dtype: 'int32' },
        ),
        [6, 5],
        [3, 2],
      ),
  ),
};

const optimizers: Readonly<Record<string, (parameters: readonly Tensor[]) => nn.Optimizer>> = {
  SGD: (p) => new nn.SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.1 }),
  Adam: (p) => new nn.Adam(p, { lr: 0.05, weightDecay: 0.1, amsgrad: true }),
  AdamW: (p) => new nn.AdamW(p, { lr: 0.05 }),
  AMSGrad: (p) => new nn.AMSGrad(p, { lr: 0.05 }),
  Adamax: (p) => new nn.Adamax(p, { lr: 0.05 }),
  NAdam: (p) => new nn.NAdam(p, { lr: 0.05 }),
  RAdam: (p) => new nn.RAdam(p, { lr: 0.05 }),
  RMSProp: (p) => new nn.RMSProp(p, { lr: 0.05, momentum: 0.5, centered: true }),
  Adagrad: (p) => new nn.Adagrad(p, { lr: 0.1, lrDecay: 0.2 }),
  Adadelta: (p) => new nn.Adadelta(p, { lr: 0.5 }),
  Rprop: (p) => new nn.Rprop(p),
  Lion: (p) => new nn.Lion(p, { lr: 0.01 }),
  LAMB: (p) => new nn.LAMB(p, { lr: 0.05, weightDecay: 0.1 }),
  Adafactor: (p) => new nn.Adafactor(p),
  Muon: (p) => new nn.Muon([p[0]!], { lr: 0.02 }),
  ParameterGroups: (p) =>
    new nn.ParameterGroups(nn.Adam, [{ parameters: [p[0]!], lr: 0.1 }, { parameters: [p[1]!] }], { lr: 0.05 }),
};

const listOf = (results: Results): readonly Tensor[] =>
  pg.isTensor(results) ? [results] : Object.values(results as Readonly<Record<string, Tensor>>);

const numbersOf = async (t: Tensor): Promise<number[]> => Array.from(await elementsOf(t), Number);

/** Everything that a layer gives and changes, by name, in host memory. */
async function measure({ make, inputs, call }: LayerCase, dtype: Wide): Promise<Map<string, number[]>> {
  const module = make(dtype);
  const given = inputs.map((input, i) => {
    if ('indices' in input) return pg.tensor(input.indices, { shape: input.shape, dtype: 'int32' });
    const x = filled(input, 3 * i + 1, dtype);
    x.requiresGrad = true;
    return x;
  });
  for (const [i, value] of Object.values(module.stateDict()).entries())
    if (value.dtype === dtype) {
      const own = filled(value.shape, 5 * i + 2, dtype);
      // Factors and variances are near 1; matrices have both signs, or rows of a product would add up to far more than they differ by.
      pg.scope(() => pg.noGrad(() => value.assign(own.mul(0.5).add(value.ndim > 1 ? 0 : 0.7))));
      own.dispose();
    }
  const outputs = pg.scope(() => {
    const results =
      call === undefined ? (module.forward as (...x: Tensor[]) => Results)(...given) : call(module as never, ...given);
    const list = listOf(results);
    const loss = list
      .filter((t) => t.dtype === dtype)
      .map((t, i) => pg.sum(t.mul(filled(t.shape, 7 * i + 4, dtype))))
      .reduce((a, b) => a.add(b));
    loss.backward();
    return list.map((t) => pg.keep(pg.detach(t)));
  });
  const found = new Map<string, number[]>();
  const named: (readonly [string, Tensor | null])[] = [
    ...outputs.map((t, i) => [`result ${i}`, t] as const),
    ...given.map((t, i) => [`gradient of input ${i}`, t.dtype === dtype ? t.grad : null] as const),
    ...module.namedParameters().map(([name, p]) => [`gradient of ${name}`, p.grad] as const),
    ...module.namedBuffers().map(([name, b]) => [name, b] as const),
  ];
  for (const [name, t] of named) if (t !== null) found.set(name, await numbersOf(t));
  for (const p of [...module.parameters(), ...given]) if (p.requiresGrad) p.grad = null;
  pg.dispose([...outputs, ...given]);
  module.dispose();
  return found;
}

/** Parameters after 25 steps, and their state. */
async function steps(
  make: (parameters: readonly Tensor[]) => nn.Optimizer,
  dtype: Wide,
): Promise<Map<string, number[]>> {
  const ps = [nn.parameter(filled([3, 4], 1, dtype)), nn.parameter(filled([4, 2], 2, dtype))];
  const optimizer = make(ps);
  const own = optimizer.parameters;
  for (let t = 0; t < 25; t++)
    pg.scope(() =>
      optimizer.step(own.map((p, i) => pg.noGrad(() => filled(p.shape, 3 + 2 * t + i, dtype).add(p.mul(0.3))))),
    );
  const found = new Map<string, number[]>();
  for (const [i, p] of own.entries()) found.set(`parameter ${i}`, await numbersOf(p));
  optimizer.dispose();
  pg.dispose(ps);
  return found;
}

/** Optimizers that ask for losses: three calls on a sum of squares with weights, from 1 to 3, about given numbers. */
const searches: Readonly<Record<string, nn.LBFGSOptions>> = {
  LBFGS: { lr: 0.3, maxIter: 3, historySize: 4 },
  'LBFGS with a line search': { maxIter: 6, lineSearchFn: 'strongWolfe' },
};

/** Losses of the calls, and parameters after them. */
async function searched(options: nn.LBFGSOptions, dtype: Wide): Promise<Map<string, number[]>> {
  const ps = [nn.parameter(filled([3, 4], 1, dtype)), nn.parameter(filled([4, 2], 2, dtype))];
  const lossOf = (all: readonly Tensor[]): Tensor =>
    all
      .map((p, i) => {
        const away = p.sub(filled(p.shape, 9 + i, dtype));
        const weight = filled(p.shape, 5 + i, dtype)
          .abs()
          .add(1);
        return pg.sum(away.mul(away).mul(weight));
      })
      .reduce((a, b) => a.add(b));
  const optimizer = new nn.LBFGS(ps, options);
  const losses: number[] = [];
  for (let call = 0; call < 3; call++)
    losses.push(
      await optimizer.step(() =>
        pg.scope(() => {
          const [value, grads] = pg.valueAndGrad(lossOf)(ps);
          return { value, grads };
        }),
      ),
    );
  const found = new Map<string, number[]>([['losses', losses]]);
  for (const [i, p] of ps.entries()) found.set(`parameter ${i}`, await numbersOf(p));
  optimizer.dispose();
  pg.dispose(ps);
  return found;
}

let reference: ReturnType<typeof createReferenceEngine> | null = null;

/** The same in float64 by the interpreter. */
async function apart<T>(work: () => Promise<T>): Promise<T> {
  const engine = pg.getEngine();
  await pg.setEngine((reference ??= createReferenceEngine()));
  try {
    return await work();
  } finally {
    await pg.setEngine(engine);
  }
}

/** Sums of up to some hundred products, norms and exponentials one behind the other: each float32 number is off by a few hundred roundings at most. */
const bound = 256 * 2 ** -24;

function compare(found: ReadonlyMap<string, number[]>, wanted: ReadonlyMap<string, number[]>): void {
  if ([...found.keys()].join() !== [...wanted.keys()].join())
    throw new Error(`there are ${[...found.keys()].join(', ')} where ${[...wanted.keys()].join(', ')} are expected`);
  for (const [name, values] of wanted) {
    const scale = Math.max(1, ...values.map(Math.abs));
    for (const [i, value] of values.entries())
      if (!(Math.abs(found.get(name)![i]! - value) <= bound * scale))
        throw new Error(`element ${i} of ${name} is ${found.get(name)![i]} where ${value} is expected`);
  }
}

export function layerCases(): ConformanceCase[] {
  const one = (name: string, measured: (dtype: Wide) => Promise<Map<string, number[]>>): ConformanceCase => ({
    name,
    run: async () => {
      compare(await measured('float32'), await apart(() => measured('float64')));
      return undefined;
    },
  });
  return [
    ...Object.entries(layers).map(([name, given]) => one(`layers / ${name}`, (dtype) => measure(given, dtype))),
    ...Object.entries(optimizers).map(([name, make]) => one(`optimizers / ${name}`, (dtype) => steps(make, dtype))),
    ...Object.entries(searches).map(([name, given]) => one(`optimizers / ${name}`, (dtype) => searched(given, dtype))),
  ];
}

/** Names of the optimizers of the suite. */
export const optimizerNames: readonly string[] = Object.keys(optimizers);
