/**
 * Values, gradients, names of parameters and buffers of layers, as PyTorch 1.13.1 has them (tooling/goldens/layers.py). Core comes through its entry without
 * methods, as in functions-only.test.ts.
 */
import { readFileSync } from 'node:fs';
import {
  cast,
  concat,
  detach,
  flatten,
  logSoftmax,
  setEngine,
  sum,
  type Tensor,
  tensor,
} from '@polygrad/core/functions';
import { decodeSafetensors } from '@polygrad/data';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, expect, it } from 'vitest';
import * as nn from '../index.ts';

const file = decodeSafetensors(readFileSync(new URL('./fixtures/layers.safetensors', import.meta.url)));
const dtype = 'float64';

/** Values by the formula of layers.py. */
function value(k: number, shape: readonly number[], requiresGrad: boolean = false): Tensor {
  const size = shape.reduce((product, n) => product * n, 1);
  const data = Float64Array.from({ length: size }, (_, j) => (((37 * j + 11 * k) % 101) - 50) / 60);
  return tensor(data, { shape, dtype, requiresGrad });
}

const int = (data: readonly number[], shape: readonly number[] = [data.length]): Tensor =>
  tensor(Int32Array.from(data), { shape, dtype: 'int32' });

type Call = (...inputs: Tensor[]) => Tensor | readonly Tensor[];
type Case = readonly [layer: nn.AnyModule, inputs: readonly (readonly number[] | Tensor)[], call?: Call];

const inEvaluation = <Layer extends nn.AnyModule>(layer: Layer): Layer => layer.eval();
const withIndices = (layer: nn.MaxPooling, ...shape: number[]): Case => [
  layer,
  [shape],
  (x) => nn.forwardWithIndices(layer, x!),
];

function bagOfSums(): Case {
  const layer = new nn.EmbeddingBag(5, 3, { mode: 'sum', dtype });
  const call = (i: Tensor, perSampleWeights: Tensor): Tensor =>
    layer.forward(i, { offsets: int([0, 3]), perSampleWeights });
  return [layer, [int([0, 2, 2, 4]), [4]], call as Call];
}

function attention(
  options: nn.MultiHeadAttentionOptions,
  inputs: Case[1],
  call: (layer: nn.MultiHeadAttention, x: Tensor, y: Tensor, z: Tensor) => Tensor | readonly Tensor[],
): Case {
  const layer = new nn.MultiHeadAttention(4, 2, { ...options, dtype });
  return [layer, inputs, (x, y, z) => call(layer, x!, y!, z!)];
}

const block = { dimFeedforward: 6, dropout: 0, dtype } as const;
const both = ({ output, weights }: nn.AttentionWeights): readonly Tensor[] => [output, weights];

/** A table in two rows of indices, which the call may change: it is a result too. */
function shortened(options: nn.EmbeddingBagLayerOptions, indices: readonly number[]): () => Case {
  return () => {
    const { mode, ...others } = options;
    const layer =
      mode === undefined
        ? new nn.Embedding(5, 3, { ...others, dtype })
        : new nn.EmbeddingBag(5, 3, { ...options, dtype });
    return [layer, [int(indices, [2, indices.length / 2])], (i) => [layer.forward(i!), detach(layer.weight)]];
  };
}

/** Two batches in training, then one in evaluation, on which running statistics tell. */
function twice(layer: nn.AnyModule, ...shape: number[]): Case {
  const run = layer as nn.AnyModule & { forward(x: Tensor): Tensor };
  const call = (x: Tensor): readonly Tensor[] => {
    run.forward(x.mul(0.5).add(1));
    const y = run.forward(x);
    layer.eval();
    return [y, run.forward(x)];
  };
  return [layer, [shape], call as Call];
}

/** A layer whose vectors of the power iteration have known values. */
function spectral<Layer extends nn.AnyModule>(layer: Layer, options: nn.SpectralNormOptions = {}): Layer {
  const normed = nn.spectralNorm(layer, options);
  const { weight_u: u, weight_v: v } = normed.stateDict();
  u!.assign(value(90, u!.shape));
  v!.assign(value(91, v!.shape));
  return normed;
}

/** A loss as a layer without parameters. */
function ctc(lengths: readonly number[], labels: readonly number[], options: nn.CtcOptions = {}): () => Case {
  const call = (x: Tensor): Tensor =>
    nn.ctcLoss(logSoftmax(x), int([1, 2, 2, 3, 1, 0], [2, 3]), int(lengths), labels, options);
  return () => [new nn.Identity(), [[6, 2, 4]], call as Call];
}

const activations: Readonly<Record<string, () => nn.AnyModule>> = {
  CELU: () => new nn.CELU(0.7),
  GLU: () => new nn.GLU(1),
  HardSigmoid: () => new nn.HardSigmoid(),
  HardTanh: () => new nn.HardTanh(-0.3, 0.5),
  LogSigmoid: () => new nn.LogSigmoid(),
  Softmax2d: () => new nn.Softmax2d(),
  Softmin: () => new nn.Softmin(2),
  Softplus: () => new nn.Softplus(3),
  Softsign: () => new nn.Softsign(),
  PReLU: () => new nn.PReLU({ dtype }),
  'PReLU of channels': () => new nn.PReLU({ numParameters: 4, dtype }),
  'RReLU in evaluation': () => inEvaluation(new nn.RReLU(0.1, 0.5)),
  HardShrink: () => new nn.HardShrink(0.3),
  SoftShrink: () => new nn.SoftShrink(0.3),
  TanhShrink: () => new nn.TanhShrink(),
  Threshold: () => new nn.Threshold(0.15, -2),
  ELU: () => new nn.ELU(0.7),
  GELU: () => new nn.GELU(),
  'GELU by tanh': () => new nn.GELU({ approximate: 'tanh' }),
  HardSwish: () => new nn.HardSwish(),
  LeakyReLU: () => new nn.LeakyReLU(0.2),
  LogSoftmax: () => new nn.LogSoftmax(1),
  Mish: () => new nn.Mish(),
  ReLU: () => new nn.ReLU(),
  ReLU6: () => new nn.ReLU6(),
  SELU: () => new nn.SELU(),
  Sigmoid: () => new nn.Sigmoid(),
  SiLU: () => new nn.SiLU(),
  Softmax: () => new nn.Softmax(1),
  Tanh: () => new nn.Tanh(),
};

const cases: Readonly<Record<string, () => Case>> = {
  Conv1d: () => [new nn.Conv1d(4, 6, 3, { stride: 2, padding: 1, groups: 2, dtype }), [[2, 4, 7]]],
  Conv3d: () => [
    new nn.Conv3d(2, 3, [2, 3, 2], { padding: 1, dilation: [1, 1, 2], bias: false, dtype }),
    [[1, 2, 3, 4, 3]],
  ],
  ConvTranspose1d: () => [
    new nn.ConvTranspose1d(4, 6, 3, { stride: 2, padding: 1, outputPadding: 1, groups: 2, dtype }),
    [[2, 4, 5]],
  ],
  ConvTranspose3d: () => [new nn.ConvTranspose3d(2, 3, 2, { stride: [1, 2, 2], dtype }), [[1, 2, 2, 3, 2]]],
  'BatchNorm1d of rows': () => [new nn.BatchNorm1d(3, { dtype }), [[5, 3]]],
  'BatchNorm1d of lines': () => [new nn.BatchNorm1d(3, { eps: 1e-3, momentum: 0.3, dtype }), [[2, 3, 4]]],
  'BatchNorm1d in evaluation': () => [inEvaluation(new nn.BatchNorm1d(3, { dtype })), [[2, 3, 4]]],
  'BatchNorm1d of all batches': () => twice(new nn.BatchNorm1d(3, { momentum: null, dtype }), 4, 3),
  'BatchNorm2d of all batches': () =>
    twice(new nn.BatchNorm2d(2, { momentum: null, affine: false, dtype }), 2, 2, 3, 2),
  'BatchNorm3d of all batches': () => twice(new nn.BatchNorm3d(2, { momentum: null, dtype }), 2, 2, 2, 1, 2),
  'BatchNorm1d without statistics': () => twice(new nn.BatchNorm1d(3, { trackRunningStats: false, dtype }), 2, 3, 4),
  'BatchNorm2d without statistics': () => twice(new nn.BatchNorm2d(2, { trackRunningStats: false, dtype }), 2, 2, 3, 2),
  'BatchNorm3d without statistics': () =>
    twice(new nn.BatchNorm3d(2, { momentum: null, trackRunningStats: false, dtype }), 2, 2, 2, 1, 2),
  'InstanceNorm1d with statistics': () => twice(new nn.InstanceNorm1d(3, { trackRunningStats: true, dtype }), 2, 3, 5),
  'InstanceNorm2d with statistics': () =>
    twice(new nn.InstanceNorm2d(3, { affine: true, momentum: 0.3, trackRunningStats: true, dtype }), 2, 3, 3, 2),
  'InstanceNorm3d with statistics': () =>
    twice(new nn.InstanceNorm3d(2, { trackRunningStats: true, dtype }), 2, 2, 2, 3, 2),
  ...Object.fromEntries(
    (['reflect', 'replicate', 'circular'] as const).flatMap((paddingMode) => {
      const common = { paddingMode, dtype } as const;
      const made: Readonly<Record<string, () => Case>> = {
        [`Conv1d, ${paddingMode}`]: () => [new nn.Conv1d(2, 3, 3, { padding: 2, stride: 2, ...common }), [[2, 2, 5]]],
        [`Conv2d, ${paddingMode}`]: () => [
          new nn.Conv2d(2, 4, [3, 2], { padding: [1, 2], dilation: [2, 1], groups: 2, ...common }),
          [[1, 2, 5, 4]],
        ],
        [`Conv3d, ${paddingMode}`]: () => [
          new nn.Conv3d(1, 2, 2, { padding: [1, 0, 1], bias: false, ...common }),
          [[1, 1, 3, 2, 3]],
        ],
        [`Conv2d of the same size, ${paddingMode}`]: () => [
          new nn.Conv2d(1, 2, [2, 3], { padding: 'same', dilation: [2, 1], ...common }),
          [[1, 1, 4, 4]],
        ],
      };
      return Object.entries(made);
    }),
  ),
  BatchNorm3d: () => [new nn.BatchNorm3d(2, { dtype }), [[2, 2, 2, 3, 2]]],
  GroupNorm: () => [new nn.GroupNorm(2, 4, { dtype }), [[2, 4, 3, 2]]],
  InstanceNorm1d: () => [new nn.InstanceNorm1d(3, { dtype }), [[2, 3, 5]]],
  InstanceNorm2d: () => [new nn.InstanceNorm2d(3, { affine: true, dtype }), [[2, 3, 3, 2]]],
  InstanceNorm3d: () => [new nn.InstanceNorm3d(2, { dtype }), [[2, 2, 2, 3, 2]]],
  LocalResponseNorm: () => [new nn.LocalResponseNorm(3, { alpha: 0.5, beta: 0.6, k: 2 }), [[2, 5, 2, 2]]],
  MaxPool1d: () => withIndices(new nn.MaxPool1d(3, { stride: 2, padding: 1 }), 2, 2, 8),
  MaxPool2d: () => withIndices(new nn.MaxPool2d(3, { stride: 2, padding: 1, dilation: 2, ceilMode: true }), 1, 2, 7, 6),
  MaxPool3d: () => withIndices(new nn.MaxPool3d(2, { stride: 1 }), 1, 2, 3, 3, 4),
  AvgPool1d: () => [new nn.AvgPool1d(3, { stride: 2, padding: 1, ceilMode: true }), [[2, 2, 8]]],
  AvgPool3d: () => [new nn.AvgPool3d(2, { stride: 2, padding: 1, countIncludePad: false }), [[1, 2, 3, 4, 4]]],
  LPPool1d: () => [new nn.LPPool1d(2, 3, { stride: 2 }), [[2, 2, 7]]],
  LPPool2d: () => [new nn.LPPool2d(2, 2), [[1, 2, 4, 5]]],
  MaxUnpool1d: () => [new nn.MaxUnpool1d(2), [[1, 2, 2], int([0, 3, 1, 2], [1, 2, 2])]],
  MaxUnpool2d: () => [new nn.MaxUnpool2d(2), [[1, 1, 2, 2], int([0, 3, 13, 10], [1, 1, 2, 2])]],
  MaxUnpool3d: () => {
    const layer = new nn.MaxUnpool3d(2);
    return [layer, [[1, 1, 1, 2, 1], int([3, 14], [1, 1, 1, 2, 1])], (x, i) => layer.forward(x!, i!, [2, 4, 2])];
  },
  AdaptiveAvgPool1d: () => [new nn.AdaptiveAvgPool1d(3), [[2, 2, 7]]],
  AdaptiveAvgPool2d: () => [new nn.AdaptiveAvgPool2d([2, null]), [[1, 2, 5, 6]]],
  AdaptiveAvgPool3d: () => [new nn.AdaptiveAvgPool3d([2, 3, 2]), [[1, 2, 3, 4, 5]]],
  AdaptiveMaxPool1d: () => withIndices(new nn.AdaptiveMaxPool1d(3), 2, 2, 7),
  AdaptiveMaxPool2d: () => withIndices(new nn.AdaptiveMaxPool2d([2, null]), 1, 2, 5, 6),
  AdaptiveMaxPool3d: () => withIndices(new nn.AdaptiveMaxPool3d([2, 3, 2]), 1, 2, 3, 4, 5),
  'Upsample nearest': () => [new nn.Upsample({ scaleFactor: 2 }), [[1, 2, 3, 2]]],
  'Upsample linear': () => [new nn.Upsample({ size: 7, mode: 'linear' }), [[1, 2, 4]]],
  'Upsample bilinear': () => [new nn.Upsample({ size: [5, 3], mode: 'bilinear', alignCorners: true }), [[1, 2, 3, 4]]],
  'Upsample bicubic': () => [new nn.Upsample({ scaleFactor: 1.5, mode: 'bicubic' }), [[1, 1, 4, 4]]],
  'Upsample trilinear': () => [new nn.Upsample({ size: [3, 4, 5], mode: 'trilinear' }), [[1, 1, 2, 3, 3]]],
  PixelShuffle: () => [new nn.PixelShuffle(2), [[1, 8, 2, 3]]],
  PixelUnshuffle: () => [new nn.PixelUnshuffle(2), [[1, 2, 4, 6]]],
  Unfold: () => [new nn.Unfold([2, 3], { padding: 1, stride: 2 }), [[1, 2, 4, 5]]],
  Fold: () => [new nn.Fold([4, 5], [2, 3], { stride: [2, 1] }), [[1, 12, 6]]],
  ZeroPad2d: () => [new nn.ZeroPad2d([1, 2, 0, 1]), [[1, 2, 3, 3]]],
  Linear: () => [new nn.Linear(3, 4, { dtype }), [[2, 5, 3]]],
  Embedding: () => [new nn.Embedding(5, 3, { dtype }), [int([0, 2, 2, 4, 1, 0], [2, 3])]],
  Conv2d: () => [
    new nn.Conv2d(4, 6, [3, 2], { stride: [2, 1], padding: [1, 2], dilation: [1, 2], groups: 2, dtype }),
    [[2, 4, 6, 5]],
  ],
  ConvTranspose2d: () => [
    new nn.ConvTranspose2d(4, 6, 3, { stride: 2, padding: 1, outputPadding: 1, groups: 2, dtype }),
    [[2, 4, 3, 4]],
  ],
  BatchNorm2d: () => [new nn.BatchNorm2d(3, { dtype }), [[2, 3, 4, 2]]],
  LayerNorm: () => [new nn.LayerNorm([3, 4], { dtype }), [[2, 3, 4]]],
  AvgPool2d: () => [new nn.AvgPool2d(3, { stride: 2, padding: 1 }), [[2, 2, 7, 6]]],
  GlobalAvgPool2d: () => [new nn.GlobalAvgPool2d(), [[2, 3, 4, 5]]],
  Flatten: () => [new nn.Flatten(), [[2, 3, 4]]],
  Unflatten: () => [new nn.Unflatten(1, [3, 2]), [[2, 6, 2]]],
  Identity: () => [new nn.Identity(), [[2, 3]]],
  CircularPad1d: () => [new nn.CircularPad1d([2, 1]), [[1, 2, 4]]],
  CircularPad2d: () => [new nn.CircularPad2d([2, 1, 0, 1]), [[1, 2, 3, 4]]],
  CircularPad3d: () => [new nn.CircularPad3d([1, 1, 0, 1, 1, 0]), [[1, 1, 2, 3, 3]]],
  ZeroPad1d: () => [new nn.ZeroPad1d([1, 2]), [[1, 2, 3]]],
  ZeroPad3d: () => [new nn.ZeroPad3d([1, 0, 0, 1, 2, 0]), [[1, 1, 2, 2, 3]]],
  ConstantPad1d: () => [new nn.ConstantPad1d([1, 2], 0.5), [[1, 2, 3]]],
  ConstantPad2d: () => [new nn.ConstantPad2d([1, -1, 0, 2], 0.5), [[2, 3, 3]]],
  ConstantPad3d: () => [new nn.ConstantPad3d([1, 0, 0, 1, 2, 0], 0.5), [[1, 1, 2, 2, 3]]],
  ReflectionPad1d: () => [new nn.ReflectionPad1d([2, 1]), [[1, 2, 4]]],
  ReflectionPad2d: () => [new nn.ReflectionPad2d([2, 1, 0, 1]), [[1, 2, 3, 4]]],
  ReflectionPad3d: () => [new nn.ReflectionPad3d([1, 1, 0, 1, 1, 0]), [[1, 1, 2, 3, 3]]],
  ReplicationPad1d: () => [new nn.ReplicationPad1d([2, 1]), [[1, 2, 4]]],
  ReplicationPad2d: () => [new nn.ReplicationPad2d([2, 1, 0, 1]), [[1, 2, 3, 4]]],
  ReplicationPad3d: () => [new nn.ReplicationPad3d(1), [[1, 1, 2, 2, 3]]],
  ...Object.fromEntries(
    Object.entries(activations).map(([name, make]) => [name, (): Case => [make(), [[2, 4, 3, 1]]]]),
  ),
  'Dropout in evaluation': () => [inEvaluation(new nn.Dropout()), [[2, 3]]],
  'Dropout1d in evaluation': () => [inEvaluation(new nn.Dropout1d()), [[2, 3, 4]]],
  'Dropout2d in evaluation': () => [inEvaluation(new nn.Dropout2d()), [[2, 3, 2, 2]]],
  'Dropout3d in evaluation': () => [inEvaluation(new nn.Dropout3d()), [[2, 2, 2, 1, 3]]],
  'AlphaDropout in evaluation': () => [inEvaluation(new nn.AlphaDropout()), [[2, 3]]],
  'FeatureAlphaDropout in evaluation': () => [inEvaluation(new nn.FeatureAlphaDropout()), [[2, 3, 2, 2]]],
  Bilinear: () => [
    new nn.Bilinear(3, 2, 4, { dtype }),
    [
      [2, 5, 3],
      [2, 5, 2],
    ],
  ],
  'EmbeddingBag of means': () => [new nn.EmbeddingBag(5, 3, { dtype }), [int([0, 2, 2, 4, 1, 0], [2, 3])]],
  'EmbeddingBag of sums': bagOfSums,
  'EmbeddingBag of maxima': () => {
    const layer = new nn.EmbeddingBag(5, 3, { mode: 'max', dtype });
    return [layer, [int([0, 2, 2, 4])], (i) => layer.forward(i!, { offsets: [0, 1] })];
  },
  'Embedding of short rows': shortened({ maxNorm: 0.6 }, [0, 2, 2, 4, 1, 0]),
  'Embedding of short rows by another norm': shortened({ maxNorm: 0.7, normType: 1, paddingIdx: 2 }, [2, 2, 4, 1]),
  'Embedding by frequency': shortened({ scaleGradByFreq: true }, [0, 2, 2, 4, 2, 0]),
  'EmbeddingBag of short rows': shortened({ maxNorm: 0.6, mode: 'max' }, [0, 2, 2, 4, 1, 0]),
  'EmbeddingBag by frequency': shortened({ maxNorm: 0.6, scaleGradByFreq: true, mode: 'sum' }, [0, 2, 4, 2, 0, 4]),
  RNNCell: () => [
    new nn.RNNCell(3, 2, { dtype }),
    [
      [4, 3],
      [4, 2],
    ],
  ],
  'RNNCell with relu': () => [new nn.RNNCell(3, 2, { bias: false, nonlinearity: 'relu', dtype }), [[4, 3]]],
  LSTMCell: () => {
    const layer = new nn.LSTMCell(3, 2, { dtype });
    const call = (x: Tensor, hidden: Tensor, cell: Tensor): readonly Tensor[] => {
      const next = layer.forward(x, { hidden, cell });
      return [next.hidden, next.cell];
    };
    return [
      layer,
      [
        [4, 3],
        [4, 2],
        [4, 2],
      ],
      call as Call,
    ];
  },
  GRUCell: () => [
    new nn.GRUCell(3, 2, { dtype }),
    [
      [4, 3],
      [4, 2],
    ],
  ],
  LSTM: () => {
    const layer = new nn.LSTM(3, 2, { numLayers: 2, dtype });
    const call = (x: Tensor): readonly Tensor[] => {
      const { output, hidden, cell } = layer.forward(x);
      return [output, hidden, cell];
    };
    return [layer, [[2, 4, 3]], call as Call];
  },
  GRU: () => {
    const layer = new nn.GRU(3, 2, { bidirectional: true, dtype });
    return [layer, [[2, 4, 3]], (x) => Object.values(layer.forward(x!)) as Tensor[]];
  },
  RNN: () => {
    const layer = new nn.RNN(3, 2, { dtype });
    return [layer, [[2, 4, 3]], (x) => Object.values(layer.forward(x!)) as Tensor[]];
  },
  'LSTM with a projection': () => {
    const layer = new nn.LSTM(2, 4, { numLayers: 2, bidirectional: true, projSize: 3, dtype });
    const call = (x: Tensor): readonly Tensor[] => {
      const { output, hidden, cell } = layer.forward(x);
      return [output, hidden, cell];
    };
    return [layer, [[2, 3, 2]], call as Call];
  },
  'LSTM with a projection from a state': () => {
    const layer = new nn.LSTM(2, 4, { bias: false, projSize: 2, dtype });
    const call = (x: Tensor, hidden: Tensor, cell: Tensor): Tensor => layer.forward(x, { hidden, cell }).output;
    return [
      layer,
      [
        [2, 6, 2],
        [1, 2, 2],
        [1, 2, 4],
      ],
      call as Call,
    ];
  },
  'weights of attention': () => attention({}, [[2, 3, 4]], (layer, x) => both(layer.forwardWithWeights(x))),
  'weights of each head': () =>
    attention(
      { bias: false },
      [
        [2, 3, 4],
        [2, 5, 4],
      ],
      (layer, x, key) => both(layer.forwardWithWeights(x, key, key, { averageAttnWeights: false })),
    ),
  'weights of causal attention': () =>
    attention({ causal: true }, [[2, 3, 4]], (layer, x) => both(layer.forwardWithWeights(x))),
  'attention to other widths': () =>
    attention(
      { kdim: 3, vdim: 5 },
      [
        [2, 3, 4],
        [2, 2, 3],
        [2, 2, 5],
      ],
      (layer, x, key, given) => {
        const { output, weights } = layer.forwardWithWeights(x, key, given);
        // Both ways of one call.
        return [layer.forward(x, key, given).add(output).mul(0.5), weights];
      },
    ),
  'attention with a learned key': () =>
    attention({ addBiasKv: true }, [[2, 3, 4]], (layer, x) => both(layer.forwardWithWeights(x))),
  'attention with a key of zeros': () =>
    attention(
      { addZeroAttn: true, bias: false },
      [
        [2, 3, 4],
        [2, 5, 4],
      ],
      (layer, x, key) => both(layer.forwardWithWeights(x, key, key, { averageAttnWeights: false })),
    ),
  'causal attention with added keys': () =>
    attention({ addBiasKv: true, addZeroAttn: true, causal: true }, [[2, 3, 4]], (layer, x) => [
      layer.forward(x),
      layer.forwardWithWeights(x).weights,
    ]),
  'attention of other widths with a learned key': () =>
    attention(
      { kdim: 3, vdim: 5, addBiasKv: true },
      [
        [2, 3, 4],
        [2, 2, 3],
        [2, 2, 5],
      ],
      (layer, x, key, given) => [layer.forward(x, key, given), layer.forwardWithWeights(x, key, given).weights],
    ),
  'masked attention with added keys': () =>
    attention({ addBiasKv: true, addZeroAttn: true }, [[2, 3, 4]], (layer, x) => {
      const mask = tensor([[0.5, -1, 2]], { dtype });
      return [layer.forward(x, x, x, { mask }), layer.forwardWithWeights(x, x, x, { mask }).weights];
    }),
  TransformerEncoderLayer: () => [new nn.TransformerEncoderLayer(4, 2, block), [[2, 3, 4]]],
  TransformerEncoder: () => [
    new nn.TransformerEncoder(
      () => new nn.TransformerEncoderLayer(4, 2, { ...block, normFirst: true, causal: true }),
      2,
      new nn.LayerNorm(4, { dtype }),
    ),
    [[2, 3, 4]],
  ],
  TransformerDecoderLayer: () => [
    new nn.TransformerDecoderLayer(4, 2, block),
    [
      [2, 3, 4],
      [2, 5, 4],
    ],
  ],
  'TransformerDecoderLayer, norms first': () => [
    new nn.TransformerDecoderLayer(4, 2, { ...block, normFirst: true, activation: 'gelu', causal: true }),
    [
      [2, 3, 4],
      [2, 5, 4],
    ],
  ],
  TransformerDecoder: () => [
    new nn.TransformerDecoder(() => new nn.TransformerDecoderLayer(4, 2, block), 2, new nn.LayerNorm(4, { dtype })),
    [
      [2, 3, 4],
      [2, 2, 4],
    ],
  ],
  Transformer: () => [
    new nn.Transformer({ ...block, dModel: 4, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1 }),
    [
      [2, 3, 4],
      [2, 2, 4],
    ],
  ],
  ctcLoss: ctc([6, 4], [3, 2]),
  'ctcLoss of each': ctc([5, 6], [1, 2], { reduction: 'none' }),
  'ctcLoss without labels': ctc([5, 6], [0, 2], { reduction: 'sum' }),
  'ctcLoss of too many labels': ctc([3, 6], [3, 1], { zeroInfinity: true }),
  weightNorm: () => [nn.weightNorm(new nn.Linear(3, 2, { dtype })), [[4, 3]]],
  'weightNorm of axis 1': () => [nn.weightNorm(new nn.ConvTranspose1d(2, 3, 2, { dtype }), { axis: 1 }), [[1, 2, 4]]],
  'weightNorm of all': () => [nn.weightNorm(new nn.Linear(3, 2, { bias: false, dtype }), { axis: null }), [[4, 3]]],
  spectralNorm: () => [spectral(new nn.Linear(3, 2, { dtype })), [[4, 3]]],
  'spectralNorm of axis 1': () => [
    spectral(new nn.ConvTranspose2d(2, 3, 2, { dtype }), { iterations: 2, axis: 1 }),
    [[1, 2, 3, 3]],
  ],
  'spectralNorm in evaluation': () => [spectral(new nn.Linear(3, 2, { dtype })).eval() as nn.Linear, [[4, 3]]],
};

beforeAll(() => setEngine(createReferenceEngine()));

const isShape = (input: readonly number[] | Tensor): input is readonly number[] => Array.isArray(input);
const isFloat = (t: Tensor): boolean => t.dtype.startsWith('float');

for (const [name, make] of Object.entries(cases)) {
  it(`${name} as in PyTorch`, async () => {
    const [layer, given, call] = make();
    const [parameters, buffers] = [layer.namedParameters(), layer.namedBuffers()];
    expect([...parameters, ...buffers].map(([label]) => label).join()).toBe(file.metadata![name]);
    for (const [i, [, parameter]] of parameters.entries()) parameter.assign(value(i + 1, parameter.shape));
    const inputs = given.map((input, i) => (isShape(input) ? value(i * 20, input, true) : input));
    const forward = (layer as unknown as { forward(...inputs: Tensor[]): Tensor }).forward.bind(layer);
    const result = (call ?? forward)(...inputs);
    const outputs = Array.isArray(result) ? (result as readonly Tensor[]) : [result as Tensor];
    outputs
      .map((y, i) => (isFloat(y) ? sum(y.mul(value(50 + i, y.shape))) : null))
      .filter((loss) => loss !== null)
      .reduce((total, loss) => total.add(loss))
      .backward();
    const learned = [...inputs.filter(isFloat), ...parameters.map(([, parameter]) => parameter)];
    const parts = [...outputs, ...learned.map((t) => t.grad ?? t.mul(0)), ...buffers.map(([, t]) => t)];
    const found = await concat(parts.map((t) => flatten(cast(t, dtype)))).data();
    const wanted = file.tensors.get(name)!.data as Float32Array;
    expect(found.length).toBe(wanted.length);
    const worst = Math.max(...wanted.map((w, i) => Math.abs(Number(found[i]) - w) / Math.max(1, Math.abs(w))));
    expect(worst).toBeLessThan(1e-6);
  });
}

it('holds a case for each that PyTorch was asked for', () => {
  expect([...file.tensors.keys()].sort()).toEqual(Object.keys(cases).sort());
});

/** What PyTorch 1.13 does not have, or has no values of its own: where it is tested. */
const without: Readonly<Record<string, string>> = {
  Module: 'every layer is one',
  ModuleDict: 'module/tools.test.ts',
  ModuleList: 'module/tools.test.ts',
  QuantizedLinear: 'precision/quantized-linear.test.ts',
  RMSNorm: 'layers.test.ts',
  RotaryEmbedding: 'sequences.test.ts',
  Sequential: 'module/torch.test.ts',
  TransformerBlock: 'sequences.test.ts',
};

it('holds a case for each layer', () => {
  const layers = Object.entries(nn).flatMap(([name, value]) =>
    typeof value === 'function' && (value === nn.Module || value.prototype instanceof nn.Module) ? [name] : [],
  );
  const named = new Set(Object.values(cases).flatMap((make) => make()[0].constructor.name));
  expect(layers.filter((name) => !named.has(name)).sort()).toEqual(Object.keys(without).sort());
});
