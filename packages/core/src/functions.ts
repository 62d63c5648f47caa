/**
 * Entry point @polygrad/core/functions: everything of @polygrad/core except the operations as methods of Tensors.
 *
 * Whoever imports core from here alone gets a bundle with the operations that are called and no others: `exp(a)` works, `a.exp()` does
 * not (`add sub mul div` do). Operations come from the list of families, ops/operations.ts; any other public name goes here.
 */
import './methods/own-methods.ts';

export {
  type DType,
  type DTypeKind,
  type SmallFloat,
  type TypedArray,
  DTypeError,
} from '@polygrad/compiler/shape/dtype';
export type { Shape } from '@polygrad/compiler/shape/view';
export {
  ArgumentError,
  OperationError,
  PolygradError,
  type PolygradErrorCode,
  ShapeError,
  showShape,
} from '@polygrad/compiler/shape/errors';
export { checkWeak, floatFor, promoteOrNull, promoteTypes } from '@polygrad/compiler/shape/promotion';
export type {
  AxesArgument,
  AxisArgument,
  AxisOptions,
  BackwardOptions,
  CreationOptions,
  DataOf,
  ElementOf,
  ItemOf,
  NamedDType,
  NestedInput,
  NestedValues,
  PlainDType,
  Tensor,
  TensorLike,
} from './tensor/types.ts';
export { DisposedError, isTensor, traceOrigins } from './tensor/handle.ts';
export { formatArray } from './tensor/format.ts';
export { allClose, type GradCheckOptions, gradCheck } from './checks/grad-check.ts';
export {
  protect,
  registerState,
  unprotect,
  dispose,
  keep,
  scope,
  type MemoryInfo,
  memory,
  announce,
  type WarmupOptions,
  warmup,
} from './tensor/scope.ts';
export * from './ops/operations.ts';
export type { Layout, Padding, PerAxis } from './ops/images/image.ts';
export {
  empty,
  full,
  fullLike,
  ones,
  onesLike,
  tensor,
  type TensorOptions,
  zeros,
  zerosLike,
} from './ops/creation/creation.ts';
export { autocast } from './precision/autocast.ts';
export { einsum } from './ops/products/einsum.ts';
export { type IndexAxis, type IndexLike, scatterNd } from './ops/indexing/index-argument.ts';
export { concat, type JoinAxis, stack } from './ops/movement/joining.ts';
export { type CloseOptions, where } from './ops/elementwise/recording.ts';
export type { Reduction } from './ops/losses/loss-forms.ts';
export {
  getRandomState,
  type RandomKey,
  randomKey,
  type RandomState,
  seed,
  setRandomState,
  splitKey,
} from './tensor/random-key.ts';
export { bernoulli, permutation, rand, randint, randn, type RandomOptions } from './ops/creation/random.ts';
export {
  categorical,
  type CategoricalOptions,
  gumbel,
  multinomial,
  type MultinomialOptions,
  topKLogits,
  topPLogits,
  type TopLogitsOptions,
} from './ops/creation/sampling.ts';
export { arange, eye, type EyeOptions, linspace, meshgrid, tri } from './ops/creation/patterns.ts';
export type { SliceRange, SliceSpec } from '@polygrad/compiler/shape/axes';
export { GradientError } from './autodiff/backward.ts';
export {
  checkpoint,
  type CustomBackward,
  type CustomContext,
  customGradient,
  detach,
  noGrad,
} from './autodiff/custom-gradient.ts';
export {
  type Argnums,
  type AuxOptions,
  type GradientBy,
  type GradOptions,
  grad,
  grads,
  valueAndGrad,
  valueAndGradBy,
} from './autodiff/grad.ts';
export { hessian, jacobian, type JacobianOf, hvp, jvp, vjp } from './autodiff/derivatives.ts';
export { type TapeGradientOptions, type TapeOptions, GradientTape } from './autodiff/tape.ts';
export type { TensorTree } from './autodiff/walk.ts';
export { type BatchAxes, type VmapOptions, vmap } from './autodiff/vmap.ts';
export { scan, type ScanOptions } from './control/scan.ts';
export { whileLoop, type WhileLoopOptions } from './control/while-loop.ts';
export { hostEffect, hostValue } from './graph/transactions.ts';
export { hostNumber } from './tensor/operand.ts';
export { Formula, type FormulaSet } from './tensor/formula.ts';
export { type Compiled, type CompileOptions, compile } from './replay/compile.ts';
export { printGraph, GraphInvariantError, verifyGraph } from './graph/print.ts';
export { setEager, setPendingLimits } from './graph/recorder.ts';
export {
  type KernelRun,
  type Profile,
  type ProfileOptions,
  profile,
  type Trace,
  type TraceEvent,
  type TransferRun,
  writeTrace,
} from './runtime/profile.ts';
export { ExecutionContext, type ExecutionContextOptions } from './placement/context.ts';
export { calibrate, type CalibrateOptions } from './placement/calibrate.ts';
export { type EngineEstimate, explainPlacement, type PlacedPart, type PlacementReport } from './placement/explain.ts';
export type { FallbackLogger } from './placement/placer.ts';
export { AdaptiveThresholds, type MeasuredCosts } from './placement/thresholds.ts';
export type { CostCurve, EngineCosts, OperationFamily, TransferCost } from './placement/costs.ts';
export type { PlacementPolicy } from './placement/decide.ts';
export { to } from './placement/to.ts';
export { isRehearsing, onRollback } from './graph/transactions.ts';
export {
  clearPlans,
  flush,
  idle,
  setDynamicSizes,
  setLogger,
  type ScheduleStats,
  stats,
  throttle,
} from './runtime/runtime.ts';
export type { Measured } from './tuning/measure.ts';
export { type ProductShape, tune, type TuneOptions, type TuneResult } from './tuning/tune.ts';
export type { Logger, TuningStore, EngineCaps, IEngine, KernelSource, ReadyProgress } from './engine/engine.ts';
export { browserStore, defaultStore, diskStore, memoryStore } from './tuning/store.ts';
export {
  type BackendProvider,
  getBackend,
  getEngine,
  listBackends,
  type Probe,
  registerBackend,
  setEngine,
  type LostEvent,
  type RecoveryPolicy,
} from './engine/registry.ts';
export { onLost } from './engine/registry.ts';
export { setRecovery } from './runtime/shadow.ts';
export {
  CompileError,
  DeviceError,
  DeviceFaultError,
  DeviceLostError,
  EngineDisposedError,
  EngineMissingError,
  OutOfMemoryError,
  UnsupportedError,
} from './engine/errors.ts';
