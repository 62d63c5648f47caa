/**
 * Entry point @polygrad/core/functions: everything of @polygrad/core except the operations as methods of Tensors.
 *
 * Whoever imports core from here alone gets a bundle with the operations that are called and no others: `exp(a)` works, `a.exp()` does
 * not (`add sub mul div` do). A new public name goes here.
 */
import './methods/own-methods.ts';

export type { DType, DTypeKind, TypedArray } from './shape/dtype.ts';
export type { Shape } from './shape/view.ts';
export {
  ArgumentError,
  DTypeError,
  OperationError,
  PolygradError,
  type PolygradErrorCode,
  ShapeError,
  showShape,
} from './shape/errors.ts';
export { checkWeak, floatFor, promoteOrNull, promoteTypes } from './shape/promotion.ts';
export type {
  AxisArgument,
  AxisOptions,
  BackwardOptions,
  CreationOptions,
  NestedInput,
  NestedValues,
  Tensor,
  TensorLike,
} from './tensor/types.ts';
export { DisposedError, isTensor, traceOrigins } from './tensor/handle.ts';
export { formatArray } from './tensor/format.ts';
export { allClose } from './checks/all-close.ts';
export type { CloseOptions } from './ops/close.ts';
export { protect, registerState, unprotect } from './tensor/protect.ts';
export { dispose, keep, scope } from './tensor/scope.ts';
export { type MemoryInfo, memory } from './tensor/memory.ts';
export {
  celu,
  elu,
  gelu,
  glu,
  logSigmoid,
  mish,
  selu,
  sigmoid,
  silu,
  softplus,
  softsign,
  tanhShrink,
} from './ops/activation.ts';
export {
  hardShrink,
  hardSigmoid,
  hardSwish,
  hardTanh,
  leakyRelu,
  prelu,
  relu,
  relu6,
  softShrink,
  threshold,
} from './ops/piecewise.ts';
export {
  abs,
  add,
  cast,
  div,
  floorDivide,
  fmod,
  maximum,
  minimum,
  mul,
  neg,
  pow,
  reciprocal,
  remainder,
  sign,
  square,
  sub,
} from './ops/arithmetic.ts';
export { addcdiv, addcmul, clip, copysign, fma, heaviside, hypot, lerp } from './ops/compound.ts';
export { bitwiseAnd, bitwiseNot, bitwiseOr, bitwiseXor, leftShift, rightShift } from './ops/bitwise.ts';
export { type ConvOptions, conv1d, conv2d, conv3d, depthwiseConv2d } from './ops/convolution.ts';
export {
  type ConvTransposeOptions,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
} from './ops/conv-transpose.ts';
export type { Layout, Padding, PerAxis } from './ops/image.ts';
export { type LocalConvOptions, locallyConnectedConv2d } from './ops/local-convolution.ts';
export { type EdgeList, type GraphConvOptions, graphConv } from './ops/graph-convolution.ts';
export { type TensorOptions, empty, full, fullLike, ones, onesLike, tensor, zeros, zerosLike } from './ops/creation.ts';
export { diag, diagEmbed, rot90 } from './ops/diagonals.ts';
export { type NormalizeOptions, cdist, cosineSimilarity, normalize } from './ops/distance.ts';
export { type GridSampleOptions, affineGrid, gridSample } from './ops/grid-sample.ts';
export { type InterpolateMode, type InterpolateOptions, interpolate } from './ops/interpolate.ts';
export { type EmbeddingBagOptions, type EmbeddingOptions, embedding, embeddingBag } from './ops/embedding.ts';
export { type AttentionOptions, scaledDotProductAttention } from './ops/attention.ts';
export { einsum } from './ops/einsum.ts';
export { erfc, erfinv } from './ops/error-function.ts';
export { cbrt, exp, exp2, expm1, log, log10, log1p, log2, logAddExp, rsqrt, sqrt, xlogy } from './ops/exponential.ts';
export {
  type CumulativeOptions,
  type CumulativeSumOptions,
  type DiffOptions,
  cumMax,
  cumMin,
  cumProd,
  cumSum,
  diff,
  logCumSumExp,
} from './ops/cumulative.ts';
export type { IndexAxis, IndexLike } from './ops/index-argument.ts';
export {
  gather,
  indexAdd,
  indexSelect,
  maskedFill,
  scatterAdd,
  take,
  takeAlongAxis,
} from './ops/indexing.ts';
export { type JoinAxis, chunk, concat, split, stack, unbind } from './ops/joining.ts';
export {
  equal,
  greater,
  greaterEqual,
  isClose,
  isFinite,
  isInf,
  isNaN,
  less,
  lessEqual,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  nanToNum,
  notEqual,
  where,
} from './ops/logic.ts';
export {
  type GaussianNllOptions,
  type LossOptions,
  type Reduction,
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  gaussianNllLoss,
  huberLoss,
  klDiv,
  l1Loss,
  mseLoss,
  smoothL1Loss,
} from './ops/loss.ts';
export {
  type MarginOptions,
  type TripletOptions,
  cosineEmbeddingLoss,
  hingeLoss,
  tripletMarginLoss,
} from './ops/margin-loss.ts';
export { type ClassLossOptions, type CrossEntropyOptions, crossEntropy, nllLoss } from './ops/class-loss.ts';
export { digamma, lgamma, polygamma } from './ops/gamma.ts';
export { type GemmOptions, dot, gemm, gemv, inner, matmul, outer, tensordot, vdot } from './ops/matmul.ts';
export {
  type ImageNormOptions,
  type LocalResponseNormOptions,
  groupNorm,
  instanceNorm,
  localResponseNorm,
} from './ops/image-normalization.ts';
export { type BatchNormOptions, type LayerNormOptions, batchNorm, layerNorm, rmsNorm } from './ops/normalization.ts';
export {
  type AdaptiveSettings,
  type AdaptiveSize,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveMaxPool2d,
  globalAvgPool2d,
} from './ops/adaptive-pooling.ts';
export { avgPool1d, avgPool2d, avgPool3d, lpPool2d } from './ops/average-pooling.ts';
export {
  type UnpoolSettings,
  type WithIndices,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  maxUnpool2d,
} from './ops/max-pooling.ts';
export type { PoolOptions, PoolSettings, PoolWindow } from './ops/pool-window.ts';
export { type PatchOptions, fold, pixelShuffle, pixelUnshuffle, unfold } from './ops/patches.ts';
export { bilinear, cross, kron } from './ops/products.ts';
export { rbfKernel } from './ops/rbf.ts';
export { type RotaryOptions, rotaryEmbedding } from './ops/rotary.ts';
export { type RandomKey, randomKey, seed, splitKey } from './tensor/random-key.ts';
export { type RandomOptions, bernoulli, dropout, permutation, rand, randint, randn } from './ops/random.ts';
export { type EyeOptions, arange, diagonal, eye, linspace, oneHot, trace, tri, tril, triu } from './ops/ranges.ts';
export { all, any, argMax, argMin, countNonZero, max, min, prod, sum } from './ops/reduction.ts';
export { type Interpolation, type QuantileOptions, median, quantile } from './ops/quantile.ts';
export {
  type ScatterReduceOptions,
  type ScatterReduction,
  gatherNd,
  indexCopy,
  indexFill,
  scatter,
  scatterNd,
  scatterReduce,
} from './ops/scattering.ts';
export {
  type HistogramEdges,
  type HistogramOptions,
  type SearchOptions,
  bucketize,
  histogram,
  searchSorted,
} from './ops/searching.ts';
export { type UniqueOptions, type UniqueResult, maskedSelect, nonZero, unique } from './ops/selecting.ts';
export { type SortIndices, type SortOptions, type TopKOptions, argSort, sort, topK } from './ops/sorting.ts';
export { ceil, floor, frac, round, trunc } from './ops/rounding.ts';
export {
  contiguous,
  flatten,
  moveAxis,
  permute,
  reshape,
  squeeze,
  transpose,
  unflatten,
  unsqueeze,
} from './ops/shape.ts';
export { broadcastTo, expand, meshgrid, repeat, repeatInterleave, tile } from './ops/repeating.ts';
export type { SliceRange, SliceSpec } from './shape/slices.ts';
export { at, flip, narrow, roll, select, slice } from './ops/slicing.ts';
export { type PadOptions, type PadWidths, pad } from './ops/padding.ts';
export { type OneAxis, logSoftmax, softmax, softmin } from './ops/softmax.ts';
export {
  type NormOptions,
  type VarianceOptions,
  logSumExp,
  mean,
  nanMean,
  nanSum,
  norm,
  std,
  variance,
} from './ops/statistics.ts';
export {
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atan2,
  atanh,
  cos,
  cosh,
  erf,
  sin,
  sinc,
  sinh,
  tan,
  tanh,
} from './ops/trigonometric.ts';
export { GradientError } from './autodiff/backward.ts';
export { checkpoint } from './autodiff/checkpoint.ts';
export { type CustomBackward, type CustomContext, customGradient } from './autodiff/custom-gradient.ts';
export { type GradCheckOptions, gradCheck } from './checks/grad-check.ts';
export {
  type Argnums,
  type AuxOptions,
  type GradientBy,
  type GradOptions,
  grad,
  grads,
  valueAndGrad,
} from './autodiff/grad.ts';
export { hessian, jacobian, type JacobianOf } from './autodiff/jacobian.ts';
export { detach, noGrad } from './autodiff/no-grad.ts';
export { hvp, jvp, vjp } from './autodiff/products.ts';
export { type TapeGradientOptions, type TapeOptions, GradientTape } from './autodiff/tape.ts';
export type { TensorTree } from './autodiff/trees.ts';
export { type BatchAxes, type VmapOptions, vmap } from './autodiff/vmap.ts';
export { printGraph } from './graph/print.ts';
export { GraphInvariantError, verifyGraph } from './graph/verify.ts';
export { setEager, setPendingLimits } from './graph/recorder.ts';
export { type KernelRun, type Profile, type ProfileOptions, profile } from './runtime/profile.ts';
export { onRollback } from './graph/assigned.ts';
export { isRehearsing } from './graph/rehearsal.ts';
export { type WarmupOptions, warmup } from './tensor/warmup.ts';
export { clearPlans, flush, idle, type ScheduleStats, stats, throttle } from './runtime/runtime.ts';
export type { Measured } from './tuning/measure.ts';
export type { ProductShape } from './tuning/product.ts';
export type { TuningStore } from './engine/engine.ts';
export { browserStore, defaultStore, diskStore, memoryStore } from './tuning/store.ts';
export { tune, type TuneOptions, type TuneResult } from './tuning/tune.ts';
export {
  type BackendProvider,
  getBackend,
  getEngine,
  listBackends,
  type Probe,
  registerBackend,
  setEngine,
} from './engine/registry.ts';
export { type LostEvent, onLost, type RecoveryPolicy, setRecovery } from './engine/recovery.ts';
export type { EngineCaps, IEngine, KernelSource, ReadyProgress } from './engine/engine.ts';
export {
  CompileError,
  DeviceLostError,
  EngineDisposedError,
  EngineMissingError,
  OutOfMemoryError,
  UnsupportedError,
} from './engine/errors.ts';
export {
  concatNumbers,
  fromTensor,
  type NestedNumbers,
  numberEye,
  numberFull,
  numberTensor,
  stackNumbers,
  toTensor,
} from './numbers/creation.ts';
export { NumberTensor, type NumberOperand } from './numbers/number-tensor.ts';
export {
  defineNumberType,
  type NumberLike,
  type NumberType,
  NumberTypeError,
  type NumberTypeOptions,
} from './numbers/number-type.ts';
export {
  bigintType,
  booleanType,
  type DecimalClass,
  type DecimalLike,
  decimalType,
  numberType,
} from './numbers/ready-made.ts';
