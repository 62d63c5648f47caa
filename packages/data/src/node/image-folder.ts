/** Images in folders named by their classes, as torchvision's `ImageFolder` takes them. Node only. */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { HostArray } from '../arrays.ts';
import { checkFits, checkOptions, DataError, reasonOf, isList } from '../errors.ts';
import { decodeImage, type DecodeOptions } from '../pictures/decode.ts';
import { Dataset } from '../pipeline/dataset.ts';

/** An image, and the number of its class. */
export interface LabelledImage {
  /** float32 [channels, height, width], 0 black and 1 white. */
  readonly x: HostArray<'float32'>;
  /** int32 []. */
  readonly y: HostArray<'int32'>;
}

/** Options of `imageFolder`. */
export interface ImageFolderOptions extends Omit<DecodeOptions, 'source'> {
  /** Endings of the files to take (default .png, .jpg, .jpeg). */
  readonly extensions?: readonly string[];
  /** Files that are read side by side (default 4). */
  readonly concurrency?: number;
}

/** Images by class. */
export interface ImageFolder {
  /** Names of the classes: of the folders, sorted. Label `i` is `classes[i]`. */
  readonly classes: readonly string[];
  /** The files, in the order of the data set, and the numbers of their classes. */
  readonly files: readonly string[];
  readonly labels: Int32Array;
  /** What decodes an image when it is asked for. */
  readonly dataset: Dataset<LabelledImage>;
}

/** Names in order; those that begin with a dot are other programs' own. */
async function entriesOf(path: string): Promise<{ folders: string[]; files: string[] }> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const named = (isWanted: (entry: (typeof entries)[number]) => boolean): string[] =>
      entries
        .filter((entry) => isWanted(entry) && !entry.name.startsWith('.'))
        .map(({ name }) => name)
        .sort(); // prettier-ignore
    return { folders: named((entry) => entry.isDirectory()), files: named((entry) => !entry.isDirectory()) };
  } catch (error) {
    throw new DataError('missing', path, `[imageFolder] cannot read the folder ${path}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * The images below a folder that has a folder for each class. Files are decoded when their batch is made. What begins with a dot is passed over.
 *
 * @param path the folder
 * @param options channels (default as in each file; 3 where they differ), size, resizing, extensions, concurrency (4)
 * @throws DataError `missing` without folders or images; while iterating `format` for damaged files
 * @example
 * ```ts no-run: reads a folder
 * const { classes, labels, dataset } = await imageFolder('pets', { size: [64, 64], channels: 3 });
 * const [train, test] = dataset.split([0.8, 0.2], { seed: 1, stratify: labels });
 * const data = train!.shuffle({ seed: 1 }).batch(32).prefetch(2); // for fit
 * ```
 */
export async function imageFolder(path: string, options: ImageFolderOptions = {}): Promise<ImageFolder> {
  checkOptions('imageFolder', options, {
    channels: 'number',
    size: 'any',
    resizing: 'string',
    extensions: 'any',
    concurrency: 'number',
  });
  const { extensions = ['.png', '.jpg', '.jpeg'], concurrency = 4, ...decoding } = options;
  const isWanted = isList(extensions) && extensions.every((one) => typeof one === 'string');
  checkFits('imageFolder', 'extensions', extensions, isWanted, 'a list of endings');
  const { folders } = await entriesOf(path);
  if (folders.length === 0)
    throw new DataError(
      'missing',
      path,
      `[imageFolder] ${path} has no folders in it; each class has a folder of its own`,
    );
  const files: string[] = [];
  const labels: number[] = [];
  const visit = async (folder: string, label: number): Promise<void> => {
    const found = await entriesOf(folder);
    for (const name of found.files)
      if (extensions.includes(extname(name).toLowerCase())) {
        files.push(join(folder, name));
        labels.push(label);
      }
    for (const name of found.folders) await visit(join(folder, name), label);
  };
  for (const [label, name] of folders.entries()) {
    const before = files.length;
    await visit(join(path, name), label);
    if (files.length === before)
      throw new DataError(
        'missing',
        join(path, name),
        `[imageFolder] ${join(path, name)} has no files that end in ${extensions.join(', ')}`,
      );
  }
  const read = async (index: number): Promise<LabelledImage> => {
    const file = files[index]!;
    let bytes: Uint8Array;
    try {
      bytes = await readFile(file);
    } catch (error) {
      throw new DataError('missing', file, `[imageFolder] cannot read ${file}: ${reasonOf(error)}`, { cause: error });
    }
    const { shape, data } = await decodeImage(bytes, { ...decoding, source: file });
    return {
      x: { dtype: 'float32', shape, data: Float32Array.from(data, (byte) => byte / 255) },
      y: { dtype: 'int32', shape: [], data: Int32Array.of(labels[index]!) },
    };
  };
  const dataset = Dataset.from(files.map((_, index) => index)).map(read, { concurrency });
  return { classes: folders, files, labels: Int32Array.from(labels), dataset };
}
