/**
 * Engines the command line can make by name. An engine that is not there is skipped out loud, unless POLYGRAD_REQUIRE
 * names it: then it is a failure.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ArgumentError } from '@polygrad/core';
import type { NativeEngineOptions } from '@polygrad/backend-native';
import type { IEngine } from '@polygrad/core/engine';
import type { Skip } from './case-runner.ts';

export interface EngineChoice {
  readonly engine: IEngine;
  readonly skip: readonly Skip[];
}

type Maker = (options: { threads?: number }) => Promise<EngineChoice>;

const makers: Readonly<Record<string, Maker>> = {
  reference: async () => {
    const { createReferenceEngine } = await import('@polygrad/testing');
    return { engine: createReferenceEngine(), skip: [] };
  },
  // Small dtypes are memory alone, as on cards: what stands for them is checked for its bounds here.
  'reference-simt': async () => {
    const { createReferenceEngine } = await import('@polygrad/testing');
    const computes = ['float32', 'float64', 'int32', 'uint32', 'int64', 'uint64', 'bool'] as const;
    return { engine: createReferenceEngine({ simt: true, computes }), skip: [] };
  },
  // Groups reduce by subgroups: of four threads, of eight, and as large as a group is at least.
  ...Object.fromEntries([4, 8, 32].map((size) => [`reference-subgroups-${size}`, () => referenceSubgroups(size)])),
  // Tiles of matrices, and copies to group memory beside other work: all that cards have.
  'reference-matrix': async () => {
    const { createReferenceEngine } = await import('@polygrad/testing');
    const matrix = [
      { dtype: 'float16', tile: 'm16n8k16' },
      { dtype: 'bfloat16', tile: 'm16n8k16' },
    ] as const;
    return { engine: createReferenceEngine({ simt: true, subgroup: 32, matrix }), skip: [] };
  },
  // Few dtypes, and reads that answer in a later turn of the event loop: everything else happens on the CPU engine. Few bindings.
  'reference-limited': async (options) => {
    const { createReferenceEngine } = await import('@polygrad/testing');
    const { setEngine } = await import('@polygrad/core/engine');
    await import('@polygrad/backend-cpu');
    await setEngine('cpu', options);
    const dtypes = ['float32', 'int32', 'uint32', 'bool'] as const;
    return { engine: createReferenceEngine({ dtypes, synchronous: false, maxBindings: 8 }), skip: [] };
  },
  cpu: async (options) => {
    const { createCpuEngine } = await import('@polygrad/backend-cpu');
    return { engine: await createCpuEngine(options), skip: [] };
  },
  native: (options) => nativeEngine(options),
  // Narrower vectors than the machine has, and AVX2 alone.
  'native-16': (options) => nativeEngine({ ...options, vectorBytes: 16 }),
  'native-32': (options) => nativeEngine({ ...options, vectorBytes: 32 }),
  'native-v3': (options) => nativeEngine({ ...options, isa: 'x64-v3' }),
  // The other dtypes are the CPU engine's.
  webgpu: async () => {
    const { createWebGpuEngine } = await import('@polygrad/backend-webgpu');
    await import('@polygrad/backend-cpu');
    return { engine: await createWebGpuEngine(), skip: [] };
  },
  opencl: async () => {
    const { createOpenClEngine } = await import('@polygrad/backend-opencl');
    return { engine: createOpenClEngine(), skip: [] };
  },
  // On processors the engine runs one thread per group: here it takes the way of cards.
  'opencl-simt': async () => {
    const { createOpenClEngine } = await import('@polygrad/backend-opencl');
    return { engine: createOpenClEngine({ simt: true }), skip: [] };
  },
  // On the card there is; where POLYGRAD_CUDA_DRIVER names it, on the simulated driver.
  cuda: async () => {
    const { createCudaEngine } = await import('@polygrad/backend-cuda');
    return { engine: createCudaEngine(), skip: [] };
  },
};

async function nativeEngine(options: NativeEngineOptions): Promise<EngineChoice> {
  const { createNativeEngine } = await import('@polygrad/backend-native');
  return { engine: createNativeEngine(options), skip: [] };
}

async function referenceSubgroups(subgroup: number): Promise<EngineChoice> {
  const { createReferenceEngine } = await import('@polygrad/testing');
  return { engine: createReferenceEngine({ simt: true, subgroup }), skip: [] };
}

export const engineNames: readonly string[] = Object.keys(makers);

/** True for what names a file, by a path with a separator in it: a module of somebody's own backend. */
export const isFile = (name: string): boolean => /[/\\]/.test(name);

/** What a module of a backend gives to make its engine by: `createEngine`, or the one function called `create...Engine`. */
const makerName = /^create\w*Engine$/;

/** The maker that a file exports. Importing the file registers its backend, if that is what it does. */
async function makerOf(file: string): Promise<Maker> {
  const path = resolve(file);
  if (!existsSync(path))
    throw new ArgumentError('engine', `--engine is ${file}, but there is no file ${path}; build it first`);
  const module = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  const found = Object.keys(module).filter((key) => makerName.test(key) && typeof module[key] === 'function');
  const [name] = found.includes('createEngine') ? ['createEngine'] : found;
  if (name === undefined || (name !== 'createEngine' && found.length > 1))
    throw new ArgumentError(
      'engine',
      `${file} exports ${found.length === 0 ? 'no function' : found.join(' and ')} to make an engine by; export one, called createEngine`,
    );
  const make = module[name] as (options: { threads?: number }) => IEngine | Promise<IEngine>;
  return async (options) => ({ engine: await make(options), skip: [] });
}

/**
 * Makes an engine, by its name or by the file of a backend, or says why it is not there.
 *
 * @throws ArgumentError where the engine is there and refuses the options, or the file makes no engine
 */
export async function makeEngine(
  name: string,
  options: { threads?: number },
): Promise<EngineChoice | { readonly missing: string }> {
  const make = isFile(name) ? await makerOf(name) : makers[name];
  if (!make) return { missing: `unknown engine '${name}'; known are ${engineNames.join(', ')}` };
  if ((options.threads ?? 1) > 1 && name !== 'cpu' && !name.startsWith('native') && !isFile(name))
    throw new ArgumentError(
      'threads',
      `${options.threads} threads for ${name}: only the engines cpu and native have them; leave them out`,
    );
  try {
    return await make(options);
  } catch (error) {
    if (error instanceof Error && error.name === 'ArgumentError') throw error;
    return { missing: error instanceof Error ? error.message : String(error) };
  }
}

/** True if the environment variable POLYGRAD_REQUIRE (a comma-separated list) names the engine, in whichever mode or width of vectors. */
export function isRequired(name: string): boolean {
  const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',');
  return required.includes(name) || required.includes(name.replace(/-(simt|16|32|v3)$/, ''));
}
