/**
 * cuDNN, NVIDIA's library for convolutions: installed by itself, and part of Python packages that bring their own. If it is missing, kernels do the work without
 * a message.
 *
 * It is given convolutions whose sums it keeps in the dtype of the factors. Only algorithms that add in order are taken (native/libraries/cudnn.cc).
 */
import { AddonLibrary } from '@polygrad/addon';
import type { Addon, Driver } from './addon.ts';
import { openSought, type Sought } from './places.ts';

/** The environment variable that names the library to open instead of those that are found. */
export const cudnnVariable = 'POLYGRAD_CUDNN_LIBRARY';

/** Packages of Python: nvidia-cudnn-cu12 and the like, all of which unpack to one folder. */
export const soughtCudnn: Sought = {
  versions: [9, 8],
  file: (version, isWindows) => (isWindows ? `cudnn64_${version}.dll` : `libcudnn.so.${version}`),
  packages: ['cudnn'],
  roots: ['CUDNN_PATH', 'CUDNN_HOME'],
};

/** The compute capabilities from which on it convolves a dtype; 16-bit floats with sums of float32. */
const least: Readonly<Record<string, number>> = { float16: 75, bfloat16: 80, float32: 75, float64: 75 };

/** Status codes of a convolution that it has no way for, in versions 8 and 9: what is wrong with an argument, and what is not supported. */
function isRefusal(code: number): boolean {
  return code === 3 || code === 9 || (code >= 2000 && code < 4000);
}

/** cuDNN for an engine on a card of a compute capability: `open` opens it, and says why it could not. */
export function cudnn(driver: Driver, computeCapability: number, open: () => string): AddonLibrary {
  return new AddonLibrary({
    name: 'cudnn',
    prefix: 'cudnn',
    open,
    has: ({ kind, dtype, result }) =>
      kind === 'convolution' && result === dtype && computeCapability >= (least[dtype] ?? Number.POSITIVE_INFINITY),
    prepare: (cells, count) => driver.prepareProduct(cells, count),
    refuses: isRefusal,
  });
}

/** Opens the library that POLYGRAD_CUDNN_LIBRARY names, else the first that is found; '', or why there is none. */
export function openCudnn(addon: Addon): string {
  const named = process.env[cudnnVariable] ?? '';
  return openSought(named, soughtCudnn, addon.simulated(), (path) => addon.openCudnn(path));
}
