/** CLBlast, a library of others for products of matrices under OpenCL. */
import { AddonLibrary } from '@polygrad/addon';
import type { Addon, Driver } from './addon.ts';

/** The environment variable that names the library to open instead of the installed one. */
const clblastVariable = 'POLYGRAD_CLBLAST_LIBRARY';

/** CLBlast for an engine: `doubles`: the device has float64; `lock`: a file to lock while it compiles, or ''. */
export function clblast(driver: Driver, open: () => string, doubles: boolean, lock: string = ''): AddonLibrary {
  return new AddonLibrary({
    name: 'clblast',
    prefix: 'CLBlast',
    open,
    has: ({ kind, dtype }) => kind === 'matrices' && (dtype === 'float32' || (dtype === 'float64' && doubles)),
    prepare: (cells, count) => driver.prepareProduct(cells, count, lock),
  });
}

/** How to open CLBlast beside the OpenCL library that was opened: it goes to the system's loader by itself. */
export function clblastOf(addon: Addon, libraryPath: string): () => string {
  if (libraryPath !== '') return () => `it would open another OpenCL library than ${libraryPath}`;
  return () => addon.openClblast(process.env[clblastVariable] ?? '');
}
