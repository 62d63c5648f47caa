/**
 * Image classification sets in the shape of MNIST: a stack of grey images and one class label for each, checked
 * against each other. Where the bytes come from is node/mnist.ts (or a fetch, in a browser).
 */
import { checkHostArray, type HostArray } from './arrays.ts';
import { type MemoryDataset, memoryDataset } from './columns.ts';
import { checkFits, checkInteger, checkOptions, DataError, isPlain } from './errors.ts';
import { parseIdx } from './idx.ts';

/** Rows of `x`: float32 images [rows, 1, height, width], and `y`: int32 labels [rows]. */
export interface ImageDataset extends MemoryDataset<'x' | 'y'> {
  /** The pixels as stored, [rows, height, width]. */
  readonly images: HostArray<'uint8'>;
  /** The labels as stored, [rows]. */
  readonly labels: HostArray<'uint8'>;
  readonly height: number;
  readonly width: number;
  /** What `x` is normalised by, in units where black is 0 and white 1: `x = (pixel / 255 - mean) / std`. */
  readonly mean: number;
  readonly std: number;
  /** Number of classes. */
  readonly classes: number;
}

/** `x = (pixel / 255 - mean) / std`, as torchvision's `ToTensor` and `Normalize(mean, std)`; see `normalize` for `ToTensor` alone. */
export interface ImageOptions {
  /** False: `x` is `pixel / 255`, from 0 (black) to 1 (white), not standardised (default true). Without `mean` and `std`. */
  readonly normalize?: boolean;
  /** Mean of the pixels over the training images, black being 0 and white 1 (default MNIST's, 0.1307). */
  readonly mean?: number;
  /** Their standard deviation in the same unit (default MNIST's, 0.3081). */
  readonly std?: number;
  /** Number of classes; labels must be below (default 10). */
  readonly classes?: number;
}

function expectBytes(array: HostArray, dimensions: number | null, what: string, source: string): HostArray<'uint8'> {
  checkHostArray('images', what, array);
  if (array.dtype !== 'uint8' || (dimensions !== null && array.shape.length !== dimensions)) {
    throw new DataError(
      'format',
      source,
      `[images] ${source} is not a file of ${what}: it holds ${array.dtype} of ${array.shape.length} dimensions, not uint8${dimensions === null ? '' : ` of ${dimensions}`}`,
    );
  }
  return array as HostArray<'uint8'>;
}

/**
 * Mean and standard deviation of pixels, black being 0 and white 1: what `ImageOptions` normalises by.
 *
 * @param images uint8 of any shape, at least one element
 * @throws DataError `argument` if there are no pixels
 * @example
 * pixelStatistics({ dtype: 'uint8', shape: [2], data: new Uint8Array([0, 255]) }); // { mean: 0.5, std: 0.5 }
 */
export function pixelStatistics(images: HostArray<'uint8'>): { mean: number; std: number } {
  expectBytes(images, null, 'images', 'images');
  const counts = new Float64Array(256);
  for (const pixel of images.data) counts[pixel]!++;
  const pixels = images.data.length;
  if (pixels === 0) throw new DataError('argument', 'images', '[images] there are no pixels to measure');
  const mean = counts.reduce((sum, count, pixel) => sum + count * pixel, 0) / (255 * pixels);
  const variance = counts.reduce((sum, count, pixel) => sum + count * (pixel / 255 - mean) ** 2, 0) / pixels;
  // Images of one colour have no deviation to divide by.
  return { mean, std: variance > 0 ? Math.sqrt(variance) : 1 };
}

/** A data set that JSON and Node's console show without its pixels. */
function showPixels(dataset: ImageDataset): ImageDataset {
  const outline = (): object => ({
    size: dataset.size,
    columns: dataset.columns,
    height: dataset.height,
    width: dataset.width,
    mean: dataset.mean,
    std: dataset.std,
    classes: dataset.classes,
  });
  for (const key of ['toJSON', Symbol.for('nodejs.util.inspect.custom')])
    Object.defineProperty(dataset, key, { value: outline });
  return dataset;
}

/** What pixels are normalised by. @throws DataError `argument` */
function normalisation(options: ImageOptions): { mean: number; std: number } {
  checkOptions('images', options, { normalize: 'boolean', mean: 'number', std: 'number', classes: 'number' });
  const { normalize = true, mean, std } = options;
  if (normalize) return { mean: mean ?? 0.1307, std: std ?? 0.3081 };
  if (mean !== undefined || std !== undefined) {
    throw new DataError(
      'argument',
      'normalize',
      `[images] normalize is false, and ${mean === undefined ? 'std' : 'mean'} is ${mean ?? std}: leave one of the two out`,
    );
  }
  return { mean: 0, std: 1 };
}

/**
 * A data set of images and labels that are in memory. Its `x` is standardised: `(pixel / 255 - mean) / std`, which with the defaults is -0.4242 for
 * black and 2.8215 for white. With `normalize: false` it is `pixel / 255`.
 *
 * @param images uint8 [rows, height, width]
 * @param labels uint8 [rows], each below `options.classes`
 * @param sources what to call the two in errors
 * @throws DataError `format` for arrays of another kind, `mismatch` if counts differ or a label is no class, `argument` for options that
 *   contradict each other or have another type
 * @example
 * const images = { dtype: 'uint8', shape: [2, 1, 1], data: new Uint8Array([0, 255]) } as const;
 * const labels = { dtype: 'uint8', shape: [2], data: new Uint8Array([7, 2]) } as const;
 * const { x, y } = imageDataset(images, labels, { mean: 0.5, std: 0.5 }).gather(new Uint32Array([0, 1]), 0, 2);
 * x.data; // Float32Array [-1, 1]
 * y.data; // Int32Array [7, 2]
 */
export function imageDataset(
  images: HostArray,
  labels: HostArray,
  options: ImageOptions = {},
  sources: { readonly images: string; readonly labels: string } = { images: 'images', labels: 'labels' },
): ImageDataset {
  checkFits('images', 'sources', sources, isPlain(sources), '{ images, labels }');
  for (const name of ['images', 'labels'] as const)
    checkFits('images', `sources.${name}`, sources[name], typeof sources[name] === 'string', 'a text');
  const { mean, std } = normalisation(options);
  const { classes = 10 } = options;
  checkInteger('images', 'classes', classes, 1);
  const pixels = expectBytes(images, 3, 'images', sources.images);
  const marks = expectBytes(labels, 1, 'labels', sources.labels);
  const [rows, height, width] = pixels.shape as [number, number, number];
  if (marks.shape[0] !== rows) {
    throw new DataError(
      'mismatch',
      sources.labels,
      `[images] ${sources.images} has ${rows} images, ${sources.labels} has ${marks.shape[0]} labels; they must be of one set`,
    );
  }
  const stray = marks.data.findIndex((label) => label >= classes);
  if (stray >= 0) {
    throw new DataError(
      'mismatch',
      sources.labels,
      `[images] ${sources.labels} has label ${marks.data[stray]} at row ${stray}; with ${classes} classes labels are 0 to ${classes - 1}`,
    );
  }
  const dataset = memoryDataset({
    x: { array: { ...pixels, shape: [rows, 1, height, width] }, as: 'float32', mean, std },
    y: { array: marks, as: 'int32' },
  });
  return showPixels({ ...dataset, images: pixels, labels: marks, height, width, mean, std, classes });
}

/**
 * A data set from the bytes of an IDX image file and an IDX label file.
 *
 * @throws DataError `format`, `truncated`, `oversized`, `mismatch`
 * @example
 * // In a page: new Uint8Array(await (await fetch('t10k-images-idx3-ubyte')).arrayBuffer())
 * const images = encodeIdx({ dtype: 'uint8', shape: [1, 2, 2], data: new Uint8Array([0, 255, 255, 0]) });
 * const labels = encodeIdx({ dtype: 'uint8', shape: [1], data: new Uint8Array([7]) });
 * imageDatasetFromIdx(images, labels).size; // 1
 */
export function imageDatasetFromIdx(
  imageBytes: Uint8Array,
  labelBytes: Uint8Array,
  options: ImageOptions = {},
  sources: { readonly images: string; readonly labels: string } = { images: 'images', labels: 'labels' },
): ImageDataset {
  const images = parseIdx(imageBytes, sources.images);
  const labels = parseIdx(labelBytes, sources.labels);
  return imageDataset(images, labels, options, sources);
}
