/**
 * cuBLASLt, NVIDIA's library for products of matrices: part of a CUDA toolkit, and of Python packages that bring their own. It needs nothing
 * beside itself. If it is missing, kernels do the work without a message.
 */
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { AddonLibrary } from '@polygrad/addon';
import type { Addon, Driver } from './addon.ts';

/** The environment variable that names the library to open instead of those that are found. */
export const cublasLtVariable = 'POLYGRAD_CUBLASLT_LIBRARY';

/** Versions of it by CUDA's major version, the newest first. */
const versions = [13, 12, 11];

/** What toolkits call the systems they have it for: x86-64, servers and boards with ARM64. One for another processor cannot be opened. */
const targets = ['x86_64-linux', 'sbsa-linux', 'aarch64-linux'];

/** The compute capabilities from which on it multiplies a dtype; 16-bit floats with sums of float32. */
const least: Readonly<Record<string, number>> = { float16: 75, bfloat16: 80, float32: 75, float64: 75 };

/** cuBLASLt for an engine on a card of a compute capability: `open` opens it, and says why it could not. */
export function cublasLt(driver: Driver, computeCapability: number, open: () => string): AddonLibrary {
  return new AddonLibrary({
    name: 'cublaslt',
    prefix: 'cublasLt',
    open,
    has: ({ dtype }) => computeCapability >= (least[dtype] ?? Number.POSITIVE_INFINITY),
    prepare: (cells, count) => driver.prepareProduct(cells, count),
  });
}

/** Opens the library that POLYGRAD_CUBLASLT_LIBRARY names, else the first that is found; '', or why there is none. */
export function openCublasLt(addon: Addon): string {
  const named = process.env[cublasLtVariable] ?? '';
  if (named !== '') return addon.openCublasLt(named);
  if (addon.simulated()) return 'the simulated driver has none';
  let reason = '';
  for (const path of cublasLtPlaces()) {
    const why = addon.openCublasLt(path);
    if (why === '') return '';
    reason ||= why;
  }
  return reason;
}

/** Names and paths of it that are worth a try, in order: the system's, the toolkit's, those of Python. */
export function cublasLtPlaces(
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: string = process.platform,
): string[] {
  const isWindows = platform === 'win32';
  const names = versions.map((version) => (isWindows ? `cublasLt64_${version}.dll` : `libcublasLt.so.${version}`));
  const toolkits = [env.CUDA_HOME, env.CUDA_PATH, isWindows ? undefined : '/usr/local/cuda'];
  const inToolkit = isWindows
    ? ['bin', 'bin/x64']
    : ['lib64', ...targets.map((target) => `targets/${target}/lib`), 'lib'];
  const folders = toolkits.flatMap((root) => (root ? inToolkit.map((folder) => join(root, folder)) : []));
  for (const root of [env.VIRTUAL_ENV, env.CONDA_PREFIX]) {
    if (!root) continue;
    if (isWindows) folders.push(join(root, 'Library/bin'), ...inPackages(join(root, 'Lib/site-packages'), 'bin'));
    else folders.push(join(root, 'lib'), ...pythons(join(root, 'lib')));
  }
  if (!isWindows)
    for (const lib of [join(env.HOME ?? homedir(), '.local/lib'), '/usr/local/lib', '/usr/lib'])
      folders.push(...pythons(lib));
  const files = folders.flatMap((folder) => names.map((name) => join(folder, name))).filter((path) => existsSync(path));
  return [...names, ...new Set(files)];
}

/** Where the packages of all Pythons below a folder keep it. */
function pythons(lib: string): string[] {
  return listed(lib)
    .filter((name) => /^python3/.test(name))
    .flatMap((name) => ['site-packages', 'dist-packages'].map((packages) => join(lib, name, packages)))
    .flatMap((packages) => inPackages(packages, 'lib'));
}

/** Its folders below those of Python packages: nvidia-cublas-cu12, nvidia-cublas (13 and newer). */
function inPackages(packages: string, folder: string): string[] {
  return [...versions.map((version) => `cu${version}`), 'cublas'].map((name) => join(packages, 'nvidia', name, folder));
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder).sort().reverse();
  } catch {
    return [];
  }
}
