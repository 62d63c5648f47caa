/** Options: a name that an operation does not have is refused with the one that was meant, and so are values of the wrong kind. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => pg.setEngine(createReferenceEngine()));

type Call = (options: never) => unknown;
const x = (): pg.Tensor => pg.ones([2, 4]);
const image = (): pg.Tensor => pg.ones([1, 2, 4, 4]);
const line = (): pg.Tensor => pg.ones([1, 2, 4]);
const volume = (): pg.Tensor => pg.ones([1, 2, 4, 4, 4]);
const whole = (): pg.Tensor => pg.tensor([0, 1], { dtype: 'int32' });
const square = (t: pg.Tensor): pg.Tensor => t.mul(t).sum();

/** Each function that takes options: a call with them, a name that is nearly right, the right one. */
const calls: Readonly<Record<string, [call: Call, wrong: string, right: string]>> = {
  // Reductions
  sum: [(o) => pg.sum(x(), o), 'axes', 'axis'],
  mean: [(o) => pg.mean(x(), o), 'keepdims', 'keepDims'],
  prod: [(o) => pg.prod(x(), o), 'keep_dims', 'keepDims'],
  max: [(o) => pg.max(x(), o), 'keepdim', 'keepDims'],
  min: [(o) => pg.min(x(), o), 'Axis', 'axis'],
  any: [(o) => pg.any(x(), o), 'axes', 'axis'],
  all: [(o) => pg.all(x(), o), 'axes', 'axis'],
  argMax: [(o) => pg.argMax(x(), o), 'axes', 'axis'],
  argMin: [(o) => pg.argMin(x(), o), 'axes', 'axis'],
  countNonZero: [(o) => pg.countNonZero(x(), o), 'axes', 'axis'],
  nanSum: [(o) => pg.nanSum(x(), o), 'axes', 'axis'],
  nanMean: [(o) => pg.nanMean(x(), o), 'axes', 'axis'],
  logSumExp: [(o) => pg.logSumExp(x(), o), 'axes', 'axis'],
  variance: [(o) => pg.variance(x(), o), 'corection', 'correction'],
  std: [(o) => pg.std(x(), o), 'Correction', 'correction'],
  norm: [(o) => pg.norm(x(), o), 'P', 'p'],
  median: [(o) => pg.median(x(), o), 'axes', 'axis'],
  quantile: [(o) => pg.quantile(x(), 0.5, o), 'interpolate', 'interpolation'],
  trace: [(o) => pg.trace(x(), o), 'offsets', 'offset'],
  // Along an axis
  softmax: [(o) => pg.softmax(x(), o), 'axes', 'axis'],
  logSoftmax: [(o) => pg.logSoftmax(x(), o), 'axes', 'axis'],
  softmin: [(o) => pg.softmin(x(), o), 'axes', 'axis'],
  cumSum: [(o) => pg.cumSum(x(), o), 'exclude', 'exclusive'],
  cumProd: [(o) => pg.cumProd(x(), o), 'reversed', 'reverse'],
  cumMax: [(o) => pg.cumMax(x(), o), 'reversed', 'reverse'],
  cumMin: [(o) => pg.cumMin(x(), o), 'axes', 'axis'],
  logCumSumExp: [(o) => pg.logCumSumExp(x(), o), 'axes', 'axis'],
  diff: [(o) => pg.diff(x(), o), 'prepends', 'prepend'],
  sort: [(o) => pg.sort(x(), o), 'descend', 'descending'],
  argSort: [(o) => pg.argSort(x(), o), 'axes', 'axis'],
  topK: [(o) => pg.topK(x(), 1, o), 'largests', 'largest'],
  concat: [(o) => pg.concat([x(), x()], o), 'axes', 'axis'],
  stack: [(o) => pg.stack([x(), x()], o), 'axes', 'axis'],
  glu: [(o) => pg.glu(x(), o), 'axes', 'axis'],
  // Elementwise
  elu: [(o) => pg.elu(x(), o), 'aplha', 'alpha'],
  celu: [(o) => pg.celu(x(), o), 'Alpha', 'alpha'],
  softplus: [(o) => pg.softplus(x(), o), 'betas', 'beta'],
  gelu: [(o) => pg.gelu(x(), o), 'approx', 'approximate'],
  leakyRelu: [(o) => pg.leakyRelu(x(), o), 'slop', 'slope'],
  hardTanh: [(o) => pg.hardTanh(x(), o), 'lower', 'low'],
  softShrink: [(o) => pg.softShrink(x(), o), 'lambd', 'lambda'],
  hardShrink: [(o) => pg.hardShrink(x(), o), 'lambd', 'lambda'],
  threshold: [(o) => pg.threshold(x(), o), 'treshold', 'threshold'],
  addcmul: [(o) => pg.addcmul(x(), x(), x(), o), 'values', 'value'],
  addcdiv: [(o) => pg.addcdiv(x(), x(), x(), o), 'val', 'value'],
  isClose: [(o) => pg.isClose(x(), x(), o), 'rTol', 'rtol'],
  nanToNum: [(o) => pg.nanToNum(x(), o), 'posinf', 'posInf'],
  // Made
  tensor: [(o) => pg.tensor([1], o), 'dType', 'dtype'],
  zeros: [(o) => pg.zeros([1], o), 'requires_grad', 'requiresGrad'],
  ones: [(o) => pg.ones([1], o), 'type', 'dtype'],
  empty: [(o) => pg.empty([1], o), 'type', 'dtype'],
  full: [(o) => pg.full([1], 2, o), 'type', 'dtype'],
  zerosLike: [(o) => pg.zerosLike(x(), o), 'type', 'dtype'],
  onesLike: [(o) => pg.onesLike(x(), o), 'type', 'dtype'],
  arange: [(o) => pg.arange(3, o), 'type', 'dtype'],
  linspace: [(o) => pg.linspace(0, 1, 3, o), 'type', 'dtype'],
  eye: [(o) => pg.eye(3, o), 'diag', 'diagonal'],
  tri: [(o) => pg.tri(3, 3, o), 'diagonals', 'diagonal'],
  tril: [(o) => pg.tril(x(), o), 'diagonals', 'diagonal'],
  triu: [(o) => pg.triu(x(), o), 'diagonals', 'diagonal'],
  oneHot: [(o) => pg.oneHot(whole(), 3, o), 'type', 'dtype'],
  rand: [(o) => pg.rand([1], o), 'keys', 'key'],
  randn: [(o) => pg.randn([1], o), 'type', 'dtype'],
  randint: [(o) => pg.randint(0, 2, [1], o), 'type', 'dtype'],
  bernoulli: [(o) => pg.bernoulli(0.5, [1], o), 'keys', 'key'],
  permutation: [(o) => pg.permutation(x(), o), 'axes', 'axis'],
  dropout: [(o) => pg.dropout(x(), o), 'train', 'training'],
  meshgrid: [(o) => pg.meshgrid([whole()], o), 'index', 'indexing'],
  // Shapes and places
  flatten: [(o) => pg.flatten(x(), o), 'starts', 'start'],
  pad: [(o) => pg.pad(x(), 1, o), 'modes', 'mode'],
  repeatInterleave: [(o) => pg.repeatInterleave(x(), 2, o), 'axes', 'axis'],
  diag: [(o) => pg.diag(whole(), o), 'offsets', 'offset'],
  diagEmbed: [(o) => pg.diagEmbed(whole(), o), 'axis_1', 'axis1'],
  diagonal: [(o) => pg.diagonal(x(), o), 'axis_2', 'axis2'],
  scatterReduce: [(o) => pg.scatterReduce(pg.ones([3]), [1], pg.ones([1]), 'sum', o), 'include_self', 'includeSelf'],
  take: [(o) => pg.take(x(), [1], o), 'axes', 'axis'],
  searchSorted: [(o) => pg.searchSorted(pg.ones([3]), 1, o), 'rights', 'right'],
  bucketize: [(o) => pg.bucketize(1, pg.ones([3]), o), 'Right', 'right'],
  histogram: [(o) => pg.histogram(x(), o), 'bin', 'bins'],
  // Products and distances
  gemm: [(o) => pg.gemm(x(), x(), o), 'transa', 'transA'],
  gemv: [(o) => pg.gemv(x(), pg.ones([4]), o), 'Alpha', 'alpha'],
  normalize: [(o) => pg.normalize(x(), o), 'epsilon', 'eps'],
  cosineSimilarity: [(o) => pg.cosineSimilarity(x(), x(), o), 'epsilon', 'eps'],
  cdist: [(o) => pg.cdist(x(), x(), o), 'P', 'p'],
  rbfKernel: [(o) => pg.rbfKernel(x(), x(), o), 'gama', 'gamma'],
  // Images
  conv1d: [(o) => pg.conv1d(line(), pg.ones([1, 2, 2]), o), 'strides', 'stride'],
  conv2d: [(o) => pg.conv2d(image(), pg.ones([1, 2, 2, 2]), o), 'pad', 'padding'],
  conv3d: [(o) => pg.conv3d(volume(), pg.ones([1, 2, 2, 2, 2]), o), 'dilations', 'dilation'],
  depthwiseConv2d: [(o) => pg.depthwiseConv2d(image(), pg.ones([2, 1, 2, 2]), o), 'strides', 'stride'],
  convTranspose1d: [(o) => pg.convTranspose1d(line(), pg.ones([2, 1, 2]), o), 'strides', 'stride'],
  convTranspose2d: [(o) => pg.convTranspose2d(image(), pg.ones([2, 1, 2, 2]), o), 'output_padding', 'outputPadding'],
  convTranspose3d: [(o) => pg.convTranspose3d(volume(), pg.ones([2, 1, 2, 2, 2]), o), 'group', 'groups'],
  locallyConnectedConv2d: [(o) => pg.locallyConnectedConv2d(image(), x(), o), 'strides', 'stride'],
  graphConv: [(o) => pg.graphConv(x(), pg.ones([2, 2]), pg.ones([4, 3]), o), 'selfloops', 'selfLoops'],
  maxPool1d: [(o) => pg.maxPool1d(line(), 2, o), 'strides', 'stride'],
  maxPool2d: [(o) => pg.maxPool2d(image(), 2, o), 'returnindices', 'returnIndices'],
  maxPool3d: [(o) => pg.maxPool3d(volume(), 2, o), 'ceilmode', 'ceilMode'],
  maxUnpool1d: [(o) => pg.maxUnpool1d(line(), line().cast('int32'), 2, o), 'strides', 'stride'],
  maxUnpool3d: [(o) => pg.maxUnpool3d(volume(), volume().cast('int32'), 2, o), 'pad', 'padding'],
  maxUnpool2d: [(o) => pg.maxUnpool2d(image(), image().cast('int32'), 2, o), 'outputsize', 'outputSize'],
  avgPool1d: [(o) => pg.avgPool1d(line(), 2, o), 'strides', 'stride'],
  avgPool2d: [(o) => pg.avgPool2d(image(), 2, o), 'countIncludePadding', 'countIncludePad'],
  avgPool3d: [(o) => pg.avgPool3d(volume(), 2, o), 'strides', 'stride'],
  lpPool1d: [(o) => pg.lpPool1d(line(), 2, 2, o), 'strides', 'stride'],
  lpPool2d: [(o) => pg.lpPool2d(image(), 2, 2, o), 'strides', 'stride'],
  adaptiveAvgPool1d: [(o) => pg.adaptiveAvgPool1d(line(), 2, o), 'layouts', 'layout'],
  adaptiveAvgPool2d: [(o) => pg.adaptiveAvgPool2d(image(), 2, o), 'Layout', 'layout'],
  adaptiveAvgPool3d: [(o) => pg.adaptiveAvgPool3d(volume(), 2, o), 'Layout', 'layout'],
  adaptiveMaxPool1d: [(o) => pg.adaptiveMaxPool1d(line(), 2, o), 'returnIndex', 'returnIndices'],
  adaptiveMaxPool3d: [(o) => pg.adaptiveMaxPool3d(volume(), 2, o), 'returnIndex', 'returnIndices'],
  adaptiveMaxPool2d: [(o) => pg.adaptiveMaxPool2d(image(), 2, o), 'returnIndex', 'returnIndices'],
  globalAvgPool2d: [(o) => pg.globalAvgPool2d(image(), o), 'keepdims', 'keepDims'],
  interpolate: [(o) => pg.interpolate(image(), o), 'scale_factor', 'scaleFactor'],
  gridSample: [(o) => pg.gridSample(image(), pg.ones([1, 2, 2, 2]), o), 'align_corners', 'alignCorners'],
  affineGrid: [(o) => pg.affineGrid(pg.ones([1, 2, 3]), [1, 1, 2, 2], o), 'alignCorner', 'alignCorners'],
  unfold: [(o) => pg.unfold(image(), 2, o), 'strides', 'stride'],
  fold: [(o) => pg.fold(pg.ones([1, 4, 9]), 4, 2, o), 'strides', 'stride'],
  batchNorm: [(o) => pg.batchNorm(image(), o), 'running_mean', 'runningMean'],
  layerNorm: [(o) => pg.layerNorm(x(), o), 'epsilon', 'eps'],
  rmsNorm: [(o) => pg.rmsNorm(x(), o), 'weights', 'weight'],
  groupNorm: [(o) => pg.groupNorm(image(), o), 'group', 'groups'],
  instanceNorm: [(o) => pg.instanceNorm(image(), o), 'epsilon', 'eps'],
  localResponseNorm: [(o) => pg.localResponseNorm(image(), o), 'sizes', 'size'],
  // Networks
  embedding: [(o) => pg.embedding([0], x(), o), 'padding_idx', 'paddingIdx'],
  embeddingBag: [(o) => pg.embeddingBag([[0]], x(), o), 'offset', 'offsets'],
  scaledDotProductAttention: [(o) => pg.scaledDotProductAttention(x(), x(), x(), o), 'isCausal', 'causal'],
  rotaryEmbedding: [(o) => pg.rotaryEmbedding(x(), o), 'offsets', 'offset'],
  mseLoss: [(o) => pg.mseLoss(x(), x(), o), 'reduce', 'reduction'],
  l1Loss: [(o) => pg.l1Loss(x(), x(), o), 'reduce', 'reduction'],
  smoothL1Loss: [(o) => pg.smoothL1Loss(x(), x(), o), 'betas', 'beta'],
  huberLoss: [(o) => pg.huberLoss(x(), x(), o), 'Delta', 'delta'],
  crossEntropy: [(o) => pg.crossEntropy(x(), whole(), o), 'label_smoothing', 'labelSmoothing'],
  nllLoss: [(o) => pg.nllLoss(x(), whole(), o), 'ignoreindex', 'ignoreIndex'],
  binaryCrossEntropy: [(o) => pg.binaryCrossEntropy(x(), x(), o), 'weights', 'weight'],
  binaryCrossEntropyWithLogits: [(o) => pg.binaryCrossEntropyWithLogits(x(), x(), o), 'pos_weight', 'posWeight'],
  klDiv: [(o) => pg.klDiv(x(), x(), o), 'log_target', 'logTarget'],
  gaussianNllLoss: [(o) => pg.gaussianNllLoss(x(), x(), x(), o), 'epsilon', 'eps'],
  hingeLoss: [(o) => pg.hingeLoss(x(), x(), o), 'margins', 'margin'],
  cosineEmbeddingLoss: [(o) => pg.cosineEmbeddingLoss(x(), x(), pg.ones([2]), o), 'margins', 'margin'],
  tripletMarginLoss: [(o) => pg.tripletMarginLoss(x(), x(), x(), o), 'swaps', 'swap'],
  softMarginLoss: [(o) => pg.softMarginLoss(x(), x(), o), 'reduce', 'reduction'],
  hingeEmbeddingLoss: [(o) => pg.hingeEmbeddingLoss(x(), x(), o), 'margins', 'margin'],
  marginRankingLoss: [(o) => pg.marginRankingLoss(x(), x(), x(), o), 'margins', 'margin'],
  poissonNllLoss: [(o) => pg.poissonNllLoss(x(), x(), o), 'log_input', 'logInput'],
  multiMarginLoss: [(o) => pg.multiMarginLoss(x(), whole(), o), 'weights', 'weight'],
  multiLabelMarginLoss: [(o) => pg.multiLabelMarginLoss(x(), x().cast('int32'), o), 'reduce', 'reduction'],
  multiLabelSoftMarginLoss: [(o) => pg.multiLabelSoftMarginLoss(x(), x(), o), 'weights', 'weight'],
  focalLoss: [(o) => pg.focalLoss(x(), x(), o), 'gama', 'gamma'],
  diceLoss: [(o) => pg.diceLoss(x(), x(), o), 'smoothing', 'smooth'],
  // Gradients
  grad: [(o) => pg.grad(square, o), 'argNums', 'argnums'],
  grads: [(o) => pg.grads(square, o), 'creategraph', 'createGraph'],
  valueAndGrad: [(o) => pg.valueAndGrad(square, o), 'hasaux', 'hasAux'],
  jacobian: [(o) => pg.jacobian(square, o), 'argnum', 'argnums'],
  hessian: [(o) => pg.hessian(square, o), 'argnum', 'argnums'],
  vjp: [(o) => pg.vjp(square, [x()], pg.ones([]), o), 'create_graph', 'createGraph'],
  jvp: [(o) => pg.jvp(square, [x()], [x()], o), 'create_graph', 'createGraph'],
  hvp: [(o) => pg.hvp(square, [x()], [x()], o), 'create_graph', 'createGraph'],
  vmap: [(o) => pg.vmap(square, o), 'in_axes', 'inAxes'],
  GradientTape: [(o) => new pg.GradientTape(o), 'persist', 'persistent'],
  backward: [(o) => square(pg.ones([2], { requiresGrad: true })).backward(o), 'retain_graph', 'retainGraph'],
};

describe('names that are nearly right', () => {
  it.each(Object.entries(calls))('%s', (name, [call, wrong, right]) => {
    const given = { [wrong]: undefined } as never;
    expect(() => pg.scope(() => void call(given))).toThrow(pg.ArgumentError);
    expect(() => pg.scope(() => void call(given))).toThrow(
      `[${name}] no option '${wrong}', did you mean '${right}'? Known are `,
    );
    expect(() => pg.scope(() => void call('text' as never))).toThrow(pg.OperationError);
  });

  it('are refused where the call is asynchronous, too', async () => {
    await expect(pg.unique(x(), { return_counts: true } as never)).rejects.toThrow("did you mean 'returnCounts'");
    await expect(pg.profile(() => 1, { source: true } as never)).rejects.toThrow("did you mean 'sources'");
    await expect(pg.gradCheck(square, [x()], { steps: 1 } as never)).rejects.toThrow("did you mean 'step'");
  });

  it.each([
    ['float', 'float32'],
    ['double', 'float64'],
    ['half', 'float16'],
    ['int', 'int32'],
    ['long', 'int64'],
    ['torch.double', 'float64'],
    ['boolean', 'bool'],
  ])('of dtypes: %s', (wrong, right) => {
    const asked = `dtype: '${wrong}', did you mean '${right}'? Must be `;
    expect(() => pg.zeros([1], { dtype: wrong as never })).toThrow(`[zeros] bad ${asked}'float32' or 'float64'`);
    expect(() => x().cast(wrong as never)).toThrow(`[cast] no such ${asked}one of float32, float64`);
  });

  it('of dtypes get the list where none is near', () => {
    expect(() => pg.zeros([1], { dtype: 'q' as never })).toThrow("[zeros] bad dtype: 'q'; must be 'float32' or");
    expect(() => x().cast(8 as never)).toThrow('[cast] no such dtype: 8; must be one of float32');
  });

  it('get the list of known ones where none is near', () => {
    expect(() => pg.sum(x(), { colour: 1 } as never)).toThrow(/^\[sum\] no option 'colour'; known are axis, keepDims$/);
    expect(() => pg.sum(x(), { toString: 1 } as never)).toThrow(/no option 'toString'/);
  });
});

describe('options of a related function', () => {
  const image = () => pg.ones([1, 2, 2, 2]);
  const refused: readonly [call: () => unknown, name: string][] = [
    [() => pg.depthwiseConv2d(image(), pg.ones([2, 1, 1, 1]), { groups: 2 } as never), 'groups'],
    [() => pg.argSort(x(), { returnIndices: true } as never), 'returnIndices'],
    [() => pg.avgPool2d(image(), 2, { returnIndices: true } as never), 'returnIndices'],
    [() => pg.avgPool2d(image(), { kernelSize: 2, returnIndices: true } as never), 'returnIndices'],
    [() => pg.lpPool2d(image(), 2, 2, { returnIndices: true } as never), 'returnIndices'],
  ];
  it.each(refused)('%s: %s', (call, name) => {
    expect(() => pg.scope(() => void call())).toThrow(`no option '${name}'`);
  });
});

describe('values of the wrong kind', () => {
  const bad: readonly [call: () => unknown, message: string][] = [
    [() => pg.elu(x(), { alpha: Number.NaN }), '[elu] bad alpha: NaN; must be a number'],
    [() => pg.leakyRelu(x(), { slope: '0.1' as never }), "[leakyRelu] bad slope: '0.1'; must be a number"],
    [() => pg.sum(x(), { keepDims: 1 as never }), '[sum] bad keepDims: 1; must be true or false'],
    [() => pg.softmax(x(), { axis: '1' as never }), '[softmax]'],
    [() => pg.variance(x(), { correction: Number.NaN }), '[variance] bad correction: NaN; must be a number'],
    [() => pg.zeros([1], { requiresGrad: 'yes' as never }), "[zeros] bad requiresGrad: 'yes'; must be true or false"],
    [() => pg.tensor([1], null as never), '[tensor] bad options: null; must be an object, known are dtype, shape'],
    [() => pg.zeros([1], 'int32' as never), "[zeros] bad options: 'int32'; must be an object, known are dtype"],
    [() => pg.conv2d(image(), image(), [1] as never), '[conv2d] bad options: a list; must be an object'],
    [() => pg.dropout(x(), { training: 0 as never }), '[dropout] bad training: 0; must be true or false'],
    [() => pg.grad(square, { createGraph: 1 as never }), '[grad] bad createGraph: 1; must be true or false'],
  ];
  it.each(bad)('%s', (call, message) => {
    expect(() => pg.scope(() => void call())).toThrow(message);
  });

  it('undefined is as if it were left out', async () => {
    using y = pg.scope(() => pg.elu(pg.tensor([1]), { alpha: undefined } as never));
    expect(await y.array()).toEqual([1]);
  });
});
