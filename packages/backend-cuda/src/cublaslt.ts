/**
 * cuBLASLt, NVIDIA's library for products of matrices: part of a CUDA toolkit, and of Python packages that bring their own. It needs nothing
 * beside itself. If it is missing, kernels do the work without a message.
 */
import { AddonLibrary } from '@polygrad/addon';
import type { Addon, Driver } from './addon.ts';
import { openSought, type Sought } from './places.ts';

/** The environment variable that names the library to open instead of those that are found. */
export const cublasLtVariable = 'POLYGRAD_CUBLASLT_LIBRARY';

/** Its versions are CUDA's major ones. Packages of Python: nvidia-cublas-cu12, nvidia-cublas (13 and newer). */
export const soughtCublasLt: Sought = {
  versions: [13, 12, 11],
  file: (version, isWindows) => (isWindows ? `cublasLt64_${version}.dll` : `libcublasLt.so.${version}`),
  packages: ['cu13', 'cu12', 'cu11', 'cublas'],
  roots: [],
};

/** The compute capabilities from which on it multiplies a dtype; 16-bit floats with sums of float32. */
const least: Readonly<Record<string, number>> = { float16: 75, bfloat16: 80, float32: 75, float64: 75 };

/** The status of a product that it has no way for. */
const notSupported = 15;

/** cuBLASLt for an engine on a card of a compute capability: `open` opens it, and says why it could not. */
export function cublasLt(driver: Driver, computeCapability: number, open: () => string): AddonLibrary {
  return new AddonLibrary({
    name: 'cublaslt',
    prefix: 'cublasLt',
    open,
    has: ({ kind, dtype }) => kind === 'matrices' && computeCapability >= (least[dtype] ?? Number.POSITIVE_INFINITY),
    prepare: (cells, count) => driver.prepareProduct(cells, count),
    refuses: (code) => code === notSupported,
  });
}

/** Opens the library that POLYGRAD_CUBLASLT_LIBRARY names, else the first that is found; '', or why there is none. */
export function openCublasLt(addon: Addon): string {
  const named = process.env[cublasLtVariable] ?? '';
  return openSought(named, soughtCublasLt, addon.simulated(), (path) => addon.openCublasLt(path));
}
