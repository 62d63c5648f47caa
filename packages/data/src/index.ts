/** Data sets and loaders of Polygrad: the part that runs everywhere. Files and packages are in `@polygrad/data/node`. */
export type { HostArray, HostData, HostDType, HostTypedArray } from './arrays.ts';
export { type Batches, type BatchOptions, batches } from './batches.ts';
export {
  type Checkpoint,
  type CheckpointOptions,
  type CheckpointParts,
  decodeCheckpoint,
  encodeCheckpoint,
  restoreCheckpoint,
  type SavedModel,
  type SavedOptimizer,
  type SavedRandom,
  type SavedTensor,
} from './checkpoint.ts';
export {
  type Batch,
  type Column,
  type Dataset,
  type LabelColumn,
  type MemoryDataset,
  memoryDataset,
  type PlainColumn,
  type ScaledColumn,
  subset,
} from './dataset.ts';
export { DataError, type DataErrorCode, isDataError } from './errors.ts';
export { encodeIdx, type IdxDType, type IdxHeader, parseIdx, readIdxHeader } from './idx.ts';
export { type ImageDataset, type ImageOptions, imageDataset, imageDatasetFromIdx, pixelStatistics } from './images.ts';
export { shuffledIndices, RandomStream } from './random.ts';
export { decodeSafetensors, encodeSafetensors, type SafetensorsContent } from './safetensors.ts';
