/**
 * autocast: a function whose products run in 16 bits, and all that needs more digits in float32.
 *
 * Operands are cast where operations read them (`nodeOf`), by the name of the operation in progress. What the operation made itself is newer
 * than its begin and left alone, so composites compute inside as they always do. Nothing is cached: equal casts are merged by the planner.
 *
 * The table below is the only one of mixed precision. An operation is in it for what it is made of: 'narrow' for those that sum products of two
 * operands; 'float32' for those that sum, normalise or take powers, exponentials and logarithms. All others take operands as they come. A test of
 * conformance (cast-policy.test.ts) compares it with the primitives that operations record, and with docs/mixed-precision.md.
 */
import type { Node } from '../graph/node.ts';
import { cast } from '../graph/primitives.ts';
import { opName, withCasting } from '../graph/scope.ts';
import { type Casting, graph } from '../graph/state.ts';
import { UnsupportedError } from '../engine/errors.ts';
import { getEngine } from '../engine/registry.ts';
import { type DType, isFloat, type SmallFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFunction, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { called } from '../tensor/scope.ts';

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

function castingTo(dtype: SmallFloat): Casting {
  const target: Readonly<Record<'narrow' | 'float32', DType>> = { narrow: dtype, float32: 'float32' };
  return (node: Node) => {
    // float64 is asked for by name, and integers are no numbers to round.
    if (!isFloat(node.dtype) || node.dtype === 'float64' || node.id > graph.begun) return node;
    const policy = castPolicies.get(opName(''));
    return policy === undefined ? node : cast(node, target[policy]);
  };
}

/** One each, so that compiled functions know them again. */
const castings: Readonly<Record<SmallFloat, Casting>> = {
  float16: /* @__PURE__ */ castingTo('float16'),
  bfloat16: /* @__PURE__ */ castingTo('bfloat16'),
};

/** Throws ArgumentError unless it is a 16-bit float, UnsupportedError where the current engine has no place for such. */
export function checkSmallFloat(op: string, dtype: SmallFloat): void {
  if (dtype !== 'float16' && dtype !== 'bfloat16')
    throw new ArgumentError(op, say`bad dtype: ${shown(dtype)}; must be 'float16' or 'bfloat16'`);
  const { name, caps } = getEngine();
  if (caps.dtypes.has(dtype)) return;
  const other = dtype === 'float16' ? 'bfloat16' : 'float16';
  const remedy = caps.dtypes.has(other) ? `use '${other}'` : `stay in float32, for which autocast(false, ...) stands`;
  throw new UnsupportedError(op, `engine '${name}' holds no ${dtype}, only ${[...caps.dtypes].join(', ')}; ${remedy}`);
}

/**
 * Runs a function in mixed precision: operations that multiply matrices or convolve take their floating-point operands as `dtype` and add in float32;
 * reductions, norms, softmax, losses, powers, exponentials and logarithms take them as float32; others take them as they come and meet in the wider dtype.
 * The table: docs/mixed-precision.md. float64 and integers are left alone. Source: Micikevicius et al., "Mixed precision training" (2018); PyTorch `autocast`.
 *
 * Gradients are computed in the dtypes of the values they belong to. Calls nest; the innermost counts.
 *
 * @param dtype 'float16', 'bfloat16', or false: no casts inside
 * @param body a synchronous function
 * @returns what the function returns
 * @throws ArgumentError for other dtypes, and where the function returns a promise; UnsupportedError where the current engine does not hold the dtype
 *
 * @example
 * const a = ones([2, 2]);
 * const [product, total] = autocast('bfloat16', () => [a.matmul(a), a.sum()]);
 * product.dtype; // 'bfloat16'
 * total.dtype; // 'float32'
 */
export function autocast<T>(dtype: SmallFloat | false, body: () => T): T {
  if (dtype !== false) checkSmallFloat('autocast', dtype);
  checkFunction('autocast', body);
  return withCasting(dtype === false ? null : castings[dtype], () => called('autocast', body));
}
