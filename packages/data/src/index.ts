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
  type SavedScaler,
  type SavedSlots,
  type SavedTensor,
} from './checkpoint.ts';
export {
  type Batch,
  type Column,
  type RowSource,
  type LabelColumn,
  type MemoryDataset,
  memoryDataset,
  type PlainColumn,
  type ScaledColumn,
  subset,
} from './columns.ts';
export type { Batched, CollateOptions, RowPadding } from './pipeline/collate.ts';
export {
  type BatchRowsOptions,
  type BucketOptions,
  Dataset,
  type DataFold,
  type MapOptions,
  type ShuffleOptions,
  type SplitOptions,
} from './pipeline/dataset.ts';
export type { DatasetSource, Iterated } from './pipeline/source.ts';
export { decodeImage, type DecodeOptions, encodePng } from './pictures/decode.ts';
export { type Resizing, resizeImage } from './pictures/resize.ts';
export type { TextChunks } from './tables/chunks.ts';
export { type CsvOptions, csvRows, type CsvStreamOptions, parseCsv } from './tables/csv.ts';
export { FeatureEncoder, type FeatureOptions, fitFeatures } from './tables/features.ts';
export { type ColumnType, DataFrame, type FrameColumn, type Row } from './tables/frame.ts';
export { jsonLines, type JsonLinesOptions, parseJsonLines } from './tables/json-lines.ts';
export { fitNormalizer, Normalizer, type NormalizerOptions } from './tables/normalizer.ts';
export { CharTokenizer } from './text/char-tokenizer.ts';
export { type DecodeTextOptions, type EncodeOptions, loadTokenizer, Tokenizer } from './text/tokenizer.ts';
export { trainBpe, type TrainBpeOptions, type TokenizerFile } from './text/train-bpe.ts';
export { type TokenWindow, tokenWindows, type TokenWindowsOptions } from './text/windows.ts';
export { DataError, type DataErrorCode, isDataError } from './errors.ts';
export { encodeIdx, type IdxDType, type IdxHeader, parseIdx, readIdxHeader } from './idx.ts';
export { type ImageDataset, type ImageOptions, imageDataset, imageDatasetFromIdx, pixelStatistics } from './images.ts';
export { shuffledIndices, RandomStream } from './random.ts';
export { decodeNpy, decodeNpz, encodeNpy, encodeNpz } from './exchange/numpy.ts';
export { decodeTorch, type TorchContent } from './exchange/torch.ts';
export { encodeTorch } from './exchange/write-torch.ts';
export type { NamedArrays } from './named-arrays.ts';
export { decodeSafetensors, encodeSafetensors, type SafetensorsContent } from './safetensors.ts';
