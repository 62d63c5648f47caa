import { beforeAll, expect, it } from 'vitest';
import { setEngine } from '../engine/registry.ts';
import * as pg from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => setEngine(createReferenceEngine()));

/** Different numbers from -1 to 1, the same at every call. */
const some = (...shape: number[]): pg.Tensor => {
  const size = shape.reduce((n, extent) => n * extent, 1);
  return pg.tensor(
    Float32Array.from({ length: size }, (_, i) => Math.sin(1 + i * 2.3)),
    { shape },
  );
};
const chances = (...shape: number[]): pg.Tensor => pg.sigmoid(some(...shape));
const classes = (...numbers: number[]): pg.Tensor => pg.tensor(numbers, { dtype: 'int32' });
const [line, image, volume] = [() => some(1, 2, 6), () => some(1, 2, 6, 6), () => some(1, 2, 4, 4, 4)];

/** The tensor and the other arguments of each operation. */
const calls: Record<string, () => [pg.Tensor, ...unknown[]]> = {
  conv1d: () => [line(), some(3, 2, 2), { bias: some(3) }],
  conv2d: () => [image(), some(3, 2, 2, 2), { stride: 2 }],
  conv3d: () => [volume(), some(1, 2, 2, 2, 2), { padding: 1 }],
  depthwiseConv2d: () => [image(), some(2, 1, 3, 3), { padding: 'same' }],
  locallyConnectedConv2d: () => [some(1, 1, 3, 3), some(2, 1, 2, 2, 2, 2)],
  convTranspose1d: () => [line(), some(2, 3, 2), { stride: 2 }],
  convTranspose2d: () => [image(), some(2, 3, 2, 2), { stride: 2 }],
  convTranspose3d: () => [volume(), some(2, 1, 2, 2, 2), { stride: 2 }],
  graphConv: () => [some(3, 2), pg.ones([3, 3]), some(2, 4), { normalize: 'symmetric' }],
  maxPool1d: () => [line(), 2, { returnIndices: true }],
  maxPool2d: () => [image(), 2, { stride: 1 }],
  maxPool3d: () => [volume(), 2],
  maxUnpool2d: () => [some(1, 1, 1, 1), pg.tensor([[[[2]]]], { dtype: 'int32' }), 2],
  maxUnpool1d: () => [some(1, 1, 1), pg.tensor([[[1]]], { dtype: 'int32' }), 2],
  maxUnpool3d: () => [some(1, 1, 1, 1, 1), pg.tensor([[[[[3]]]]], { dtype: 'int32' }), 2],
  avgPool1d: () => [line(), 2],
  avgPool2d: () => [image(), 3, { stride: 1 }],
  avgPool3d: () => [volume(), 2],
  lpPool1d: () => [line(), 3, 2],
  lpPool2d: () => [image(), 3, 2],
  adaptiveAvgPool1d: () => [line(), 4],
  adaptiveAvgPool2d: () => [image(), [2, 3]],
  adaptiveAvgPool3d: () => [volume(), 2],
  adaptiveMaxPool1d: () => [line(), 2],
  adaptiveMaxPool3d: () => [volume(), 1, { returnIndices: true }],
  adaptiveMaxPool2d: () => [image(), 4, { returnIndices: true }],
  globalAvgPool2d: () => [image(), { keepDims: true }],
  interpolate: () => [image(), { size: [3, 4], mode: 'bilinear' }],
  gridSample: () => [image(), some(1, 3, 3, 2), { mode: 'nearest' }],
  affineGrid: () => [some(1, 2, 3), [1, 1, 2, 3], { alignCorners: true }],
  batchNorm: () => [image(), { training: true, weight: some(2) }],
  layerNorm: () => [some(3, 4), { eps: 0.1 }],
  rmsNorm: () => [some(3, 4), { weight: some(4) }],
  groupNorm: () => [image(), { groups: 2 }],
  instanceNorm: () => [image(), { eps: 0.1 }],
  localResponseNorm: () => [image(), { size: 2 }],
  dropout: () => [some(20), { p: 0.4, key: 7 }],
  mseLoss: () => [some(4), chances(4), { reduction: 'none' }],
  l1Loss: () => [some(4), chances(4), { reduction: 'sum' }],
  smoothL1Loss: () => [some(4), chances(4), { beta: 0.3 }],
  huberLoss: () => [some(4), chances(4), { delta: 0.3 }],
  crossEntropy: () => [some(2, 3), classes(2, 0), { labelSmoothing: 0.1 }],
  nllLoss: () => [pg.logSoftmax(some(2, 3)), classes(2, 0), { reduction: 'none' }],
  binaryCrossEntropy: () => [chances(4), pg.tensor([0, 1, 1, 0]), { reduction: 'sum' }],
  binaryCrossEntropyWithLogits: () => [some(4), pg.tensor([0, 1, 1, 0]), { posWeight: 3 }],
  klDiv: () => [pg.log(chances(2, 3)), pg.softmax(some(2, 3)), { reduction: 'batchMean' }],
  gaussianNllLoss: () => [some(4), chances(4), chances(4), { full: true }],
  hingeLoss: () => [some(4), pg.tensor([1, -1, 1, -1]), { margin: 0.5 }],
  cosineEmbeddingLoss: () => [some(2, 3), chances(2, 3), pg.tensor([1, -1]), { margin: 0.1 }],
  tripletMarginLoss: () => [some(2, 3), chances(2, 3), pg.neg(some(2, 3)), { margin: 2 }],
  softMarginLoss: () => [some(4), pg.tensor([1, -1, 1, -1]), { reduction: 'sum' }],
  hingeEmbeddingLoss: () => [some(4), pg.tensor([1, -1, 1, -1]), { margin: 0.5 }],
  marginRankingLoss: () => [some(4), chances(4), pg.tensor([1, -1, 1, -1]), { margin: 0.5 }],
  poissonNllLoss: () => [some(4), chances(4), { logInput: false, eps: 3 }],
  multiMarginLoss: () => [some(2, 3), classes(2, 0), { p: 2 }],
  multiLabelMarginLoss: () => [some(2, 3), classes(1, -1, 0, 2, 0, -1).reshape([2, 3]), { reduction: 'sum' }],
  multiLabelSoftMarginLoss: () => [some(2, 3), chances(2, 3), { reduction: 'none' }],
  focalLoss: () => [some(4), chances(4), { gamma: 1.5 }],
  diceLoss: () => [chances(2, 3), chances(2, 3), { smooth: 0.5 }],
  scaledDotProductAttention: () => [some(1, 3, 4), chances(1, 3, 4), some(1, 3, 2), { causal: true }],
  rotaryEmbedding: () => [some(1, 3, 4), { base: 100 }],
  embedding: () => [classes(2, 0, 2), some(3, 2)],
  embeddingBag: () => [classes(2, 0, 1), some(3, 2), { offsets: classes(0, 2), mode: 'sum' }],
  rbfKernel: () => [some(3, 2), chances(2, 2), { gamma: 0.7 }],
  searchSorted: () => [pg.tensor([1, 2, 2, 3]), pg.tensor([2, 5]), { right: true }],
  bucketize: () => [pg.tensor([0, 1, 2]), pg.tensor([0, 1]), { right: true }],
  histogram: () => [some(9), { bins: 3, returnEdges: true }],
  oneHot: () => [classes(2, 0), 3, { dtype: 'int64' }],
};

type Operation = (...operands: unknown[]) => pg.Tensor | pg.Tensor[];

it.each(Object.keys(calls))('%s is the same as a method', async (name) => {
  const [self, ...rest] = (calls[name] as () => [pg.Tensor, ...unknown[]])();
  const values = async (result: pg.Tensor | pg.Tensor[]): Promise<unknown> =>
    Promise.all([result].flat().map((t) => t.array()));
  const expected = await values((pg as unknown as Record<string, Operation>)[name]!(self, ...rest));
  const method = (self as unknown as Record<string, Operation>)[name]!;
  expect(await values(method.call(self, ...rest))).toEqual(expected);
  // Options reach it: without what comes after the last operand the result is another, or there is none.
  if (rest.length > 0) {
    let plain: unknown;
    try {
      plain = await values(method.call(self, ...rest.slice(0, -1)));
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
    }
    expect(plain).not.toEqual(expected);
  }
});
