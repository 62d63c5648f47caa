/** Layers, losses, optimizers and the training loop of Polygrad. */
export {
  autocast,
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  cosineEmbeddingLoss,
  crossEntropy,
  diceLoss,
  focalLoss,
  gaussianNllLoss,
  hingeEmbeddingLoss,
  hingeLoss,
  huberLoss,
  klDiv,
  l1Loss,
  marginRankingLoss,
  mseLoss,
  multiLabelMarginLoss,
  multiLabelSoftMarginLoss,
  multiMarginLoss,
  nllLoss,
  poissonNllLoss,
  smoothL1Loss,
  softMarginLoss,
  tripletMarginLoss,
} from '@polygrad/core/functions';
export { NnError } from './errors.ts';
export {
  constantInit,
  type Fans,
  fanInUniform,
  fansOf,
  gainOf,
  type Initializer,
  type KaimingOptions,
  kaimingNormal,
  kaimingUniform,
  type Nonlinearity,
  normalInit,
  onesInit,
  type TruncNormalOptions,
  truncNormalInit,
  uniformInit,
  xavierNormal,
  xavierUniform,
  zerosInit,
} from './init/init.ts';
export { orthogonalInit } from './init/orthogonal.ts';
export {
  CELU,
  ELU,
  GELU,
  GLU,
  HardSigmoid,
  HardSwish,
  HardTanh,
  LeakyReLU,
  LogSigmoid,
  LogSoftmax,
  Mish,
  ReLU,
  ReLU6,
  SELU,
  Sigmoid,
  SiLU,
  Softmax,
  Softmax2d,
  Softmin,
  Softplus,
  Softsign,
  Tanh,
} from './layers/activation.ts';
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool2d,
  AdaptiveAvgPool3d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AdaptiveMaxPool3d,
} from './layers/adaptive-pool.ts';
export {
  type AttentionCall,
  type AttentionWeights,
  MultiHeadAttention,
  type MultiHeadAttentionOptions,
  TransformerBlock,
  type TransformerBlockOptions,
  type WeightsCall,
} from './layers/attention.ts';
export {
  type CellOptions,
  GRUCell,
  LSTMCell,
  type LSTMCellState,
  RNNCell,
  type RNNCellOptions,
} from './layers/cells.ts';
export {
  type ChannelNormOptions,
  GroupNorm,
  InstanceNorm1d,
  InstanceNorm2d,
  InstanceNorm3d,
  type InstanceNormLayerOptions,
  LocalResponseNorm,
} from './layers/channel-norm.ts';
export {
  Conv1d,
  Conv2d,
  type Conv2dOptions,
  Conv3d,
  ConvTranspose1d,
  ConvTranspose2d,
  type ConvTranspose2dOptions,
  ConvTranspose3d,
  type KernelSize,
  type VolumeSize,
} from './layers/conv.ts';
export { AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout } from './layers/dropout.ts';
export {
  type BagCall,
  Embedding,
  EmbeddingBag,
  type EmbeddingBagLayerOptions,
  type EmbeddingLayerOptions,
} from './layers/embedding.ts';
export { type CachedAttentionOptions, KVCache, type KVCacheOptions } from './layers/kv-cache.ts';
export { Bilinear, Linear, type WeightOptions } from './layers/linear.ts';
export {
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  type BatchNormLayerOptions,
  LayerNorm,
  type LayerNormLayerOptions,
  RMSNorm,
  type RmsNormLayerOptions,
} from './layers/norm.ts';
export {
  CircularPad1d,
  CircularPad2d,
  CircularPad3d,
  ConstantPad1d,
  ConstantPad2d,
  ConstantPad3d,
  type PaddingWidths,
  ReflectionPad1d,
  ReflectionPad2d,
  ReflectionPad3d,
  ReplicationPad1d,
  ReplicationPad2d,
  ReplicationPad3d,
  ZeroPad1d,
  ZeroPad2d,
  ZeroPad3d,
} from './layers/pad.ts';
export {
  AvgPool1d,
  AvgPool2d,
  AvgPool3d,
  type AvgPoolSettings,
  GlobalAvgPool2d,
  MaxPool1d,
  MaxPool2d,
  MaxPool3d,
  type MaxPoolSettings,
} from './layers/pool.ts';
export {
  GRU,
  type GRUResult,
  type GRUState,
  LSTM,
  type LSTMOptions,
  type LSTMResult,
  type LSTMState,
  type RecurrentOptions,
  RNN,
  type RNNOptions,
  type RNNResult,
  type RNNState,
  type SequenceOptions,
} from './layers/recurrent.ts';
export { Fold, PixelShuffle, PixelUnshuffle, Unfold, Upsample } from './layers/resize.ts';
export { Flatten, Identity, Unflatten } from './layers/shape.ts';
export {
  HardShrink,
  PReLU,
  type PReLUOptions,
  RReLU,
  SoftShrink,
  TanhShrink,
  Threshold,
} from './layers/slopes.ts';
export {
  type DecoderCall,
  RotaryEmbedding,
  Transformer,
  type TransformerCall,
  TransformerDecoder,
  TransformerDecoderLayer,
  TransformerEncoder,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
  type TransformerOptions,
} from './layers/transformer.ts';
export {
  forwardWithIndices,
  LPPool1d,
  LPPool2d,
  type LPPoolSettings,
  type MaxPooling,
  MaxUnpool1d,
  MaxUnpool2d,
  MaxUnpool3d,
  type MaxUnpoolSettings,
} from './layers/unpool.ts';
export {
  removeSpectralNorm,
  removeWeightNorm,
  spectralNorm,
  type SpectralNormOptions,
  weightNorm,
  type WeightNormOptions,
} from './layers/weight-norm.ts';
export { ctcLoss, type CtcOptions } from './losses/ctc.ts';
export { ModuleDict, ModuleList } from './module/containers.ts';
export { functionalCall } from './module/functional-call.ts';
export { forwardHook, forwardPreHook } from './module/hooks.ts';
export { type AnyModule, isModule, type LoadOptions, Module } from './module/module.ts';
export { buffer, parameter, roleOf, type TensorRole } from './module/parameter.ts';
export { type Layer, Sequential } from './module/sequential.ts';
export { hostState, type Rename, type StateArray, type StateDict, type StateValues, snapshot } from './module/state.ts';
export { type Summary, type SummaryOptions, type SummaryRow, summary } from './module/summary.ts';
export { torchNames } from './module/torch-names.ts';
export { Adam, type AdamOptions, AdamW } from './optim/adam.ts';
export {
  Adamax,
  type AdamaxOptions,
  AMSGrad,
  type AMSGradOptions,
  NAdam,
  type NAdamOptions,
  RAdam,
  type RAdamOptions,
} from './optim/adam-variants.ts';
export {
  Adadelta,
  type AdadeltaOptions,
  Adagrad,
  type AdagradOptions,
  RMSProp,
  type RMSPropOptions,
  Rprop,
  type RpropOptions,
} from './optim/adaptive.ts';
export { GradientAccumulator, WeightAverage, type WeightAverageOptions } from './optim/averages.ts';
export { clipGradNorm, clipGradNorms, type ClipNormsOptions, clipGradValue } from './optim/clip.ts';
export {
  chainedRates,
  cosineRestarts,
  type CyclicOptions,
  cyclicMomentum,
  cyclicRate,
  type HasRate,
  heldRate,
  type HoldOptions,
  linearRate,
  type PlateauOptions,
  type PlateauState,
  type RampOptions,
  ReduceOnPlateau,
  type RestartOptions,
  sequentialRates,
} from './optim/cycles.ts';
export {
  layerRates,
  type LayerRatesOptions,
  type OptimizerClass,
  type ParameterGroup,
  ParameterGroups,
} from './optim/groups.ts';
export {
  Adafactor,
  type AdafactorOptions,
  LAMB,
  type LAMBOptions,
  Muon,
  type MuonOptions,
} from './optim/layerwise.ts';
export { LBFGS, type LBFGSOptions } from './optim/lbfgs.ts';
export { type MaximizeOptions, Optimizer, type OptimizerOptions, type StepGuard } from './optim/optimizer.ts';
export type { Gradients } from './optim/owners.ts';
export type { Closure, ClosureFit, ClosureOptimizer, Evaluated } from './optim/closure.ts';
export type { Correction, Scalars, StepScalars } from './optim/step-numbers.ts';
export type { LoadedState, OptimizerState } from './optim/saved-state.ts';
export {
  constantRate,
  cosineDecay,
  exponentialDecay,
  multiStepDecay,
  oneCycle,
  type OneCycleMomentumOptions,
  oneCycleMomentum,
  type OneCycleOptions,
  polynomialDecay,
  type Schedule,
  stepDecay,
  linearWarmup,
} from './optim/schedule.ts';
export { GradScaler, type GradScalerOptions, type GradScalerState } from './precision/grad-scaler.ts';
export {
  QuantizedLinear,
  type QuantizedLinearOptions,
  type QuantizeOptions,
  quantize,
} from './precision/quantized-linear.ts';
export { Lion, type LionOptions, SGD, type SGDOptions } from './optim/sgd.ts';
export {
  type CutoutOptions,
  cutout,
  type MixupOptions,
  mixup,
  type RandomAffineOptions,
  type RandomCropOptions,
  type RandomFlipOptions,
  randomAffine,
  randomCrop,
  randomFlip,
  type BatchTransform,
} from './train/augment.ts';
export type { BatchSequence, BatchSource, TrainBatch } from './train/batch.ts';
export { type Callback, type EpochReport, earlyStopping, type LoopControl, type StepReport } from './train/callback.ts';
export { type ClassWeightsOptions, classWeights } from './train/class-weights.ts';
export { type EvaluateOptions, type Evaluation, evaluate, type LossFunction } from './train/evaluate.ts';
export { type FitOptions, fit, type History } from './train/fit.ts';
export { accuracy, Meter, type Metric, type Metrics } from './train/meter.ts';
export {
  type ClassesOptions,
  confusionMatrix,
  f1Score,
  meanIoU,
  precision,
  recall,
  type ScoreOptions,
  topKAccuracy,
} from './train/metrics/classes.ts';
export { type AucOptions, auc, type PerplexityOptions, perplexity } from './train/metrics/curves.ts';
export { meanAbsoluteError, meanSquaredError, r2Score } from './train/metrics/regression.ts';
export { type SummedMetric, Tally } from './train/metrics/summed.ts';
export {
  type RateMonitor,
  type RateMonitorOptions,
  type RatePoint,
  rateMonitor,
} from './train/rate-monitor.ts';
export { epochLine, type ProgressStyle, progress } from './train/progress.ts';
export { type ModelGradients, lossAndGrad } from './train/loss-and-grad.ts';
export { Replicated, replicate } from './train/replicate.ts';
export { loadModel, saveModel, type SavedTraining, type SaveOptions, type TrainingParts } from './train/saved-model.ts';
