/** Layers, losses, optimizers and the training loop of Polygrad. */
export {
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  crossEntropy,
  huberLoss,
  klDiv,
  l1Loss,
  mseLoss,
  nllLoss,
  smoothL1Loss,
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
  uniformInit,
  xavierNormal,
  xavierUniform,
  zerosInit,
} from './init/init.ts';
export {
  ELU,
  GELU,
  HardSwish,
  LeakyReLU,
  LogSoftmax,
  Mish,
  ReLU,
  ReLU6,
  SELU,
  Sigmoid,
  SiLU,
  Softmax,
  Softplus,
  Tanh,
} from './layers/activation.ts';
export {
  type AttentionCall,
  MultiHeadAttention,
  type MultiHeadAttentionOptions,
  TransformerBlock,
  type TransformerBlockOptions,
} from './layers/attention.ts';
export {
  Conv2d,
  type Conv2dOptions,
  ConvTranspose2d,
  type ConvTranspose2dOptions,
  type KernelSize,
} from './layers/conv.ts';
export { Dropout } from './layers/dropout.ts';
export { Embedding, type EmbeddingLayerOptions } from './layers/embedding.ts';
export { type CachedAttentionOptions, KVCache, type KVCacheOptions } from './layers/kv-cache.ts';
export { Linear, type WeightOptions } from './layers/linear.ts';
export {
  BatchNorm2d,
  type BatchNormLayerOptions,
  LayerNorm,
  type LayerNormLayerOptions,
  RMSNorm,
} from './layers/norm.ts';
export { AvgPool2d, GlobalAvgPool2d, MaxPool2d } from './layers/pool.ts';
export {
  GRU,
  type GRUResult,
  type GRUState,
  LSTM,
  type LSTMResult,
  type LSTMState,
  type RecurrentOptions,
  RNN,
  type RNNOptions,
  type RNNResult,
  type RNNState,
  type SequenceOptions,
} from './layers/recurrent.ts';
export { Flatten } from './layers/shape.ts';
export { type AnyModule, isModule, type LoadOptions, Module } from './module/module.ts';
export { buffer, parameter, roleOf, type TensorRole } from './module/parameter.ts';
export { type Layer, Sequential } from './module/sequential.ts';
export { hostState, type Rename, type StateArray, type StateDict, type StateValues, snapshot } from './module/state.ts';
export { torchNames } from './module/torch-names.ts';
export { Adam, type AdamOptions, AdamW } from './optim/adam.ts';
export {
  Adadelta,
  type AdadeltaOptions,
  Adagrad,
  type AdagradOptions,
  RMSProp,
  type RMSPropOptions,
} from './optim/adaptive.ts';
export { clipGradNorm, clipGradValue } from './optim/clip.ts';
export {
  type Gradients,
  Optimizer,
  type OptimizerOptions,
  type OptimizerState,
  type Scalars,
} from './optim/optimizer.ts';
export {
  constantRate,
  cosineDecay,
  exponentialDecay,
  multiStepDecay,
  oneCycle,
  polynomialDecay,
  type Schedule,
  stepDecay,
  linearWarmup,
} from './optim/schedule.ts';
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
  type Transform,
} from './train/augment.ts';
export type { BatchSequence, BatchSource, TrainBatch } from './train/batch.ts';
export { type Callback, type EpochReport, earlyStopping, type LoopControl, type StepReport } from './train/callback.ts';
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
export { epochLine, type ProgressStyle, progress } from './train/progress.ts';
export { type ModelGradients, lossAndGrad } from './train/loss-and-grad.ts';
