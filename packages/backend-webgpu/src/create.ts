/** Making an engine: finds an adapter, and only then loads what the engine is made of; and how the registry of core sees that. */
import { type BackendProvider, EngineMissingError, type IEngine, type Probe } from '@polygrad/core/engine';
import { findAdapter } from './device/adapter.ts';
import { checkOptions, type WebGpuEngineOptions } from './options.ts';
import type { WebGpuEngine } from './public.ts';

/**
 * Makes an engine on a WebGPU adapter.
 *
 * @param options which adapter, limits, and a callback for compilation
 * @throws EngineMissingError where there is no WebGPU or no adapter
 *
 * @example
 * import { setEngine, tensor } from '@polygrad/core';
 * import { createWebGpuEngine } from '@polygrad/backend-webgpu';
 * const engine = await createWebGpuEngine().catch(() => null);
 * if (engine !== null) {
 *   await setEngine(engine);
 *   console.log(await tensor([1, 2]).add(1).array()); //=> [ 2, 3 ]
 *   engine.dispose();
 * }
 */
export async function createWebGpuEngine(options: WebGpuEngineOptions = {}): Promise<WebGpuEngine> {
  checkOptions(options);
  const found = await findAdapter(options);
  if (typeof found === 'string') throw new EngineMissingError('webgpu', `${found}; use another engine, such as 'cpu'`);
  // Only now: visitors without WebGPU never load the engine.
  const engine = await import('./engine.ts');
  return engine.WebGpuEngine.open(found, options);
}

/** Above the CPU engine's 10; below it for software adapters, which that engine beats on the same processor. */
const hardwareScore = 50;
const softwareScore = 2;

/** The 'webgpu' backend. Options: those of `createWebGpuEngine`. */
export const webgpuProvider: BackendProvider = {
  name: 'webgpu',
  async probe(): Promise<Probe> {
    const found = await findAdapter({}).catch((error: unknown) => String(error));
    if (typeof found === 'string') return { score: 0, reason: found, device: 'none' };
    const { name, software } = found;
    if (software) return { score: softwareScore, reason: 'slower than the CPU engine', device: name, software: true };
    return { score: hardwareScore, reason: 'a GPU', device: name };
  },
  create(options?: Readonly<Record<string, unknown>>): Promise<IEngine> {
    return createWebGpuEngine(options as WebGpuEngineOptions | undefined);
  },
};
