/**
 * Which operations `autocast` computes in 16 bits and which in float32: the one table of mixed precision, by the names of operations.
 *
 * An operation is in it for what it is made of: those that sum products of two operands on the left, those that sum, normalise or take powers, exponentials
 * and logarithms on the right. All others take operands as they come. policy.test.ts compares the table with the primitives that operations record,
 * and docs/mixed-precision.md with the table.
 */

/** What an operation makes of operands that are floats of at most 32 bits. */
export type CastPolicy = 'narrow' | 'float32';

const narrow =
  'matmul gemm gemv dot inner vdot outer tensordot kron bilinear einsum ' +
  'conv1d conv2d conv3d depthwiseConv2d locallyConnectedConv2d convTranspose1d convTranspose2d convTranspose3d ' +
  'scaledDotProductAttention graphConv prelu';

const float32 =
  // Powers, exponentials and logarithms.
  'pow reciprocal rsqrt exp exp2 expm1 log log2 log1p log10 logAddExp xlogy ' +
  'tan asin acos sinh cosh asinh acosh atanh erfc erfinv lgamma digamma polygamma softplus ' +
  // Sums over many elements.
  'sum prod mean variance std norm nanSum nanMean logSumExp cumSum cumProd logCumSumExp trace histogram ' +
  // Normalisations and distances.
  'softmax softmin logSoftmax batchNorm layerNorm rmsNorm groupNorm instanceNorm localResponseNorm ' +
  'normalize cosineSimilarity cdist rbfKernel cross lpPool1d lpPool2d ' +
  // Losses.
  'mseLoss l1Loss huberLoss smoothL1Loss binaryCrossEntropy binaryCrossEntropyWithLogits klDiv gaussianNllLoss hingeLoss ' +
  'cosineEmbeddingLoss tripletMarginLoss nllLoss crossEntropy softMarginLoss hingeEmbeddingLoss marginRankingLoss poissonNllLoss ' +
  'multiMarginLoss multiLabelMarginLoss multiLabelSoftMarginLoss focalLoss diceLoss ' +
  // Sums at places that data says.
  'scatterAdd scatterReduce indexAdd embeddingBag';

const table = (policy: CastPolicy, names: string): [string, CastPolicy][] =>
  names.split(' ').map((name) => [name, policy]);

/** The policy of an operation by its name; operations that are not there have none. */
export const castPolicies: ReadonlyMap<string, CastPolicy> = /* @__PURE__ */ new Map([
  ...table('narrow', narrow),
  ...table('float32', float32),
]);
