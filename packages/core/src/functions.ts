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
export { conv1d, conv2d, conv3d, type ConvOptions, depthwiseConv2d } from './ops/convolution.ts';
export { convTranspose1d, convTranspose2d, convTranspose3d, type ConvTransposeOptions } from './ops/conv-transpose.ts';
export type { Layout, Padding, PerAxis } from './ops/image.ts';
export { type LocalConvOptions, locallyConnectedConv2d } from './ops/local-convolution.ts';
export { type EdgeList, graphConv, type GraphConvOptions } from './ops/graph-convolution.ts';
export { empty, full, fullLike, ones, onesLike, tensor, type TensorOptions, zeros, zerosLike } from './ops/creation.ts';
export { diag, diagEmbed, diagonal, rot90, trace } from './ops/diagonals.ts';
export { cdist, cosineSimilarity, normalize, type NormalizeOptions } from './ops/distance.ts';
export { affineGrid, gridSample, type GridSampleOptions } from './ops/grid-sample.ts';
export { interpolate, type InterpolateMode, type InterpolateOptions } from './ops/interpolate.ts';
export { embedding, embeddingBag, type EmbeddingBagOptions, type EmbeddingOptions } from './ops/embedding.ts';
export { type AttentionOptions, scaledDotProductAttention } from './ops/attention.ts';
export { einsum } from './ops/einsum.ts';
export { erfc, erfinv } from './ops/error-function.ts';
export { cbrt, exp, exp2, expm1, log, log10, log1p, log2, logAddExp, rsqrt, sqrt, xlogy } from './ops/exponential.ts';
export {
  cumMax,
  cumMin,
  cumProd,
  cumSum,
  type CumulativeOptions,
  type CumulativeSumOptions,
  diff,
  type DiffOptions,
  logCumSumExp,
} from './ops/cumulative.ts';
export type { IndexAxis, IndexLike } from './ops/index-argument.ts';
export { gather, indexAdd, indexSelect, maskedFill, scatterAdd, take, takeAlongAxis } from './ops/indexing.ts';
export { concat, type JoinAxis, stack } from './ops/joining.ts';
export { chunk, split, unbind } from './ops/splitting.ts';
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
} from './ops/logic.ts';
export { where } from './ops/where.ts';
export {
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  gaussianNllLoss,
  type GaussianNllOptions,
  huberLoss,
  klDiv,
  l1Loss,
  type LossOptions,
  mseLoss,
  smoothL1Loss,
} from './ops/loss.ts';
export type { Reduction } from './ops/loss-forms.ts';
export {
  cosineEmbeddingLoss,
  hingeLoss,
  type MarginOptions,
  tripletMarginLoss,
  type TripletOptions,
} from './ops/margin-loss.ts';
export { type ClassLossOptions, crossEntropy, type CrossEntropyOptions, nllLoss } from './ops/class-loss.ts';
export { digamma, lgamma, polygamma } from './ops/gamma.ts';
export { dot, gemm, type GemmOptions, gemv, inner, matmul, outer, tensordot, vdot } from './ops/matmul.ts';
export {
  groupNorm,
  type ImageNormOptions,
  instanceNorm,
  localResponseNorm,
  type LocalResponseNormOptions,
} from './ops/image-normalization.ts';
export { batchNorm, type BatchNormOptions, layerNorm, type LayerNormOptions, rmsNorm } from './ops/normalization.ts';
export {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveMaxPool2d,
  type AdaptiveSettings,
  type AdaptiveSize,
  globalAvgPool2d,
} from './ops/adaptive-pooling.ts';
export { avgPool1d, avgPool2d, avgPool3d, lpPool2d } from './ops/average-pooling.ts';
export {
  maxPool1d,
  maxPool2d,
  maxPool3d,
  maxUnpool2d,
  type UnpoolSettings,
  type WithIndices,
} from './ops/max-pooling.ts';
export type { PoolOptions, PoolSettings, PoolWindow } from './ops/pool-window.ts';
export { fold, type PatchOptions, pixelShuffle, pixelUnshuffle, unfold } from './ops/patches.ts';
export { bilinear, cross, kron } from './ops/products.ts';
export { rbfKernel } from './ops/rbf.ts';
export { rotaryEmbedding, type RotaryOptions } from './ops/rotary.ts';
export { type RandomKey, randomKey, seed, splitKey } from './tensor/random-key.ts';
export { bernoulli, permutation, rand, randint, randn, type RandomOptions } from './ops/random.ts';
export { dropout } from './ops/dropout.ts';
export { arange, eye, type EyeOptions, linspace, meshgrid, tri } from './ops/ranges.ts';
export { oneHot, tril, triu } from './ops/triangles.ts';
export { all, any, argMax, argMin, countNonZero, max, min, prod, sum } from './ops/reduction.ts';
export { type Interpolation, median, quantile, type QuantileOptions } from './ops/quantile.ts';
export {
  gatherNd,
  indexCopy,
  indexFill,
  scatter,
  scatterReduce,
  type ScatterReduceOptions,
  type ScatterReduction,
} from './ops/scattering.ts';
export { scatterNd } from './ops/scatter-nd.ts';
export {
  bucketize,
  histogram,
  type HistogramEdges,
  type HistogramOptions,
  type SearchOptions,
  searchSorted,
} from './ops/searching.ts';
export { maskedSelect, nonZero, unique, type UniqueOptions, type UniqueResult } from './ops/selecting.ts';
export { argSort, sort, type SortIndices, type SortOptions, topK, type TopKOptions } from './ops/sorting.ts';
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
export { broadcastTo, expand, repeat, repeatInterleave, tile } from './ops/repeating.ts';
export type { SliceRange, SliceSpec } from './shape/slices.ts';
export { at, flip, narrow, roll, select, slice } from './ops/slicing.ts';
export { pad, type PadOptions, type PadWidths } from './ops/padding.ts';
export { logSoftmax, type OneAxis, softmax, softmin } from './ops/softmax.ts';
export {
  logSumExp,
  mean,
  nanMean,
  nanSum,
  norm,
  type NormOptions,
  std,
  variance,
  type VarianceOptions,
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
