/** Names of the data set's files: where the server puts them and the worker fetches them. */

/** Folder below the page's own address. */
export const DATA_FOLDER = 'data';

/** The files of MNIST as their authors name them; each is served packed, with `.gz` after it. */
export const DATA_FILES = {
  trainImages: 'train-images-idx3-ubyte',
  trainLabels: 'train-labels-idx1-ubyte',
  testImages: 't10k-images-idx3-ubyte',
  testLabels: 't10k-labels-idx1-ubyte',
} as const;
